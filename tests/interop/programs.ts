/** Programs that tests start: the runtimes, a browser, Python, our examples. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url));
/** What `tests/run.ts` has got from npm. */
export const MODULES: string = `${ROOT}.cache/runtimes/node_modules/`;

/** Milliseconds after which a program is stopped, whatever it does. */
const LIMIT = 120_000;
/** Milliseconds that one has to end by itself. */
const GRACE = 5_000;

const { bun, deno } = process.versions;

/** A file of what `tests/run.ts` has got from npm. */
function runtime(folder: string, part: RegExp, path: string): string {
  const names = existsSync(MODULES + folder)
    ? readdirSync(MODULES + folder)
    : [];
  const name = names.find((name) => part.test(name));
  if (name !== undefined) return `${MODULES}${folder}${name}/${path}`;
  throw new Error('The runtimes are not there: run "deno task test" once');
}

/** The commands of the runtimes. Node is the one of the machine. */
export const RUNTIMES = {
  node: (): string[] => ["node"],
  node26: (): string[] => [runtime("", /^node-/, "bin/node")],
  bun: (): string[] => [
    bun !== undefined
      ? process.execPath
      : runtime("@oven/", /^bun-/, "bin/bun"),
  ],
  // `tests/run.ts` tells which Deno it is run by.
  deno: (): string[] => [
    deno !== undefined
      ? process.execPath
      : process.env.WSFRAME_TEST_DENO ?? "deno",
    ..."run --allow-all --quiet".split(" "),
  ],
};

/** An example under the runtime that runs this. */
export function example(file: string, ...args: string[]): string[] {
  const command = deno !== undefined
    ? RUNTIMES.deno()
    // Node 20 reads TypeScript only through a loader: as this file, so the example.
    : [
      process.execPath,
      ...process.execArgv.filter((arg) => arg.startsWith("--import=")),
    ];
  return [...command, `examples/${file}`, ...args];
}

export const CHROMIUM = "/usr/bin/chromium";
export const PYTHON = "/usr/bin/python3";

/** Why a program that comes with the machine, not with npm, cannot be used; null: it can. */
export function missing(program: string): string | null {
  if (!existsSync(program)) return `${program} is not there`;
  if (program !== PYTHON) return null;
  const { status } = spawnSync(program, ["-c", "import websockets"]);
  return status === 0 ? null : "Python's websockets are not there";
}

/**
 * How `it` is to treat a test that needs such a program. Where it is missing the test is
 * skipped with a note, but never in CI: there it fails.
 */
export function needs(program: string): { skip: boolean } {
  const reason = missing(program);
  if (reason === null || process.env.CI === "true") return { skip: false };
  console.log(`NOT RUN: ${reason}`);
  return { skip: true };
}

/** How a program ended. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A program that runs. */
export class Program {
  readonly #child: ChildProcess;
  readonly #command: string;
  #stdout = "";
  #stderr = "";
  #isOver = false;
  #changed: () => void = () => {};
  /** Resolves when it has ended. */
  readonly ended: Promise<Ended>;

  constructor([program, ...args]: string[], env: Record<string, string> = {}) {
    this.#command = [program, ...args].join(" ");
    this.#child = spawn(program, args, {
      cwd: ROOT,
      env: { ...process.env, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout!.on("data", (chunk: Uint8Array) => {
      this.#stdout += new TextDecoder().decode(chunk);
      this.#changed();
    });
    this.#child.stderr!.on("data", (chunk: Uint8Array) => {
      this.#stderr += new TextDecoder().decode(chunk);
    });
    const timer = setTimeout(() => this.signal("SIGKILL"), LIMIT);
    this.ended = new Promise((resolve) => {
      const end = (code: number | null) => {
        clearTimeout(timer);
        this.#isOver = true;
        this.#changed();
        resolve({ code, stdout: this.#stdout, stderr: this.#stderr });
      };
      this.#child.on("error", (error) => {
        this.#stderr += error.message;
        end(null);
      });
      this.#child.on("close", end);
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** What it has printed; the first match of `pattern`, which is waited for. */
  async printed(pattern: RegExp): Promise<RegExpMatchArray> {
    for (;;) {
      const match = this.#stdout.match(pattern);
      if (match !== null) return match;
      if (this.#isOver) {
        throw new Error(
          `${this.#command} ended without ${pattern}:\n${this.#stdout}${this.#stderr}`,
        );
      }
      await new Promise<void>((resolve) => this.#changed = resolve);
    }
  }

  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL"): void {
    // Not by `kill` of the child: Deno 2.9 then gives no exit code.
    if (!this.#isOver && this.#child.pid) process.kill(this.pid, signal);
  }

  /** Ends it, by force if need be. */
  async stop(): Promise<Ended> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), GRACE);
    const ended = await this.ended;
    clearTimeout(timer);
    return ended;
  }
}

/** Starts an example that serves, on a free port, and waits until it does. */
export async function startServer(
  file: string,
  ...args: string[]
): Promise<{ program: Program; port: number }> {
  const program = new Program(example(file, "0", ...args));
  const [, port] = await program.printed(/ on ws:\/\/127\.0\.0\.1:(\d+)\/\n/);
  return { program, port: Number(port) };
}
