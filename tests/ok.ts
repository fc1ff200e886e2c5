/**
 * Everything that a reviewer would run, one line for each step:
 *
 *     deno task ok [--without=tests,benches]
 *
 * The steps need neither JSR nor GitHub: where JSR does not answer, the
 * stand-ins of `tests/std` are type-checked against instead.
 */

import { type Ended, run } from "./runner/process.ts";
import { importMap, ROOT } from "./runner/runtimes.ts";
import { markdownFiles } from "./runner/source.ts";

/** Seconds that one step may take. */
const LIMIT = 900;
/** Lines of a failing step's output that are shown. */
const SHOWN_LINES = 60;

type Step = [name: string, action: () => Promise<Ended>];

function deno(...args: string[]): Promise<Ended> {
  return run([Deno.execPath(), ...args], { limit: LIMIT, cwd: ROOT });
}

const manifest = JSON.parse(await Deno.readTextFile(`${ROOT}jsr.json`)) as {
  name: string;
  exports: Record<string, string>;
};

/** Code blocks are checked too: the tests run them without a look at types. */
async function types(): Promise<Ended> {
  const map = await importMap();
  const options = map ? [`--import-map=${map}`] : [];
  const files = await deno("check", ...options, ".");
  if (files.code !== 0) return files;
  // Its users' options hold for the source, too.
  const entries = Object.values(manifest.exports);
  const strict = await deno("check", "--config=jsr.json", ...entries);
  if (strict.code !== 0) return strict;
  return await deno(
    "check",
    "--doc-only",
    ...options,
    ...markdownFiles(),
    "mod.ts",
    "src",
  );
}

/**
 * Packs the library as npm would get it, installs that in an empty folder, and
 * uses every entry point from the machine's node, by import and by require.
 */
async function pack(): Promise<Ended> {
  const folder = await Deno.makeTempDir({ prefix: "wsframe-pack-" });
  try {
    const tarball = `${folder}/wsframe.tgz`;
    const packed = await deno(
      "pack",
      "--config=jsr.json",
      "--allow-dirty",
      `--output=${tarball}`,
    );
    if (packed.code !== 0) return packed;
    const names = Object.keys(manifest.exports)
      .map((entry) => manifest.name + entry.slice(1));
    await Deno.writeTextFile(
      `${folder}/use.mjs`,
      names.map((name, i) =>
        `import * as imported${i} from "${name}";
         check(imported${i}, require("${name}"));\n`
      ).join("") + `
        import { createRequire } from "node:module";
        import { mask, readFrame, writeFrame } from "${manifest.name}";
        function require(name) {
          return createRequire(import.meta.url)(name);
        }
        function check(imported, required) {
          const names = Object.keys(imported);
          if (names.length === 0) throw new Error("nothing exported");
          for (const name of names) {
            if (imported[name] !== required[name]) throw new Error(name);
          }
        }
        const bytes = Uint8Array.of(1, 2, 3, 4, 5);
        mask(bytes, Uint8Array.of(1, 2, 3, 4));
        if (bytes.join() !== "0,0,0,0,4") throw new Error(bytes.join());
        const { frame } = readFrame(writeFrame({ opcode: 1, payload: "a" }));
        if (frame.payload.join() !== "97") throw new Error("wrong frame");`,
    );
    await Deno.writeTextFile(`${folder}/package.json`, "{}");
    const npm = "npm install --no-audit --no-fund --loglevel=error";
    const installed = await run([...npm.split(" "), tarball], {
      limit: LIMIT,
      cwd: folder,
    });
    if (installed.code !== 0) return installed;
    return await run(["node", "use.mjs"], { limit: LIMIT, cwd: folder });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const STEPS: Step[] = [
  ["format", () => deno("fmt", "--check")],
  ["lint", () => deno("lint")],
  ["types", types],
  [
    "documentation",
    () => deno("doc", "--lint", ...Object.values(manifest.exports)),
  ],
  [
    "publish",
    () => deno("publish", "--dry-run", "--config=jsr.json", "--allow-dirty"),
  ],
  ["pack", pack],
  ["native", () => deno("task", "native", "--check")],
  ["tests", () => deno("task", "test")],
  ["benches", () => deno("task", "bench", "--once")],
];

/** The libraries can be rebuilt, and compared, with this compiler alone. */
async function missing(step: string): Promise<string | undefined> {
  if (step !== "native") return undefined;
  const { code } = await run(["clang-19", "--version"], { limit: 10 });
  return code === 0 ? undefined : "clang-19 is not installed";
}

function readOptions(args: string[]): string[] {
  return args.flatMap((arg) => {
    const names = arg.startsWith("--without=") &&
      arg.slice("--without=".length).split(",");
    const known = STEPS.map(([name]) => name);
    if (names && names.every((name) => known.includes(name))) return names;
    throw new RangeError(
      `The option is --without= some of ${known.join(",")}, got "${arg}"`,
    );
  });
}

const without = readOptions(Deno.args);
let passed = 0, failed = 0;
for (const [name, action] of STEPS) {
  if (without.includes(name)) continue;
  const reason = await missing(name);
  if (reason !== undefined) {
    console.log(`skip  ${name.padEnd(14)} ${reason}`);
    continue;
  }
  const started = performance.now();
  const { code, output } = await action();
  const seconds = (performance.now() - started) / 1000;
  if (code === 0) passed++;
  else failed++;
  const time = `${seconds.toFixed(1)} s`.padStart(8);
  const words = code === 0 ? "ok  " : "FAIL";
  console.log(`${words}  ${name.padEnd(14)} ${time}`);
  if (code !== 0) {
    for (const line of output.trim().split("\n").slice(-SHOWN_LINES)) {
      console.log(`      ${line}`);
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed === 0 ? 0 : 1);
