/**
 * The library's own kernels called from C, the limit for every caller above: a
 * process of its own that times what it is told, so that it takes its turn in
 * the races like any other contender.
 *
 * @module
 */

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { decode, type EmbeddedLibrary } from "../src/backend/native.ts";
import type { Peer } from "./peers.ts";

/** Calls into the library from C. */
export interface Kernel {
  /** Nanoseconds per call. */
  sample(name: "mask" | "memcpy", bytes: number): Promise<number>;
  close(): void;
}

const SYSTEMS: Record<string, string> = {
  linux: "linux",
  darwin: "macos",
};

/** Compiles the caller and opens the embedded library with it, or says why not. */
export async function openKernel(
  root: string,
  cache: string,
): Promise<Peer<Kernel>> {
  const system = SYSTEMS[process.platform];
  if (!system) return `not built on ${process.platform}`;
  const compiler = ["clang-19", "clang", "gcc", "cc"]
    .find((name) => spawnSync(name, ["--version"]).status === 0);
  if (!compiler) return "no C compiler on this machine";
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, "kernel-"));
  const program = join(directory, "bench");
  const built = spawnSync(compiler, [
    "-O2",
    join(root, "benches/kernel.c"),
    "-o",
    program,
    "-ldl",
  ], { encoding: "utf8" });
  if (built.status !== 0) {
    return `${compiler} failed: ${built.stderr.trim().split("\n")[0]}`;
  }
  const library = join(directory, "library");
  const embedded: EmbeddedLibrary = await import(
    `../src/backend/embedded/${system}_${process.arch}.ts`
  );
  writeFileSync(library, decode(embedded));

  const child = spawn(program, [library], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const waiting: ((line: string) => void)[] = [];
  lines.on("line", (line) => waiting.shift()?.(line));
  return {
    async sample(name, bytes) {
      // About two milliseconds at 30 bytes per nanosecond.
      const calls = Math.max(1, Math.round(2e6 / (5 + bytes / 30)));
      const answer = new Promise<string>((resolve) => waiting.push(resolve));
      child.stdin.write(`${name} ${bytes} ${calls}\n`);
      return JSON.parse(await answer).ns;
    },
    close() {
      lines.close();
      child.kill();
    },
  };
}
