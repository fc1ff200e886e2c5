/**
 * Masking (RFC 6455 section 5.3): byte `i` of a payload meets byte `i mod 4` of the
 * key. Unmasking is the same.
 *
 * @module
 */

import {
  mask as maskPortably,
  maskBytesInto,
  maskInto as maskPortablyInto,
  MIN_WORD_BYTES,
  rotateKey,
} from "./backend/portable.ts";
import { current, engine } from "./backend/select.ts";
import { checkBytes, shown } from "./check.ts";
import { V8 } from "./memory.ts";

/**
 * From so many bytes on a longer loop is quicker. Below, the plain one keeps `mask` so
 * short that engines inline it: 1 ns for 2 bytes instead of 5 (JavaScriptCore).
 */
const MIN_UNROLLED_BYTES = 12;

/** The same; 0 until a backend was chosen, so that one comparison tells both. */
let minUnrolledBytes = 0;

/** Fewer bytes than this are copied here: calls pay from 8 (Bun) to 40 bytes (Node) on. */
const MIN_INTO_BYTES: number = V8 ? 24 : 8;

function checkKey(key: Uint8Array): void {
  if (!(key instanceof Uint8Array)) checkBytes(key, "key");
  if (key.length !== 4) {
    throw new RangeError(
      `Expected 'key' to be 4 bytes long, got ${key.length} bytes`,
    );
  }
}

/** The phase of the byte that is masked first; 0 where none was given. */
function checkedPhase(phase: unknown): number {
  switch (phase) {
    case 0:
    case 1:
    case 2:
    case 3:
      return phase;
    case undefined:
      return 0;
  }
  const message = `Expected 'phase' to be 0, 1, 2 or 3, got ${shown(phase)}`;
  throw typeof phase === "number"
    ? new RangeError(message)
    : new TypeError(message);
}

/** The key as the number that backends take, rotated to the phase. */
function keyNumber(key: Uint8Array, phase: number): number {
  const number = key[0]! | key[1]! << 8 | key[2]! << 16 | key[3]! << 24;
  return phase === 0 ? number : rotateKey(number, phase);
}

/**
 * Masks or unmasks bytes in place. An all-zero key changes nothing and costs nothing.
 *
 * @param bytes The bytes to change; no byte outside this view is touched
 * @param key The masking key: 4 bytes, which must not be among `bytes`
 * @param phase The index (0 to 3) of the key byte that meets `bytes[0]`
 * @returns The phase for the byte after the last, so that a payload may be masked in
 * pieces
 * @throws {TypeError} When an argument has the wrong type
 * @throws {RangeError} When `key` is not 4 bytes long, or `phase` is not 0, 1, 2 or 3
 *
 * @example
 * ```ts
 * import { mask } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = new TextEncoder().encode("Hello");
 * const key = new Uint8Array([0x37, 0xfa, 0x21, 0x3d]);
 * const phase = mask(bytes.subarray(0, 2), key);
 * mask(bytes.subarray(2), key, phase);
 * assertEquals(bytes, new Uint8Array([0x7f, 0x9f, 0x4d, 0x51, 0x58]));
 * ```
 */
export function mask(
  bytes: Uint8Array,
  key: Uint8Array,
  phase?: number,
): number;
// Two parameters, because V8 needs 4 ns to make up for one that a call leaves out.
export function mask(bytes: Uint8Array, key: Uint8Array): number {
  if (!(bytes instanceof Uint8Array)) checkBytes(bytes, "bytes");
  checkKey(key);
  const phase = arguments.length > 2 ? checkedPhase(arguments[2]) : 0;
  const length = bytes.length;
  if (length < minUnrolledBytes) {
    for (let i = 0; i < length; i++) bytes[i]! ^= key[i + phase & 3]!;
  } else if (length >= current.minBytes && current.engine !== null) {
    // Here and not below: V8 needs 3 to 4 ns for the call between.
    const number = keyNumber(key, phase);
    if (number !== 0) current.engine.mask(bytes, 0, length, number);
  } else maskLonger(bytes, length, key, phase);
  return phase + length & 3;
}

/** Written out, for a call more takes as long as masking 8 bytes. */
function maskLonger(
  bytes: Uint8Array,
  length: number,
  key: Uint8Array,
  phase: number,
): void {
  if (length < MIN_WORD_BYTES && length < current.minBytes) {
    const key0 = key[phase]!;
    const key1 = key[phase + 1 & 3]!;
    const key2 = key[phase + 2 & 3]!;
    const key3 = key[phase + 3 & 3]!;
    let i = 0;
    for (const last = length - 3; i < last; i += 4) {
      bytes[i]! ^= key0;
      bytes[i + 1]! ^= key1;
      bytes[i + 2]! ^= key2;
      bytes[i + 3]! ^= key3;
    }
    if (i < length) {
      bytes[i]! ^= key0;
      if (i + 1 < length) {
        bytes[i + 1]! ^= key1;
        if (i + 2 < length) bytes[i + 2]! ^= key2;
      }
    }
    return;
  }
  const backend = current.engine ?? engine();
  minUnrolledBytes = MIN_UNROLLED_BYTES;
  const number = keyNumber(key, phase);
  if (number === 0) return;
  if (length < backend.minBytes) maskPortably(bytes, 0, length, number);
  else backend.mask(bytes, 0, length, number);
}

/**
 * Masks or unmasks bytes into other memory, in one pass. An all-zero key makes it a
 * plain copy.
 *
 * @param target Where the result goes, from its start on. It may be longer than
 * `source`; what is behind stays. It may overlap `source` in any way
 * @param source The bytes to mask; not changed, unless `target` overlaps it
 * @param key The masking key: 4 bytes
 * @param phase The index (0 to 3) of the key byte that meets `source[0]`
 * @returns The phase for the byte after the last
 * @throws {TypeError} When an argument has the wrong type
 * @throws {RangeError} When `key` is not 4 bytes long, `phase` is not 0, 1, 2 or 3, or
 * `target` is shorter than `source`
 *
 * @example
 * ```ts
 * import { maskInto } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const source = new TextEncoder().encode("Hello");
 * const target = new Uint8Array(5);
 * maskInto(target, source, new Uint8Array([0x37, 0xfa, 0x21, 0x3d]));
 * assertEquals(target, new Uint8Array([0x7f, 0x9f, 0x4d, 0x51, 0x58]));
 * ```
 */
export function maskInto(
  target: Uint8Array,
  source: Uint8Array,
  key: Uint8Array,
  phase?: number,
): number;
export function maskInto(
  target: Uint8Array,
  source: Uint8Array,
  key: Uint8Array,
): number {
  if (!(target instanceof Uint8Array)) checkBytes(target, "target");
  if (!(source instanceof Uint8Array)) checkBytes(source, "source");
  checkKey(key);
  const phase = arguments.length > 3 ? checkedPhase(arguments[3]) : 0;
  const length = source.length;
  if (target.length < length) {
    throw new RangeError(
      `Expected 'target' to hold ${length} bytes, got ${target.length} bytes`,
    );
  }
  const backend = current.engine ?? engine();
  backend.maskInto(target, 0, source, 0, length, keyNumber(key, phase));
  return phase + length & 3;
}

/** XORs part of a view in place, by the quicker of TypeScript and C. For the reader and writer. */
export function maskRange(
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  if (key === 0) return;
  const backend = current.engine ?? engine();
  if (length < backend.minBytes) maskPortably(bytes, start, length, key);
  else backend.mask(bytes, start, length, key);
}

/**
 * A whole view of so many bytes is copied by the engine, in 10 to 16 ns (30 at 1 KiB),
 * where the call of the library takes 20 (Deno) to 50 (Node); through `bun:ffi` it takes
 * 6. Part of a view would need another one; and far longer copies are slow at some
 * alignments.
 */
const MIN_SET_BYTES: number = V8 ? 16 : 24;
const MAX_SET_BYTES = 0x1000;

/**
 * XORs part of a view into other memory, which does not overlap it; key 0 copies. For
 * the reader and writer.
 */
export function maskRangeInto(
  target: Uint8Array,
  targetStart: number,
  source: Uint8Array,
  sourceStart: number,
  length: number,
  key: number,
): void {
  if (
    key === 0 && length >= MIN_SET_BYTES && length <= MAX_SET_BYTES &&
    length === source.length && (V8 || current.engine?.name !== "bun-ffi")
  ) {
    target.set(source, targetStart);
  } else if (length < MIN_INTO_BYTES && length < current.minBytes) {
    maskBytesInto(target, targetStart, source, sourceStart, length, key);
  } else {
    (current.engine ?? engine())
      .maskInto(target, targetStart, source, sourceStart, length, key);
  }
}

/** The same where the ranges may overlap. */
export function maskRangeOver(
  target: Uint8Array,
  targetStart: number,
  source: Uint8Array,
  sourceStart: number,
  length: number,
  key: number,
): void {
  if (length < MIN_INTO_BYTES && length < current.minBytes) {
    maskPortablyInto(target, targetStart, source, sourceStart, length, key);
  } else {
    (current.engine ?? engine())
      .maskInto(target, targetStart, source, sourceStart, length, key);
  }
}
