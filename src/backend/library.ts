/**
 * The library as the backends see it, whoever calls it.
 *
 * @module
 */

/** The functions of native/wsframe.h, over views. Every range lies inside its view. */
export interface Library {
  /** The length in bytes, whatever the object says of itself. */
  sizeOf(bytes: Uint8Array): number;
  mask(bytes: Uint8Array, start: number, length: number, key: number): void;
  maskInto(
    target: Uint8Array,
    targetStart: number,
    source: Uint8Array,
    sourceStart: number,
    length: number,
    key: number,
  ): void;
  scan(
    source: Uint8Array,
    start: number,
    length: number,
    target: Uint8Array | null,
    targetStart: number,
    table: Uint32Array,
    flags: number,
    maxPayloadLength: number,
  ): number;
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

/** {@linkcode Library.sizeOf} for every library. */
export function sizeOf(bytes: Uint8Array): number {
  return byteLength.call(bytes);
}

/** The library behind an FFI, where C gets a bare pointer. */
export function libraryOf(symbols: Symbols): Library {
  return {
    sizeOf,
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
