/**
 * What the backends ask of Node and Bun, without an import of a `node:` module,
 * which would keep them out of browsers.
 *
 * @module
 */

import { PREFIX } from "./load.ts";
import type { System } from "./load.ts";

/** The part of `process` that is used here. */
export interface Process {
  readonly platform: string;
  readonly arch: string;
  readonly versions: Readonly<Record<string, string | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly permission?: { has(scope: string, reference?: string): boolean };
  /** Node 20.16, Bun 1.2. */
  getBuiltinModule?(name: string): unknown;
  dlopen(module: { exports: unknown }, path: string): void;
  /** Not on Windows. */
  getuid?(): number;
}

interface FileSystem {
  statSync(path: string): { uid: number; mode: number };
  mkdtempSync(prefix: string): string;
  writeFileSync(
    path: string,
    data: Uint8Array,
    options: { flag: string; mode: number },
  ): void;
  unlinkSync(path: string): void;
  rmdirSync(path: string): void;
}

/** `process`, where this runtime is the one asked for; Bun and Deno call themselves Node, too. */
export function processOf(runtime: "node" | "bun"): Process | undefined {
  const scope = globalThis as { process?: Process; Deno?: unknown };
  // Deno first: looking at its `process` makes it load Node's, which takes 13 ms
  if (scope.Deno !== undefined) return undefined;
  const versions = scope.process?.versions;
  if (versions?.node === undefined) return undefined;
  const actual = versions.bun === undefined ? "node" : "bun";
  return actual === runtime ? scope.process : undefined;
}

/** Node's file system as the loader uses it; throws where it is not to be had. */
export function processSystem(process: Process): System {
  const fs = process.getBuiltinModule?.("node:fs") as FileSystem;
  return {
    platform: process.platform,
    environment: (name) => process.env[name],
    ownership(directory) {
      const user = process.getuid?.();
      if (user === undefined) return undefined;
      const { uid, mode } = fs.statSync(directory);
      return { uid, mode, user };
    },
    makeDirectory: (parent) => fs.mkdtempSync(`${parent}/${PREFIX}`),
    writeFile: (path, bytes) =>
      fs.writeFileSync(path, bytes, { flag: "wx", mode: 0o700 }),
    removeFile: (path) => fs.unlinkSync(path),
    removeDirectory: (path) => fs.rmdirSync(path),
  };
}
