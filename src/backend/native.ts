/**
 * What the backends with a compiled library have in common, whoever calls it: short
 * work is done in TypeScript, because a call costs more than it saves, and so is a view
 * shorter than its caller believes (detached, shrunk): a pointer knows no end.
 *
 * @module
 */

import type { Backend, BackendName } from "./backend.ts";
import * as portable from "./portable.ts";
import { selfTest } from "./verify.ts";

/** The functions of native/wsframe.h, over views. Every range lies inside its view. */
export interface Library extends Pick<Backend, "mask" | "maskInto" | "scan"> {
  /** Whether so many bytes are there, whatever the object says of itself. */
  holds(bytes: Uint8Array, end: number): boolean;
  cpu(): number;
  useKernel(kernel: number): number;
}

/** The functions as bun:ffi and Deno offer them, which take views for pointers. */
export interface Symbols {
  wsframe_mask: Library["mask"];
  wsframe_mask_into: Library["maskInto"];
  wsframe_scan(
    source: Uint8Array,
    start: number,
    length: number,
    target: Uint8Array | null,
    targetStart: number,
    table: Uint32Array,
    words: number,
    flags: number,
    maxPayloadLength: number,
  ): number;
  wsframe_cpu: Library["cpu"];
  wsframe_use_kernel: Library["useKernel"];
}

/**
 * The length in bytes by the getter that every typed array inherits: a property of the
 * object's own could say anything, and C would believe it.
 */
const byteLength = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  "byteLength",
)!.get! as (this: Uint8Array) => number;

/** {@linkcode Library.holds} for a library that takes anything for bytes. */
export function holds(bytes: Uint8Array, end: number): boolean {
  return end <= byteLength.call(bytes);
}

/** The library behind an FFI, where C gets a bare pointer. */
export function libraryOf(symbols: Symbols): Library {
  return {
    holds,
    mask: symbols.wsframe_mask,
    maskInto: symbols.wsframe_mask_into,
    scan: (
      source,
      start,
      length,
      target,
      targetStart,
      table,
      flags,
      maxPayloadLength,
    ) =>
      symbols.wsframe_scan(
        source,
        start,
        length,
        target,
        targetStart,
        table,
        table.length,
        flags,
        maxPayloadLength,
      ),
    cpu: symbols.wsframe_cpu,
    useKernel: symbols.wsframe_use_kernel,
  };
}

/**
 * The length in bytes from which the library is quicker than TypeScript, per function.
 * At least 1: what a detached view is for a library is not to be found out.
 */
export interface MinimumLengths {
  readonly mask: number;
  readonly maskInto: number;
  readonly scan: number;
}

/** The backend of a library that passed the self-test; throws where it did not. */
export function nativeBackend(
  name: BackendName,
  library: Library,
  minimum: MinimumLengths,
): Backend {
  const isa = selfTest(library);
  return {
    name,
    isa,
    minBytes: minimum.mask,

    mask(bytes, start, length, key) {
      if (!library.holds(bytes, start + length)) {
        portable.mask(bytes, start, length, key);
      } else library.mask(bytes, start, length, key);
    },

    maskInto(target, targetStart, source, sourceStart, length, key) {
      if (
        !(length >= minimum.maskInto &&
          library.holds(target, targetStart + length) &&
          library.holds(source, sourceStart + length))
      ) {
        portable.maskInto(
          target,
          targetStart,
          source,
          sourceStart,
          length,
          key,
        );
      } else {
        library.maskInto(target, targetStart, source, sourceStart, length, key);
      }
    },

    scan(
      source,
      start,
      length,
      target,
      targetStart,
      table,
      flags,
      maxPayloadLength,
    ) {
      return !(length >= minimum.scan &&
          library.holds(source, start + length) &&
          (target === null || library.holds(target, targetStart + length)))
        ? portable.scan(
          source,
          start,
          length,
          target,
          targetStart,
          table,
          flags,
          maxPayloadLength,
        )
        : library.scan(
          source,
          start,
          length,
          target,
          targetStart,
          table,
          flags,
          maxPayloadLength,
        );
    },
  };
}

/** The message of something thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
