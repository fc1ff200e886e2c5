/**
 * The contract between the codec and the engines that do its byte work. It is
 * stated here once; an implementation comments only on what it does differently.
 * No backend knows what a message is, and nothing above `mask.ts` and `reader.ts`
 * knows that backends exist.
 *
 * @module
 */

/** The name of an engine. The order is the one in which they are tried. */
export type BackendName =
  | "bun-ffi"
  | "deno-ffi"
  | "node-api"
  | "wasm"
  | "portable";

/**
 * One engine. The caller has checked every argument: views are attached, ranges
 * lie inside them, offsets and lengths are safe integers. A view that became
 * shorter meanwhile (a resizable buffer) must not lead out of bounds.
 */
export interface Backend {
  readonly name: BackendName;
  /** "avx2", "sse2", "neon", "simd128", or "u64"/"u32" for the portable words. */
  readonly isa: string;
  /** Below so many bytes the loop in TypeScript is quicker than a call of `mask`. */
  readonly minBytes: number;

  /**
   * XORs `length` bytes from `bytes[start]` on, in place. Byte `i` of the range
   * meets byte `i & 3` of `key`, whose lowest byte is byte 0: the key is one
   * little-endian 32-bit number (signed), already rotated to the phase.
   */
  mask(bytes: Uint8Array, start: number, length: number, key: number): void;

  /** The same into other memory, in one pass. The ranges may overlap in any way. */
  maskInto(
    target: Uint8Array,
    targetStart: number,
    source: Uint8Array,
    sourceStart: number,
    length: number,
    key: number,
  ): void;

  /**
   * Walks the frames that are complete in `source[start .. start + length)`
   * (`length` at most {@linkcode MAX_SCAN_LENGTH}): checks every header (`flags` as in
   * `check.ts`), writes one row per frame to `table` and, unless `target` is null,
   * writes every masked payload unmasked to `target`, at `targetStart` plus the
   * payload's offset from `start`. `target` may be `source` with `targetStart ===
   * start` (in place: all other bytes stay); any other overlap is not allowed. In
   * other memory, the bytes between those payloads may be anything afterwards, up to
   * the end of the last complete frame.
   *
   * Stops at the first fault (also one that an incomplete header already shows),
   * at the first incomplete frame, and when the table is full. Returns how many
   * rows were written; `table[SCAN_CONSUMED]` is where the last complete frame
   * ends, counted from `start`, and `table[SCAN_FAULT]` is 0 or the number of the
   * fault found there (`HEADER_FAULTS` in `check.ts`). With a full table the fault is
   * 0 and the caller goes on from there.
   */
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
}

/** A place in the ordered list of backends: absent is a reason, not an exception. */
export interface Candidate {
  readonly name: BackendName;
  /**
   * Opens the engine, or says in a sentence why this runtime has none. Called
   * once, on first use. Must not prompt, and must leave nothing behind.
   */
  open(): Backend | string;
}

/** The longest range one `scan` takes, in bytes; offsets in its table are 32 bits. */
export const MAX_SCAN_LENGTH: number = 2 ** 30;

/** Word of the scan table: bytes consumed by complete frames. */
export const SCAN_CONSUMED = 0;
/** Word of the scan table: 0, or the number of a fault. */
export const SCAN_FAULT = 1;
/** Where the rows begin, in words. Words 2 and 3 are reserved. */
export const SCAN_ROWS = 4;
/**
 * Words per row:
 * 0: first header byte, `| 0x100` when masked, `| headerLength << 16`;
 * 1: payload start, counted from `start`; 2: payload length; 3: key, as in `mask`
 * (0 without one).
 */
export const SCAN_ROW_WORDS = 4;
