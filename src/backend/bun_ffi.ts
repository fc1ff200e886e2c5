/**
 * The library through `bun:ffi`. Bun hands a typed array to C as the pointer to its
 * first byte, whatever memory lies below it (shared, resizable, WASM), and a detached
 * or empty one as a pointer that nothing is read from.
 *
 * @module
 */

import type { Backend, Candidate } from "./backend.ts";
import {
  candidateDirectories,
  LIBRARIES,
  loadBackend,
  processOf,
  processSystem,
} from "./load.ts";
import { libraryOf } from "./native.ts";
import type { Library, MinimumLengths, Symbols } from "./native.ts";

interface BunFfi {
  dlopen(
    path: string,
    symbols: Record<string, { args: readonly string[]; returns: string }>,
  ): { symbols: Symbols };
}

/** Measured by `benches/crossover.ts`: mask 20 B, 11 ns against 11; from 8 B on all others. */
const MINIMUM = { mask: 20, maskInto: 8, scan: 8 };

function open(ffi: BunFfi, path: string): Library {
  const { symbols } = ffi.dlopen(path, {
    wsframe_mask: { args: ["ptr", "f64", "f64", "i32"], returns: "void" },
    wsframe_mask_into: {
      args: ["ptr", "f64", "ptr", "f64", "f64", "i32"],
      returns: "void",
    },
    wsframe_scan: {
      args: ["ptr", "f64", "f64", "ptr", "f64", "ptr", "u32", "u32", "f64"],
      returns: "u32",
    },
    wsframe_cpu: { args: [], returns: "u32" },
    wsframe_use_kernel: { args: ["u32"], returns: "u32" },
  });
  return { ...libraryOf(symbols), holds };
}

/**
 * By what JavaScriptCore compiles to a few instructions: a call of the getter takes as long
 * as the call of the library. No typed array can lie about its elements; only a DataView
 * that was dressed up as one, with elements and a `byteLength` of its own, gets through.
 */
function holds(bytes: Uint8Array, end: number): boolean {
  return end <= bytes.byteLength && ArrayBuffer.isView(bytes) &&
    bytes[end - 1] !== undefined;
}

/** Opens the backend; `minimum` is for tests and benches. */
export function openBunFfi(
  minimum: MinimumLengths = MINIMUM,
): Backend | string {
  const process = processOf("bun");
  if (process === undefined) return "this is not Bun";
  const ffi = process.getBuiltinModule?.("bun:ffi") as BunFfi | undefined;
  if (ffi === undefined) return "this Bun has no bun:ffi";
  const system = processSystem(process);
  return loadBackend(
    "bun-ffi",
    minimum,
    LIBRARIES[`${process.platform}-${process.arch}`],
    system,
    candidateDirectories(system),
    (path) => open(ffi, path),
  );
}

/** The library, called by the FFI of Bun. */
export const bunFfi: Candidate = { name: "bun-ffi", open: () => openBunFfi() };
