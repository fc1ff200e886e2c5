/**
 * What a library must answer before it may work: known answers through every
 * function, in every kernel that this CPU has. A compiler, a linker or an FFI that
 * does something else than on the machine where the tests ran shows here, and not
 * in a user's data. All of it is run once, by an interpreter, so loops are few.
 *
 * @module
 */

import { SCAN_CONSUMED, SCAN_FAULT, SCAN_ROWS } from "./backend.ts";
import type { Library } from "./library.ts";
import { NO_CHECKS } from "../check.ts";

/** Names of the bits of `wsframe_cpu`, lowest first. */
const KERNELS: readonly string[] = ["sse2", "avx2", "neon", "simd128"];

const KEY = 0x3d21fa37;
/** Enough for the unrolled loops of every kernel and for their tails. */
const LENGTH = 512;
/** Start and length: below a vector, between vectors, across the unrolled loops. */
const RANGES: readonly (readonly [number, number])[] = [
  [1, 3],
  [5, 21],
  [3, 100],
  [7, 489],
];

/** What masking a range must give: in place, two bytes on, and seven bytes on in place. */
interface MaskAnswer {
  readonly start: number;
  readonly length: number;
  readonly inPlace: Uint8Array;
  readonly copied: Uint8Array;
  readonly moved: Uint8Array;
}

interface Answers {
  readonly pattern: Uint8Array;
  readonly masks: readonly MaskAnswer[];
  readonly frames: Uint8Array;
  /** The frames with every payload unmasked. */
  readonly unmasked: Uint8Array;
}

function maskAnswer(
  pattern: Uint8Array,
  start: number,
  length: number,
): MaskAnswer {
  const inPlace = pattern.slice();
  xor(inPlace, start, length, KEY);
  const masked = inPlace.subarray(start, start + length);
  const copied = new Uint8Array(LENGTH);
  copied.set(masked, 2);
  const moved = pattern.slice();
  moved.set(masked, start + 7);
  return { start, length, inPlace, copied, moved };
}

function xor(bytes: Uint8Array, start: number, length: number, key: number) {
  for (let i = 0; i < length; i++) bytes[start + i]! ^= key >>> 8 * (i & 3);
}

/** Where the frames below start, and where the last one ends. */
const STARTS = [0, 11, 18, 326, 343] as const;

/** The rows that `scan` writes for them. */
const ROWS: readonly number[] = [
  ...[0x81 | 0x100 | 6 << 16, 6, 5, KEY],
  ...[0x81 | 2 << 16, 13, 5, 0],
  ...[0x02 | 0x100 | 8 << 16, 26, 300, KEY],
  ...[0x80 | 0x100 | 14 << 16, 340, 3, 0x04030201],
];

/**
 * Two frames of RFC 6455 section 5.7 (masked and unmasked "Hello"), one of 300 masked
 * bytes, one of 3 bytes whose length has the 64-bit form: a fault under checks.
 */
function framesIn(pattern: Uint8Array): Uint8Array {
  const bytes = pattern.slice();
  bytes.set([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
  bytes.set([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], STARTS[1]);
  bytes.set([0x02, 0xfe, 1, 44, 0x37, 0xfa, 0x21, 0x3d], STARTS[2]);
  bytes.set([0x80, 0xff, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4], STARTS[3]);
  return bytes;
}

function answers(): Answers {
  const pattern = new Uint8Array(LENGTH);
  for (let i = 0; i < LENGTH; i++) pattern[i] = i * 29 + 7;
  const frames = framesIn(pattern);
  const unmasked = frames.slice();
  for (let row = 0; row < ROWS.length; row += 4) {
    xor(unmasked, ROWS[row + 1]!, ROWS[row + 2]!, ROWS[row + 3]!);
  }
  const masks = RANGES.map(([start, length]) =>
    maskAnswer(pattern, start, length)
  );
  return { pattern, masks, frames, unmasked };
}

/** Compares arrays of LENGTH bytes. */
function same(actual: Uint8Array, expected: Uint8Array): boolean {
  const a = new Int32Array(actual.buffer);
  const b = new Int32Array(expected.buffer);
  for (let i = 0; i < LENGTH / 4; i++) if (a[i] !== b[i]) return false;
  return true;
}

function masksRightly(library: Library, { pattern, masks }: Answers): boolean {
  return masks.every(({ start, length, inPlace, copied, moved }) => {
    const bytes = pattern.slice();
    library.mask(bytes, start, length, KEY);
    const target = new Uint8Array(LENGTH);
    library.maskInto(target, 2, pattern, start, length, KEY);
    const overlapping = pattern.slice();
    library.maskInto(overlapping, start + 7, overlapping, start, length, KEY);
    return same(bytes, inPlace) && same(target, copied) &&
      same(overlapping, moved);
  });
}

/** Scans the frames and compares rows, consumed bytes and fault. */
function scanIs(
  library: Library,
  source: Uint8Array,
  target: Uint8Array | null,
  flags: number,
  rows: number,
  fault: number,
): boolean {
  const table = new Uint32Array(SCAN_ROWS + ROWS.length);
  const count = library.scan(
    source,
    0,
    LENGTH,
    target,
    0,
    table,
    flags,
    300,
  );
  return count === rows && table[SCAN_CONSUMED] === STARTS[rows] &&
    table[SCAN_FAULT] === fault &&
    ROWS.every((word, i) => table[SCAN_ROWS + i] === (i < 4 * rows ? word : 0));
}

function scansRightly(library: Library, answers: Answers): boolean {
  const { frames, unmasked } = answers;
  const inPlace = frames.slice();
  // bytes between payloads stay as they are: here they are those of the frames
  const target = frames.slice();
  return scanIs(library, frames, null, 0, 3, 8) &&
    scanIs(library, inPlace, inPlace, NO_CHECKS, 4, 0) &&
    same(inPlace, unmasked) &&
    scanIs(library, frames, target, NO_CHECKS, 4, 0) &&
    same(target, unmasked);
}

/**
 * Runs the test and leaves the library with its best kernel. Returns the kernel's
 * name; throws an error that says what went wrong.
 */
export function selfTest(library: Library): string {
  const known = answers();
  const cpu = library.cpu();
  for (let bit = 0; bit < KERNELS.length; bit++) {
    const kernel = 1 << bit;
    if ((cpu & kernel) === 0) continue;
    const wrong = library.useKernel(kernel) !== kernel
      ? "does not start"
      : !masksRightly(library, known)
      ? "masks wrongly"
      : !scansRightly(library, known)
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
