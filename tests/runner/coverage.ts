/**
 * Line coverage of `src/`, merged from Deno, Bun and Node 26 (through tsx, the
 * line numbers of Node 20 are not those of the source).
 *
 * The runtimes disagree on what a line of code is: Node counts comments, Bun
 * counts closing braces. So a line counts when Deno says it is code, and is
 * covered when any of the three ran it. In a file that Deno never loaded, every
 * line counts that is neither empty nor a comment.
 */

import { run } from "./process.ts";
import { ROOT } from "./runtimes.ts";

/** Percent of the lines of `src/` that must be covered. */
const REQUIRED = 97;
/** Generated files, not counted. */
const GENERATED = "src/backend/embedded/";

/** Times that each line ran, by file and line. */
type Hits = Map<string, Map<number, number>>;

/** Adds what an lcov file says of files under `src/`. */
function addLcov(hits: Hits, lcov: string): void {
  let lines: Map<number, number> | undefined;
  for (const record of lcov.split("\n")) {
    if (record.startsWith("SF:")) {
      const file = record.slice(3).trim().replace(ROOT, "");
      if (!file.startsWith("src/") || file.startsWith(GENERATED)) {
        lines = undefined;
        continue;
      }
      lines = hits.get(file) ?? new Map();
      hits.set(file, lines);
    } else if (record.startsWith("DA:") && lines) {
      const [line, times] = record.slice(3).split(",").map(Number);
      lines.set(line, (lines.get(line) ?? 0) + times);
    }
  }
}

/**
 * Prints coverage per file and in total; whether it is enough. Deno leaves its
 * own format in a folder for each test file, Bun and Node leave lcov in theirs.
 */
export async function printCoverage(
  denoFolders: string[],
  lcovFolders: string[],
): Promise<boolean> {
  const { output } = await run([
    Deno.execPath(),
    "coverage",
    "--quiet",
    "--lcov",
    `--include=^file://${ROOT}src/`,
    ...denoFolders,
  ], { limit: 120, cwd: ROOT });
  const deno: Hits = new Map(), others: Hits = new Map();
  addLcov(deno, output);
  for (const folder of lcovFolders) addLcov(others, readLcov(folder));

  console.log(`\nLines of src/ covered (Deno, Bun and Node 26 together)`);
  let all = 0, covered = 0;
  for (const file of sourceFiles("src")) {
    const code = deno.get(file) ??
      linesOfCode(Deno.readTextFileSync(`${ROOT}${file}`));
    const missed = [...code.keys()].sort((a, b) => a - b)
      .filter((line) => !code.get(line) && !others.get(file)?.get(line));
    all += code.size;
    covered += code.size - missed.length;
    printRow(file, code.size - missed.length, code.size, ranges(missed));
  }
  printRow("total", covered, all, "");
  const enough = covered * 100 >= REQUIRED * all;
  if (!enough) console.log(`  Less than the ${REQUIRED} % required`);
  return enough;
}

function readLcov(folder: string): string {
  try {
    return Deno.readTextFileSync(`${folder}/lcov.info`);
  } catch {
    return ""; // The file did not load: the run has failed already.
  }
}

function* sourceFiles(folder: string): Generator<string> {
  const entries = [...Deno.readDirSync(`${ROOT}${folder}`)];
  for (const entry of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) {
      if (`${path}/` !== GENERATED) yield* sourceFiles(path);
    } else if (path.endsWith(".ts")) yield path;
  }
}

/** For a file that Deno never loaded: none where it holds types alone. */
function linesOfCode(source: string): Map<number, number> {
  const lines = new Map<number, number>();
  if (
    !/^(export )?(abstract |async )?(const|let|function|class) /m.test(source)
  ) {
    return lines;
  }
  source.split("\n").forEach((line, at) => {
    if (!/^\s*($|\/\/|\/?\*)/.test(line)) lines.set(at + 1, 0);
  });
  return lines;
}

function printRow(
  name: string,
  covered: number,
  all: number,
  missed: string,
): void {
  const percent = all === 0 ? "types" : `${(covered * 100 / all).toFixed(1)} %`;
  console.log(
    `  ${name.padEnd(36)} ${percent.padStart(7)}  ${
      `${covered}/${all}`.padStart(9)
    }${missed ? `  not: ${missed}` : ""}`,
  );
}

function ranges(lines: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const from = lines[i];
    while (lines[i + 1] === lines[i] + 1) i++;
    parts.push(from === lines[i] ? `${from}` : `${from}-${lines[i]}`);
  }
  return parts.join(", ");
}
