/**
 * Reads this repository's sources as text: what a module imports, where its
 * documentation has examples. No compiler, so that it runs under every runtime.
 */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

/** The text of a file, named from the root of the repository. */
export function readSource(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}

/** Every file under `folder` whose name ends in `ending`; none where it is missing. */
export function filesUnder(folder: string, ending: string): string[] {
  let names: string[];
  try {
    names = readdirSync(fileURLToPath(new URL(folder, root)), {
      recursive: true,
      encoding: "utf8",
    });
  } catch {
    return [];
  }
  return names.map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(ending)).sort();
}

/** The Markdown files whose code blocks must run. */
export function markdownFiles(): string[] {
  return [
    "README.md",
    "CHANGELOG.md",
    ...["docs", "native", "benches", "examples", "tests"]
      .flatMap((folder) => filesUnder(folder, ".md")),
  ];
}

/** Comments, and what may hold something that looks like one. */
const TOKEN =
  /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;

/** The source with every comment blanked out; lines keep their numbers. */
export function withoutComments(source: string): string {
  return source.replace(
    TOKEN,
    (token) =>
      token.startsWith("/*") || token.startsWith("//")
        ? token.replace(/[^\n]/g, " ")
        : token,
  );
}

/** The specifiers that a module imports or re-exports, types included. */
export function importsOf(source: string): string[] {
  const code = withoutComments(source);
  const found = [
    ...code.matchAll(/^(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/gm),
    ...code.matchAll(/^import\s*["']([^"']+)["']/gm),
    ...code.matchAll(/\b(?:import|require)\s*\(\s*["']([^"']+)["']/g),
  ];
  return found.map(([, specifier]) => specifier);
}

/** The path of what `from` means by a relative specifier. */
export function resolvePath(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

/** One fenced block of code. */
export interface CodeBlock {
  /** The line of its fence in the file, from 1. */
  line: number;
  /** What stands after the fence: "ts". */
  language: string;
  code: string;
}

/** The fenced blocks of a Markdown text that starts at a line of its file. */
export function codeBlocks(markdown: string, firstLine = 1): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: CodeBlock | undefined;
  markdown.split("\n").forEach((line, at) => {
    const fence = line.match(/^\s*```(.*)$/);
    if (fence && open) {
      blocks.push(open);
      open = undefined;
    } else if (fence) {
      open = { line: firstLine + at, language: fence[1].trim(), code: "" };
    } else if (open) open.code += `${line}\n`;
  });
  if (open) throw new SyntaxError(`The fence in line ${open.line} has no end`);
  return blocks;
}

/** One documentation comment. */
export interface DocComment {
  line: number;
  /** Without the stars. */
  text: string;
  /** The line of code that follows it. */
  documents: string;
}

/** The documentation comments of a source, in order. */
export function docComments(source: string): DocComment[] {
  const comments: DocComment[] = [];
  for (const match of source.matchAll(/^[ \t]*\/\*\*([^]*?)\*\//gm)) {
    const after = source.slice(match.index + match[0].length).trimStart();
    comments.push({
      line: source.slice(0, match.index).split("\n").length,
      text: match[1].replace(/\n[ \t]*\* ?/g, "\n"),
      documents: after.slice(0, after.indexOf("\n")),
    });
  }
  return comments;
}
