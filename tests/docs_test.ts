/**
 * Every TypeScript block of the Markdown files and of the documentation
 * comments runs, under every runtime; every exported value has one.
 */

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  codeBlocks,
  docComments,
  filesUnder,
  markdownFiles,
  readSource,
  resolvePath,
  withoutComments,
} from "./runner/source.ts";

/** Languages whose blocks are read by people alone. */
const NOT_RUN = ["sh", "json", "text", "c"];

const sources = ["mod.ts", ...filesUnder("src", ".ts")]
  .filter((file) => !file.startsWith("src/backend/embedded/"));

const blocks = [
  ...markdownFiles().flatMap((file) =>
    codeBlocks(readSource(file)).map((block) => ({ file, ...block }))
  ),
  ...sources.flatMap((file) =>
    docComments(readSource(file)).flatMap(({ line, text }) =>
      codeBlocks(text, line).map((block) => ({ file, ...block }))
    )
  ),
];

describe("code blocks", () => {
  // A folder of its own for each process: runtimes run side by side.
  const folder = new URL(`../.cache/docs/${process.pid}/`, import.meta.url);
  before(() => void mkdirSync(folder, { recursive: true }));
  after(() => rmSync(folder, { recursive: true }));

  for (const { file, line, language, code } of blocks) {
    if (NOT_RUN.includes(language)) continue;
    it(`${file}:${line}`, async () => {
      assertEquals(language, "ts", "no such language is run");
      // As .mts, Node 20 takes it as a module, where await may stand anywhere.
      const name = `${file.replaceAll("/", "_")}_${line}.mts`;
      const block = new URL(name, folder);
      // On a port of its own, and not for ever.
      writeFileSync(block, code.replace(".listen(8080)", ".listen(0).unref()"));
      await import(block.href);
    });
  }

  it("are there", () => {
    assert(blocks.filter(({ file }) => file === "README.md").length > 0);
    assert(blocks.filter(({ file }) => file.startsWith("src/")).length > 0);
  });
});

/** The values that a module exports, and the files that declare them. */
function exportsOf(file: string): { file: string; name: string }[] {
  const code = withoutComments(readSource(file));
  const found = [];
  const lists = /^export (?:type )?(\{[^}]*\}|\*)(?: from "([^"]+)")?/gm;
  for (const [, list, specifier] of code.matchAll(lists)) {
    assert(specifier, `${file} has an export list without "from"`);
    const from = exportsOf(resolvePath(file, specifier));
    const names = list.slice(1, -1).split(",")
      .map((name) => name.trim().replace(/^type /, "").replace(/ as .*/, ""))
      .filter((name) => name !== "");
    for (const declared of from) {
      if (list === "*" || names.includes(declared.name)) found.push(declared);
    }
  }
  for (const [, name] of code.matchAll(DECLARATION)) found.push({ file, name });
  return found;
}

/** Of a value: the examples of a type are those of the functions that take it. */
const DECLARATION =
  /^export (?:(?:abstract|async) )*(?:function|class|const|let)\*? (\w+)/gm;

/** The names that a module exports without an example in their documentation. */
function withoutExample(source: string, names: readonly string[]): string[] {
  const shown = docComments(source)
    .filter(({ text }) =>
      text.includes("@example") &&
      codeBlocks(text).some(({ language }) => language === "ts")
    )
    .flatMap(({ documents }) =>
      [...documents.matchAll(DECLARATION)].map(([, name]) => name)
    );
  return names.filter((name) => !shown.includes(name));
}

describe("exported values", () => {
  const { exports } = JSON.parse(readSource("jsr.json")) as {
    exports: Record<string, string>;
  };
  const declared = new Map<string, Set<string>>();
  for (const entry of Object.values(exports)) {
    for (const { file, name } of exportsOf(entry.replace("./", ""))) {
      const names = declared.get(file) ?? new Set();
      declared.set(file, names.add(name));
    }
  }
  for (const [file, names] of declared) {
    it(`of ${file} have an example`, () => {
      assertEquals(withoutExample(readSource(file), [...names]), []);
    });
  }

  it("are found", () => {
    assertEquals(declared.get("src/mask.ts"), new Set(["mask", "maskInto"]));
  });
  it("are told from those without one", () => {
    const source = [
      "/**",
      " * Words.",
      " *",
      " * @example",
      " * ```ts",
      " * a();",
      " * ```",
      " */",
      "export function a(): void {}",
      "/** Words. */",
      "export class B {}",
    ].join("\n");
    assertEquals(withoutExample(source, ["a", "B"]), ["B"]);
  });
});

describe("the lines of code blocks", () => {
  it("are those of the file", () => {
    const [comment] = docComments(
      "\n\n/**\n * Words.\n * ```ts\n * a();\n * ```\n */\n",
    );
    assertEquals(codeBlocks(comment.text, comment.line), [
      { line: 5, language: "ts", code: "a();\n" },
    ]);
  });
});
