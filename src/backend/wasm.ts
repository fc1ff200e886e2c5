/**
 * The library as WebAssembly (native/ compiled to wasm32 with SIMD), for where no
 * library may be opened. It only reaches memory of its own, so bytes are copied there
 * and back, a piece at a time: that memory has room for one piece and one table and
 * never grows, and no call finds there what another one left.
 *
 * @module
 */

import type { Backend, Candidate } from "./backend.ts";
import {
  SCAN_CONSUMED,
  SCAN_FAULT,
  SCAN_ROW_WORDS,
  SCAN_ROWS,
} from "./backend.ts";
import { V8 } from "../memory.ts";
import * as embedded from "./embedded/wasm.ts";
import { decode, holds, messageOf, nativeBackend } from "./native.ts";
import type { Library, MinimumLengths } from "./native.ts";
import * as portable from "./portable.ts";

/** What the module exports. Pointers are numbers. */
interface Exports {
  readonly memory: {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  };
  wsframe_mask(bytes: number, start: number, length: number, key: number): void;
  wsframe_scan(
    source: number,
    start: number,
    length: number,
    target: number,
    targetStart: number,
    table: number,
    words: number,
    flags: number,
    maxPayloadLength: number,
  ): number;
  wsframe_cpu(): number;
  wsframe_use_kernel(kernel: number): number;
}

/** The part of `WebAssembly` that is used here. */
interface WebAssemblyNamespace {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
}

/** A page of WebAssembly memory, in bytes. */
const PAGE = 1 << 16;
/**
 * Bytes worked on at a time: what a frame of 16 KiB needs, small enough to stay in the
 * first-level cache between copy, work and copy. Measured at 64 KiB: 2.7 us for `mask`
 * and for `scan` of such frames, with pieces of 64 KiB 4.2 and 3.5 us.
 */
const PIECE: number = 17 << 10;
/** Words of the table for one piece, and how many rows fit. */
const TABLE_WORDS: number = PAGE / 4;
const TABLE_ROWS: number = Math.floor(
  (TABLE_WORDS - SCAN_ROWS) / SCAN_ROW_WORDS,
);

/**
 * Measured by `benches/crossover.ts`, the greatest of the engines: `mask` pays from 512 B
 * to 1 KiB (V8) and from 8 KiB (JavaScriptCore) on, `maskInto` from 200 B to 1 KiB,
 * `scan` of frames of 16 bytes from 100 to 250 B.
 */
const MINIMUM = { mask: V8 ? 1024 : 8192, maskInto: 1024, scan: 256 };

/** The bytes of a range, without the cost of a view where they are the whole view. */
function range(bytes: Uint8Array, start: number, length: number): Uint8Array {
  return start === 0 && length === bytes.length
    ? bytes
    : new Uint8Array(bytes.buffer, bytes.byteOffset + start, length);
}

function libraryOf(exports: Exports): Library {
  const pieceStart = exports.memory.grow(2) * PAGE;
  const tableStart = pieceStart + PAGE;
  const { buffer } = exports.memory;
  const piece = new Uint8Array(buffer, pieceStart, PIECE);
  const rows = new Uint32Array(buffer, tableStart, TABLE_WORDS);
  const oneRow = new Uint32Array(SCAN_ROWS + SCAN_ROW_WORDS);
  // The rows and the frames of the last piece: views cost, and frames that follow each
  // other are mostly alike.
  let filled = rows;
  let done = piece;

  function maskInto(
    target: Uint8Array,
    targetStart: number,
    source: Uint8Array,
    sourceStart: number,
    length: number,
    key: number,
  ): void {
    // From the end where the target may lie behind the source in the same memory: what
    // was not read yet must not be written. PIECE is a multiple of 4, so the key stays.
    const backward =
      target.byteOffset + targetStart > source.byteOffset + sourceStart;
    const pieces = Math.ceil(length / PIECE);
    for (let i = 0; i < pieces; i++) {
      const at = PIECE * (backward ? pieces - 1 - i : i);
      const size = Math.min(PIECE, length - at);
      piece.set(range(source, sourceStart + at, size));
      exports.wsframe_mask(pieceStart, 0, size, key);
      portable.set.call(target, range(piece, 0, size), targetStart + at);
    }
  }

  /** Scans one piece into `table` from word `row` on; returns the number of rows. */
  function scanPiece(
    source: Uint8Array,
    start: number,
    length: number,
    target: Uint8Array | null,
    targetStart: number,
    table: Uint32Array,
    row: number,
    flags: number,
    maxPayloadLength: number,
  ): number {
    piece.set(range(source, start, length));
    const count = exports.wsframe_scan(
      pieceStart,
      0,
      length,
      target === null ? 0 : pieceStart,
      0,
      tableStart,
      Math.min(SCAN_ROWS + table.length - row, TABLE_WORDS),
      flags,
      maxPayloadLength,
    );
    if (count > 0) {
      const words = count * SCAN_ROW_WORDS;
      if (filled.length !== words) {
        filled = rows.subarray(SCAN_ROWS, SCAN_ROWS + words);
      }
      table.set(filled, row);
      if (target !== null) {
        const consumed = rows[SCAN_CONSUMED]!;
        if (done.length !== consumed) done = piece.subarray(0, consumed);
        target.set(done, targetStart);
      }
    }
    return count;
  }

  /** Takes one frame that is longer than a piece: TypeScript reads its header. */
  function scanLong(
    source: Uint8Array,
    start: number,
    length: number,
    target: Uint8Array | null,
    targetStart: number,
    flags: number,
    maxPayloadLength: number,
  ): number {
    const count = portable.scan(
      source,
      start,
      length,
      null,
      0,
      oneRow,
      flags,
      maxPayloadLength,
    );
    const [first, payloadStart, payloadLength, key] = oneRow.subarray(
      SCAN_ROWS,
    );
    if (count === 1 && target !== null && (first! & 0x100) !== 0) {
      maskInto(
        target,
        targetStart + payloadStart!,
        source,
        start + payloadStart!,
        payloadLength!,
        key!,
      );
    }
    return count;
  }

  function scan(
    source: Uint8Array,
    start: number,
    length: number,
    target: Uint8Array | null,
    targetStart: number,
    table: Uint32Array,
    flags: number,
    maxPayloadLength: number,
  ): number {
    let row = SCAN_ROWS;
    let at = 0;
    let fault = 0;
    while (row + SCAN_ROW_WORDS <= table.length) {
      const size = Math.min(PIECE, length - at);
      let head = rows;
      let count = scanPiece(
        source,
        start + at,
        size,
        target,
        targetStart + at,
        table,
        row,
        flags,
        maxPayloadLength,
      );
      fault = rows[SCAN_FAULT]!;
      const ended = fault !== 0 || at + size === length && count < TABLE_ROWS;
      if (count === 0 && !ended) {
        count = scanLong(
          source,
          start + at,
          length - at,
          target,
          targetStart + at,
          flags,
          maxPayloadLength,
        );
        if (count === 0) break;
        head = oneRow;
        table.set(oneRow.subarray(SCAN_ROWS), row);
      }
      const end = row + count * SCAN_ROW_WORDS;
      if (at > 0) {
        for (let i = row + 1; i < end; i += SCAN_ROW_WORDS) table[i]! += at;
      }
      row = end;
      at += head[SCAN_CONSUMED]!;
      if (ended) break;
    }
    table[SCAN_CONSUMED] = at;
    table[SCAN_FAULT] = fault;
    return (row - SCAN_ROWS) / SCAN_ROW_WORDS;
  }

  return {
    // a view is made for every range, and the engine makes none that is too long
    holds,
    mask: (bytes, start, length, key) =>
      maskInto(bytes, start, bytes, start, length, key),
    maskInto,
    scan,
    cpu: exports.wsframe_cpu,
    useKernel: exports.wsframe_use_kernel,
  };
}

function instantiate(minimum: MinimumLengths): Backend {
  const { WebAssembly } = globalThis as { WebAssembly?: WebAssemblyNamespace };
  if (WebAssembly === undefined) {
    throw new Error("this engine runs without WebAssembly");
  }
  const module = new WebAssembly.Module(decode(embedded));
  const instance = new WebAssembly.Instance(module);
  return nativeBackend(
    "wasm",
    libraryOf(instance.exports as Exports),
    minimum,
  );
}

/** Opens the backend; `minimum` is for tests and benches. */
export function openWasm(minimum: MinimumLengths = MINIMUM): Backend | string {
  try {
    return instantiate(minimum);
  } catch (error) {
    return messageOf(error);
  }
}

/** The library as WebAssembly, without any permission. */
export const wasm: Candidate = { name: "wasm", open: () => openWasm() };
