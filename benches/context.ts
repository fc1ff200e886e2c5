/**
 * What every table gets: the engines under test, the peers, the runtime.
 *
 * @module
 */

import { cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Kernel } from "./kernel.ts";
import type { Contender, Measured, Race } from "./measure.ts";
import type { Peer, Peers } from "./peers.ts";

/** The library, as a program imports it. */
export type Library = typeof import("../mod.ts");

/** The runtimes of the suite. */
export type Runtime = "deno" | "bun" | "node20" | "node26";

/**
 * One backend in a copy of the library of its own: engines that share code share
 * its call sites too, and none would run as fast as it does alone in a program.
 */
export interface Engine {
  /** Its backend's name, or "old" and "new" when two revisions are compared. */
  name: string;
  lib: Library;
}

/** One value that is no race: bytes of memory, milliseconds of start. */
export interface Fact {
  row: string;
  name: string;
  unit: string;
  measure: () => number | Promise<number>;
  /** The value is not to exceed this. */
  limit?: number;
  /** It has no right or wrong: skipped where nothing is timed. */
  unchecked?: boolean;
}

/** What tables draw their rows from. */
export interface Context {
  runtime: Runtime;
  engines: Engine[];
  /** The engine that is a library in C, and the one that runs everywhere. */
  native?: Engine;
  portable?: Engine;
  wasm?: Engine;
  /** The native engine once more, whose memory is recycled: that changes how it allocates. */
  recycling?: Engine;
  peers: Peers;
  kernel: Peer<Kernel>;
  quick: boolean;
  /** Only results are checked. */
  once: boolean;
  /** A folder for what the suite makes, and the library's module. */
  cache: string;
  library: string;
  /** The library as one file of JavaScript; not where two revisions are compared. */
  bundle?: string;
}

/** What a race or a fact gave. */
export interface Result {
  row: string;
  bytes?: number;
  results: Measured[];
  targets?: Race["targets"];
  limits?: Race["limits"];
  /** Of a fact; times of a race are nanoseconds. */
  unit?: string;
  /** Contenders whose result was wrong. */
  faults: string[];
}

/** One table of the suite. */
export interface Table {
  name: string;
  title: string;
  /** "change": first against second contender; "peers": a grid with ratios to a peer. */
  style: "change" | "peers";
  /** What the ratios of a grid refer to: the first of these that ran. */
  base?: string[];
  rows: (context: Context) => Iterable<Race | Fact>;
  /** What else the results say. */
  notes?: (results: Result[], context: Context) => string[];
}

/** One engine for each backend that the library has here. */
export async function loadEngines(
  module: string,
  cache: string,
): Promise<{ engines: Engine[]; refused: Record<string, string> }> {
  const first = await loadCopy(module, cache, "list");
  const engines: Engine[] = [];
  const refused: Record<string, string> = {};
  for (const { name, available, reason } of first.backends()) {
    if (!available) {
      refused[name] = reason;
      continue;
    }
    const lib = await loadCopy(module, cache, name);
    lib.useBackend(name);
    engines.push({ name, lib });
  }
  return { engines, refused };
}

/** Imports a copy of the library: modules are the same only under one path. */
export async function loadCopy(
  module: string,
  cache: string,
  name: string,
): Promise<Library> {
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, `${name}-`));
  for (const part of [basename(module), "src"]) {
    cpSync(join(dirname(module), part), join(directory, part), {
      recursive: true,
    });
  }
  const copy = join(directory, basename(module));
  return await import(pathToFileURL(copy).href);
}

/** A contender for each engine: `cursor bun-ffi`, `cursor portable`. */
export function each(
  engines: (Engine | undefined)[],
  what: string,
  make: (lib: Library) => Omit<Contender, "name">,
): Contender[] {
  return engines.filter((engine) => engine !== undefined).map((
    { name, lib },
  ) => ({ name: `${what} ${name}`.trim(), ...make(lib) }));
}

/** "125 B", "16 KiB", "1 MiB". */
export function size(bytes: number): string {
  if (bytes >= 2 ** 20) return `${bytes / 2 ** 20} MiB`;
  if (bytes >= 2 ** 10) return `${bytes / 2 ** 10} KiB`;
  return `${bytes} B`;
}
