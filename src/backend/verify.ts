/**
 * What a library must answer before it may work: known answers through every
 * function, in every kernel that this CPU has. A compiler, a linker or an FFI that
 * does something else than on the machine where the tests ran shows here, and not
 * in a user's data. It is run once, by an interpreter, so answers are checksums and
 * loops are few: computing what is right would take ten times as long.
 *
 * @module
 */

import { SCAN_CONSUMED, SCAN_FAULT, SCAN_ROWS } from "./backend.ts";
import { checksum } from "./checksum.ts";
import type { Library } from "./library.ts";
import { NO_CHECKS } from "../check.ts";

/** Names of the bits of `wsframe_cpu`, lowest first. */
const KERNELS: readonly string[] = ["sse2", "avx2", "neon", "simd128"];

/** Enough for the unrolled loops of every kernel and for their tails. */
const LENGTH = 512;
const KEY = 0x3d21fa37;

/**
 * Ranges below a vector, between vectors and across the unrolled loops: start, length,
 * and the checksums of the bytes after `mask`, after `maskInto` other memory two
 * bytes on, and after `maskInto` the same memory seven bytes on.
 */
const MASKS: readonly (readonly [number, number, number, number, number])[] = [
  [1, 3, 0x039a3038, 0xe3bf702d, 0xc0b10b77],
  [5, 21, 0x2402fb21, 0x98ac1171, 0x2e6ea279],
  [3, 100, 0x9f260efe, 0xebd5e406, 0x799b8d2e],
  [7, 489, 0x5fcd19c0, 0x9712112e, 0x83c39c44],
];

/** What a scan of the frames below writes for each. */
const ROWS: readonly number[] = [
  ...[0x81 | 0x100 | 6 << 16, 6, 5, KEY],
  ...[0x81 | 2 << 16, 13, 5, 0],
  ...[0x02 | 0x100 | 8 << 16, 26, 300, KEY],
  ...[0x80 | 0x100 | 14 << 16, 340, 3, 0x04030201],
];
/** Where each frame starts, and where the last one ends. */
const STARTS: readonly number[] = [0, 11, 18, 326, 343];
/** The checksum of the frames when their payloads are unmasked. */
const UNMASKED = 0x7d9fd5d7;

function pattern(): Uint8Array {
  const bytes = new Uint8Array(LENGTH);
  for (let i = 0; i < 61; i++) bytes[i] = i * 29 + 7;
  for (let done = 61; done < LENGTH; done *= 2) bytes.copyWithin(done, 0, done);
  return bytes;
}

/**
 * Two frames of RFC 6455 section 5.7 (masked and unmasked "Hello"), one of 300 masked
 * bytes, one of 3 bytes whose length has the 64-bit form: a fault under checks.
 */
function frames(): Uint8Array {
  const bytes = pattern();
  bytes.set([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
  bytes.set([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], STARTS[1]);
  bytes.set([0x02, 0xfe, 1, 44, 0x37, 0xfa, 0x21, 0x3d], STARTS[2]);
  bytes.set([0x80, 0xff, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4], STARTS[3]);
  return bytes;
}

function masksRightly(library: Library): boolean {
  return MASKS.every(([start, length, inPlace, copied, moved]) => {
    const bytes = pattern();
    const target = new Uint8Array(LENGTH);
    library.maskInto(target, 2, bytes, start, length, KEY);
    if (checksum(target) !== copied) return false;
    library.mask(bytes, start, length, KEY);
    if (checksum(bytes) !== inPlace) return false;
    library.maskInto(bytes, start + 7, bytes, start, length, KEY);
    return checksum(bytes) === moved;
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
  const count = library.scan(source, 0, LENGTH, target, 0, table, flags, 300);
  return count === rows && table[SCAN_CONSUMED] === STARTS[rows] &&
    table[SCAN_FAULT] === fault &&
    ROWS.every((word, i) => table[SCAN_ROWS + i] === (i < 4 * rows ? word : 0));
}

function scansRightly(library: Library): boolean {
  const source = frames();
  // between the payloads nothing is written: a copy of the frames stays as it is there
  const target = frames();
  return scanIs(library, source, null, 0, 3, 8) &&
    scanIs(library, source, target, NO_CHECKS, 4, 0) &&
    checksum(target) === UNMASKED &&
    scanIs(library, source, source, NO_CHECKS, 4, 0) &&
    checksum(source) === UNMASKED;
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
