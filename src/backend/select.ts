/**
 * Which engine does the work: chosen once, on first use, from the ordered list.
 *
 * @module
 */

import type { Backend, BackendName, Candidate } from "./backend.ts";
import { shown } from "../check.ts";

/** One line of {@linkcode backends}. */
export interface BackendStatus {
  /** The name of the engine. */
  name: BackendName;
  /** Whether it can be used in this process. */
  available: boolean;
  /** Why not, with what to do about it; of an available one: "available". */
  reason: string;
}

/** What {@linkcode backend} tells of the engine in use. */
export interface BackendInfo {
  /** The name of the engine. */
  name: BackendName;
  /** What it computes with: "avx2", "sse2", "neon", "simd128", "u64" or "u32". */
  isa: string;
  /** Below so many bytes a loop in TypeScript is used, since it is quicker than the call. */
  minBytes: number;
}

/** The engine in use. */
export const current: {
  /** Null before the first use: read it as `current.engine ?? engine()`. */
  engine: Backend | null;
  /** Its `minBytes`; 0 before the first use, so that one comparison tells both. */
  minBytes: number;
} = { engine: null, minBytes: 0 };

let candidates: readonly Candidate[] = [];
const opened: Map<Candidate, Backend | string> = new Map();

/** Sets the ordered list. The list files call it; a longer list is never made shorter. */
export function setCandidates(list: readonly Candidate[]): void {
  if (list.length > candidates.length) candidates = list;
}

/** Opens a candidate once; a throw inside is a reason like any other. */
function open(candidate: Candidate): Backend | string {
  let result = opened.get(candidate);
  if (result === undefined) {
    try {
      result = candidate.open();
    } catch (error) {
      result = error instanceof Error ? error.message : String(error);
    }
    opened.set(candidate, result);
  }
  return result;
}

function openNamed(name: string, from: string): Backend {
  const candidate = candidates.find((candidate) => candidate.name === name);
  if (candidate === undefined) {
    throw new RangeError(
      `Expected ${from} to be one of ${
        candidates.map((candidate) => `"${candidate.name}"`).join(", ")
      }, got ${shown(name)}`,
    );
  }
  const result = open(candidate);
  if (typeof result === "string") {
    throw new RangeError(
      `Cannot use the backend "${name}" that ${from} asks for: ${result}`,
    );
  }
  return result;
}

/** What {@linkcode forced} needs of the runtimes. */
interface Runtime {
  Deno?: {
    permissions?: {
      querySync?(descriptor: { name: "env"; variable: string }): {
        state: string;
      };
    };
    env: { get(name: string): string | undefined };
  };
  process?: { env?: { readonly WSFRAME_BACKEND?: string } };
}

/** `WSFRAME_BACKEND`, read only where that needs no prompt. */
function forced(): string | undefined {
  const { Deno } = globalThis as Runtime;
  // `process` only where there is no Deno, which would load Node's for 13 ms
  if (Deno !== undefined) {
    const permission = Deno.permissions?.querySync?.({
      name: "env",
      variable: "WSFRAME_BACKEND",
    });
    if (permission?.state !== "granted") return undefined;
    try {
      return Deno.env.get("WSFRAME_BACKEND");
    } catch {
      return "\ufffd"; // it is not Unicode; this is what Node and Bun make of that
    }
  }
  return (globalThis as Runtime).process?.env?.WSFRAME_BACKEND;
}

function select(): Backend {
  const name = forced();
  if (name !== undefined && name !== "") {
    return openNamed(name, "WSFRAME_BACKEND");
  }
  for (const candidate of candidates) {
    const result = open(candidate);
    if (typeof result !== "string") return result;
  }
  throw new TypeError("Cannot find a backend");
}

function use(backend: Backend): Backend {
  current.minBytes = backend.minBytes;
  return current.engine = backend;
}

/** The engine in use, chosen now if none was. */
export function engine(): Backend {
  return current.engine ?? use(select());
}

/**
 * Tells which engine does the work, choosing it if nothing was masked yet.
 *
 * @returns Its name, what it computes with, and the length in bytes from which it is
 * called
 * @throws {RangeError} When `WSFRAME_BACKEND` names an engine that is unknown or not
 * available
 *
 * @example
 * ```ts
 * import { backend } from "@wsframe/wsframe";
 * import { assert } from "@std/assert";
 *
 * const { name, isa, minBytes } = backend();
 * assert(name.length > 0 && isa.length > 0 && minBytes >= 0);
 * ```
 */
export function backend(): BackendInfo {
  const { name, isa, minBytes } = engine();
  return { name, isa, minBytes };
}

/**
 * Lists the engines in the order in which they are tried, each with whether it can be
 * used here and, if not, why. Tries those that were not tried yet.
 *
 * @returns One entry per engine
 *
 * @example
 * ```ts
 * import { backends } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(backends().at(-1), {
 *   name: "portable",
 *   available: true,
 *   reason: "available",
 * });
 * ```
 */
export function backends(): BackendStatus[] {
  return candidates.map((candidate) => {
    const result = open(candidate);
    return typeof result === "string"
      ? { name: candidate.name, available: false, reason: result }
      : { name: candidate.name, available: true, reason: "available" };
  });
}

/**
 * Uses one engine from now on, for tests and benches.
 *
 * @param name The name of the engine
 * @throws {RangeError} When there is no such engine, or it is not available; the
 * message has the reason, and the engine in use stays
 *
 * @example
 * ```ts
 * import { backend, useBackend } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const before = backend().name;
 * useBackend("portable");
 * assertEquals(backend().name, "portable");
 * useBackend(before);
 * ```
 */
export function useBackend(name: BackendName): void {
  use(openNamed(name, "'name'"));
}
