/**
 * What the backends with a compiled library have in common, whoever calls it.
 *
 * First, what must be right before a library may work: its bytes, before it is opened,
 * and then its answers, through every function, in every kernel that this CPU has. A
 * compiler, a linker or an FFI that does something else than on the machine where the
 * tests ran shows here, and not in a user's data. All of that runs once, in an
 * interpreter, so it is made of few steps: what the functions write lies in one block,
 * and its checksum is known. Computing what is right would take ten times as long.
 *
 * Then, who does the work: short work is done in TypeScript, because a call costs more
 * than it saves, and so is a view shorter than its caller believes (detached, shrunk): a
 * pointer knows no end.
 *
 * @module
 */

import type { Backend, BackendName } from "./backend.ts";
import { SCAN_ROW_WORDS, SCAN_ROWS } from "./backend.ts";
import * as portable from "./portable.ts";
import { NO_CHECKS } from "../check.ts";

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

/** A module that native/build.ts generated. */
export interface EmbeddedLibrary {
  /** The library in base64; a number is a run of so many zero bytes. */
  readonly LIBRARY: readonly (string | number)[];
  /** The {@linkcode checksum} of the library. */
  readonly CHECKSUM: number;
}

/**
 * A hash of 32 bits. Each step is one-to-one in each word (odd factors), so that any
 * change of one word shows. It tells a damaged library, on which the loader of the
 * operating system would crash, from a good one; it is no protection from an attacker,
 * who could change it as well. Eight words a round take an interpreter 0.1 ms for
 * 10 KB, one word a round 0.3 ms and a compilation of up to 2 ms.
 */
export function checksum(bytes: Uint8Array): number {
  const padded = new Uint8Array(bytes.length + 31 & ~31);
  padded.set(bytes);
  const w = new Int32Array(padded.buffer);
  let hash = bytes.length;
  for (let i = 0; i < w.length; i += 8) {
    const sum = hash ^ w[i]! ^ w[i + 1]! * 3 ^ w[i + 2]! * 5 ^ w[i + 3]! * 7 ^
      w[i + 4]! * 9 ^ w[i + 5]! * 11 ^ w[i + 6]! * 13 ^ w[i + 7]! * 15;
    hash = (sum * 5 | 0) + 1;
  }
  return hash >>> 0;
}

/** The bytes of an embedded library; throws where they are not those that were built. */
export function decode(library: EmbeddedLibrary): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer> | undefined;
  try {
    bytes = joined(library.LIBRARY.map(bytesOf));
  } catch {
    // not even base64
  }
  if (bytes === undefined || checksum(bytes) !== library.CHECKSUM) {
    throw new Error("the embedded library is damaged: its checksum differs");
  }
  return bytes;
}

function joined(
  pieces: readonly Uint8Array<ArrayBuffer>[],
): Uint8Array<ArrayBuffer> {
  if (pieces.length === 1) return pieces[0]!;
  const bytes = new Uint8Array(
    pieces.reduce((sum, { length }) => sum + length, 0),
  );
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function bytesOf(piece: string | number): Uint8Array<ArrayBuffer> {
  if (typeof piece === "number") return new Uint8Array(piece);
  // 0.05 ms where it exists: not in Node before 25
  const { fromBase64 } = Uint8Array as {
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  };
  if (fromBase64 !== undefined) return fromBase64.call(Uint8Array, piece);
  const { Buffer } = globalThis as {
    Buffer?: {
      from(text: string, encoding: "base64"): Uint8Array<ArrayBuffer>;
    };
  };
  if (Buffer !== undefined) return Buffer.from(piece, "base64");
  const binary = atob(piece);
  return Uint8Array.from(binary, (_, i) => binary.charCodeAt(i));
}

/** Names of the bits of `wsframe_cpu`, lowest first. */
const KERNELS: readonly string[] = ["sse2", "avx2", "neon", "simd128"];

const KEY = 0x3d21fa37;

/** Ranges below a vector, between vectors and across the unrolled loops of every kernel. */
const LENGTHS: readonly number[] = [3, 21, 100, 489];
/** The size of a part of the block, with room for all of these. */
const PART = 672;
/** The checksum of the block after all ways of masking. */
const MASKED = 0x56e22ed5;

/** A length with room for the frames below. */
const CHUNK = 352;
const ROWS = 4;
const TABLE_WORDS: number = SCAN_ROWS + ROWS * SCAN_ROW_WORDS;
/** The checksum of the block after all ways of scanning. */
const SCANNED = 0x2c42d3bd;

/** Bytes of which no two neighbours are alike, nor what is a vector away. */
function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < 61; i++) bytes[i] = i * 29 + 7;
  for (let done = 61; done < length; done *= 2) {
    bytes.copyWithin(done, 0, done);
  }
  return bytes;
}

/**
 * Masks in place, into other memory two bytes on, and into the same memory seven bytes
 * on; every range is written once, so that what was wrong stays to be seen.
 */
function masksRightly(library: Library): boolean {
  const block = pattern(3 * PART);
  const target = block.subarray(PART, 2 * PART);
  const source = block.subarray(2 * PART);
  let at = 1;
  for (const length of LENGTHS) {
    library.mask(block, at, length, KEY);
    library.maskInto(target, at + 2, source, at, length, KEY);
    library.maskInto(source, at + 7, source, at, length, KEY);
    at += length + 7;
  }
  return checksum(block) === MASKED;
}

/**
 * Two frames of RFC 6455 section 5.7 (masked and unmasked "Hello"), one of 300 masked
 * bytes, one of 3 bytes whose length has the 64-bit form: a fault under checks.
 */
function frames(): Uint8Array {
  const bytes = pattern(CHUNK);
  bytes.set([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
  bytes.set([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], 11);
  bytes.set([0x02, 0xfe, 1, 44, 0x37, 0xfa, 0x21, 0x3d], 18);
  bytes.set([0x80, 0xff, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4], 326);
  return bytes;
}

/** Scans up to the fault; then, without checks, into other memory and in place. */
function scansRightly(library: Library): boolean {
  const block = new Uint8Array(2 * CHUNK + 3 * 4 * TABLE_WORDS);
  const source = block.subarray(0, CHUNK);
  const target = block.subarray(CHUNK, 2 * CHUNK);
  source.set(frames());
  // between the payloads nothing is written: a copy of the frames stays as it is there
  target.set(source);
  const scan = (into: Uint8Array | null, flags: number, table: number) =>
    library.scan(
      source,
      0,
      CHUNK,
      into,
      0,
      new Uint32Array(
        block.buffer,
        2 * CHUNK + table * 4 * TABLE_WORDS,
        TABLE_WORDS,
      ),
      flags,
      300,
    );
  return scan(null, 0, 0) === ROWS - 1 &&
    scan(target, NO_CHECKS, 1) === ROWS &&
    scan(source, NO_CHECKS, 2) === ROWS &&
    checksum(block) === SCANNED;
}

/**
 * Runs the test and leaves the library with its best kernel. Returns the kernel's
 * name; throws an error that says what went wrong.
 */
export function selfTest(library: Library): string {
  const cpu = library.cpu();
  for (let bit = 0; bit < KERNELS.length; bit++) {
    const kernel = 1 << bit;
    if ((cpu & kernel) === 0) continue;
    const wrong = library.useKernel(kernel) !== kernel
      ? "does not start"
      : !masksRightly(library)
      ? "masks wrongly"
      : !scansRightly(library)
      ? "scans wrongly"
      : null;
    if (wrong !== null) {
      throw new Error(`the self-test failed: kernel ${KERNELS[bit]} ${wrong}`);
    }
  }
  const best = library.useKernel(0);
  if (best === 0 || (cpu & best) === 0) {
    throw new Error("the self-test failed: no kernel for this CPU");
  }
  return KERNELS[31 - Math.clz32(best)]!;
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
      // What is no number may be another one each time it is asked.
      if (
        typeof length !== "number" || !library.holds(bytes, start + length)
      ) {
        portable.mask(bytes, start, length, key);
      } else library.mask(bytes, start, length, key);
    },

    maskInto(target, targetStart, source, sourceStart, length, key) {
      if (
        !(typeof length === "number" && length >= minimum.maskInto &&
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
