/** Starts the programs beside this file in the runtime that the tests run under. */

import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The runtime under test. */
export const RUNTIME: "deno" | "bun" | "node" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/** What Node 20 needs to read TypeScript: the loader that the tests were started with. */
const LOADER: string | undefined = process.execArgv.find((arg) =>
  arg.startsWith("--import=") && arg.includes("/tsx/")
);

/** The path of a program in this folder. */
export function programPath(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** The command line that runs a program, with flags for the runtime. */
export function command(name: string, flags: readonly string[]): string[] {
  const before = RUNTIME === "deno"
    ? ["run", "--no-config", "--no-check", "--quiet"]
    : LOADER === undefined
    ? []
    : [LOADER];
  return [process.execPath, ...before, ...flags, programPath(name)];
}

/** How a program ended, and what it printed. */
export interface Ended {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a command line for at most a minute. */
export function run(
  [program, ...args]: readonly string[],
  env: Record<string, string> = {},
): Ended {
  const { status, stdout, stderr } = spawnSync(program!, args, {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", ...env },
    timeout: 60_000,
  });
  return { status, stdout, stderr };
}
