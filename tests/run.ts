/**
 * Runs the tests under Deno, Bun and two versions of Node.
 *
 *     deno task test [--runtime=deno,bun,node20,node26] [--[no-]coverage] [FILE...]
 *
 * FILE is a part of a file's name: `mask` runs every `tests/*mask*_test.ts`.
 * All files under all runtimes must cover `src/`, unless `--no-coverage` asks
 * for a quicker run; a part of them is measured with `--coverage`.
 *
 * Every file gets a process of its own in every runtime, so a file that does
 * not load, crashes or hangs is a failure of that file and of no other.
 */

import { printCoverage } from "./runner/coverage.ts";
import { parseJUnit, type TestResult } from "./runner/junit.ts";
import { run } from "./runner/process.ts";
import {
  prepare,
  ROOT,
  type Runtime,
  RUNTIME_IDS,
  type RuntimeId,
} from "./runner/runtimes.ts";

/** Seconds after which a test file is stopped and counts as failed. */
const LIMIT = 600;

interface Options {
  runtimes: readonly RuntimeId[];
  /** Absent: in a complete run. */
  coverage?: boolean;
  parts: string[];
}

function readOptions(args: string[]): Options {
  const options: Options = {
    runtimes: RUNTIME_IDS,
    parts: [],
  };
  for (const arg of args) {
    if (arg === "--coverage") options.coverage = true;
    else if (arg === "--no-coverage") options.coverage = false;
    else if (arg.startsWith("--runtime=")) {
      options.runtimes = arg.slice("--runtime=".length).split(",").map((id) => {
        const known = RUNTIME_IDS.find((one) => one === id);
        if (known) return known;
        throw new RangeError(
          `--runtime is one of ${RUNTIME_IDS.join(", ")}, got "${id}"`,
        );
      });
    } else if (arg.startsWith("-")) {
      throw new RangeError(`Unknown option "${arg}"`);
    } else options.parts.push(arg);
  }
  return options;
}

function testFiles(parts: string[]): string[] {
  const names = Array.from(Deno.readDirSync(`${ROOT}tests`), ({ name }) => name)
    .filter((name) => name.endsWith("_test.ts"))
    .filter((name) =>
      parts.length === 0 ||
      parts.some((part) => `tests/${name}`.includes(part))
    );
  return names.sort().map((name) => `tests/${name}`);
}

interface FileResult {
  file: string;
  results: TestResult[];
  seconds: number;
}

/** Runs one file in one runtime. */
async function runFile(
  runtime: Runtime,
  file: string,
  folder: string,
  coverage: boolean,
): Promise<FileResult> {
  await Deno.mkdir(folder, { recursive: true });
  const junit = `${folder}/junit.xml`;
  const { args, env } = runtime.command(file, {
    junit,
    coverage: coverage ? folder : undefined,
  });
  const { code, output, seconds } = await run(args, {
    limit: LIMIT,
    cwd: ROOT,
    // For tests that start Deno, which need not be on the PATH.
    env: { WSFRAME_TEST_DENO: Deno.execPath(), ...env },
  });
  let xml = "";
  try {
    xml = Deno.readTextFileSync(junit);
  } catch {
    // Not written: the file did not load, or left before its end.
  }
  const results = parseJUnit(xml, runtime.fileSuites);
  const failed = results.some(({ outcome }) => outcome === "failed");
  const complete = results.length > 0 && xml.includes("</testsuites>");
  if (!failed && (code !== 0 || !complete)) {
    const what = complete ? "" : ", and no complete report of any test";
    const detail = `Exit code ${code}${what}\n${output.trim()}`;
    results.push({ name: "(the file itself)", outcome: "failed", detail });
  }
  return { file, results, seconds };
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

function countOf(results: TestResult[]): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { outcome } of results) counts[outcome]++;
  return counts;
}

/** Lines of a failure's detail that are shown. */
const SHOWN_LINES = 40;

/** Prints what happened under one runtime; a missing one is one failure. */
function printBlock(
  title: string,
  files: FileResult[],
  missing: string | undefined,
): Counts {
  const counts = countOf(files.flatMap(({ results }) => results));
  const seconds = files.reduce((sum, file) => sum + file.seconds, 0);
  const longest = Math.max(0, ...files.map((file) => file.seconds));
  const slowest = files.find((file) => file.seconds === longest)?.file;
  console.log(
    `\n${title}\n  ${files.length} files: ${counts.passed} passed, ` +
      `${counts.failed} failed, ${counts.skipped} skipped in ` +
      `${seconds.toFixed(1)} s, most in ${slowest}: ${longest.toFixed(1)} s`,
  );
  for (const { file, results } of files) {
    for (const { name, outcome, detail } of results) {
      if (outcome !== "failed") continue;
      const lines = detail.split("\n");
      if (lines.length > SHOWN_LINES) {
        lines.splice(SHOWN_LINES, Infinity, "...");
      }
      console.log(`  FAILED ${file}: ${name}`);
      for (const line of lines) console.log(`    ${line}`);
    }
  }
  if (missing !== undefined) {
    counts.failed++;
    console.log(`  FAILED: this runtime is missing. ${missing}`);
  } else if (counts.passed + counts.failed === 0) {
    counts.failed++;
    console.log("  FAILED: no test ran");
  }
  return counts;
}

/** Lets as many jobs run at a time as there are cores, first come first. */
function scheduler(): <T>(job: () => Promise<T>) => Promise<T> {
  let free = Math.max(2, navigator.hardwareConcurrency);
  const waiting: (() => void)[] = [];
  return async (job) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await job();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

/** Shows how far the run is: all the time on a terminal, at every tenth elsewhere. */
function progress(done: number, all: number): void {
  if (!Deno.stdout.isTerminal()) {
    const tenth = (count: number) => Math.floor(10 * count / all);
    if (tenth(done) > tenth(done - 1) && done < all) {
      console.log(`${done} of ${all} files`);
    }
    return;
  }
  const line = done < all ? `${done} of ${all} files` : "";
  Deno.stdout.writeSync(new TextEncoder().encode(`\r\x1b[K${line}`));
}

/** All files under one runtime; says why, when the runtime cannot be had. */
async function runRuntime(
  id: RuntimeId,
  each: (runtime: Runtime) => Promise<FileResult>[],
): Promise<{ title: string; files: FileResult[]; missing?: string }> {
  try {
    const runtime = await prepare(id);
    return { title: runtime.title, files: await Promise.all(each(runtime)) };
  } catch (error) {
    return { title: id, files: [], missing: String(error) };
  }
}

async function main(): Promise<number> {
  const { runtimes, coverage, parts } = readOptions(Deno.args);
  const files = testFiles(parts);
  const complete = parts.length === 0 && runtimes === RUNTIME_IDS;
  const measured = coverage ?? complete;
  const temporary = await Deno.makeTempDir({ prefix: "wsframe-test-" });
  const foldersOf = (id: RuntimeId) =>
    files.map((_, i) => `${temporary}/${id}/${i}`);
  const schedule = scheduler();
  let done = 0, passed = 0, failed = 0;
  console.log(`${files.length} test files under ${runtimes.join(", ")}`);
  try {
    const runs = runtimes.map((id) =>
      runRuntime(id, (runtime) =>
        files.map((file, i) =>
          schedule(async () => {
            const folder = foldersOf(id)[i];
            const result = await runFile(runtime, file, folder, measured);
            progress(++done, files.length * runtimes.length);
            return result;
          })
        ))
    );
    for (const run of runs) {
      const { title, files, missing } = await run;
      const counts = printBlock(title, files, missing);
      passed += counts.passed;
      failed += counts.failed;
    }
    if (measured) {
      const enough = await printCoverage(
        foldersOf("deno"),
        [...foldersOf("bun"), ...foldersOf("node26")],
      );
      if (!enough && complete) failed++;
    }
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

Deno.exit(await main());
