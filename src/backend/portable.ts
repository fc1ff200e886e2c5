/**
 * The engine in TypeScript: runs everywhere, and is what the others must agree
 * with. Bytes one by one where a word view would cost more than it saves, machine
 * words above.
 *
 * @module
 */

import {
  type Backend,
  type Candidate,
  SCAN_CONSUMED,
  SCAN_FAULT,
  SCAN_ROW_WORDS,
  SCAN_ROWS,
} from "./backend.ts";
import { parsed, parseHeader } from "../check.ts";
import { V8 } from "../memory.ts";

/**
 * From so many bytes on words pay where their view is kept: 128 bytes take 22 to 40 ns,
 * in a byte loop 60 to 90. Never below 65 in V8, which has arrays of up to 64 bytes in
 * its own heap until somebody asks for their buffer; in JavaScriptCore, where asking
 * costs 200 ns once for arrays of up to 1000 bytes, not below what they save.
 */
export const MIN_WORD_BYTES: number = V8 ? 80 : 128;

/** From so many bytes on they pay even where a view is made for them, in 20 to 50 ns. */
const MIN_VIEW_BYTES = 128;

/** A scan of fewer bytes makes no view, and no copy before it masks. */
const MIN_SCAN_BYTES = 192;

/** From so many bytes on words pay in a longer scan, which has one view for all frames. */
const MIN_SCAN_WORD_BYTES = 24;

/**
 * From so many bytes on V8 takes words of 64 bits, up to 1.7 times as fast. Until it has
 * compiled their loop for good, it makes a BigInt on the heap of each, at 50 ns: with
 * shorter ranges that takes thousands of calls (110 us each at 16 KiB, instead of 2).
 * JavaScriptCore always makes them.
 */
const MIN_WIDE_BYTES: number = V8 ? 0x10000 : Infinity;

/** So that counts of words are 32-bit numbers, in bytes. */
const MAX_NARROW_BYTES = 0x40000000;

/** The longest buffer that is kept, in bytes: a received chunk, a pool. */
const MAX_KEPT_BYTES = 0x20000;

const LITTLE_ENDIAN: boolean =
  new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

const keyPair: Int32Array = new Int32Array(2);
const keyWord: BigUint64Array = new BigUint64Array(keyPair.buffer);

/**
 * The buffer of an earlier range, and all of it as words: ranges that follow each other
 * mostly share a buffer, and a view costs as much as masking 200 bytes through it.
 */
let keptBuffer: ArrayBufferLike | null = null;
let keptWords: Int32Array = new Int32Array(0);
/** Counts ranges that were elsewhere. */
let misses = 0;

/** The key as it stands after `count` more bytes. */
export function rotateKey(key: number, count: number): number {
  const bits = (count & 3) << 3;
  // A shift by 32 is a shift by 0, so that no rotation needs no branch.
  return key >>> bits | key << (32 - bits);
}

/** Loops over bytes, in place. */
export function maskBytes(
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  const end = start + length;
  const key1 = key >>> 8;
  const key2 = key >>> 16;
  const key3 = key >>> 24;
  let i = start;
  for (const last = end - 3; i < last; i += 4) {
    bytes[i]! ^= key;
    bytes[i + 1]! ^= key1;
    bytes[i + 2]! ^= key2;
    bytes[i + 3]! ^= key3;
  }
  if (i < end) {
    bytes[i]! ^= key;
    if (i + 1 < end) {
      bytes[i + 1]! ^= key1;
      if (i + 2 < end) bytes[i + 2]! ^= key2;
    }
  }
}

/** Loops over bytes from one place to another, forward. */
export function maskBytesInto(
  target: Uint8Array,
  targetStart: number,
  source: Uint8Array,
  sourceStart: number,
  length: number,
  key: number,
): void {
  const shift = targetStart - sourceStart;
  const end = sourceStart + length;
  const key1 = key >>> 8;
  const key2 = key >>> 16;
  const key3 = key >>> 24;
  let i = sourceStart;
  for (const last = end - 3; i < last; i += 4) {
    target[i + shift] = source[i]! ^ key;
    target[i + shift + 1] = source[i + 1]! ^ key1;
    target[i + shift + 2] = source[i + 2]! ^ key2;
    target[i + shift + 3] = source[i + 3]! ^ key3;
  }
  if (i < end) {
    target[i + shift] = source[i]! ^ key;
    if (i + 1 < end) {
      target[i + shift + 1] = source[i + 1]! ^ key1;
      if (i + 2 < end) target[i + shift + 2] = source[i + 2]! ^ key2;
    }
  }
}

/** The same backward: right where the target stands behind the source, in the same memory too. */
function maskBytesBackInto(
  target: Uint8Array,
  targetStart: number,
  source: Uint8Array,
  sourceStart: number,
  length: number,
  key: number,
): void {
  const shift = targetStart - sourceStart;
  const key1 = key >>> 8;
  const key2 = key >>> 16;
  const key3 = key >>> 24;
  let i = sourceStart + length;
  const rest = length & 3;
  if (rest > 2) target[--i + shift] = source[i]! ^ key2;
  if (rest > 1) target[--i + shift] = source[i]! ^ key1;
  if (rest > 0) target[--i + shift] = source[i]! ^ key;
  while (i > sourceStart) {
    i -= 4;
    target[i + shift + 3] = source[i + 3]! ^ key3;
    target[i + shift + 2] = source[i + 2]! ^ key2;
    target[i + shift + 1] = source[i + 1]! ^ key1;
    target[i + shift] = source[i]! ^ key;
  }
}

/** The key as the word that it is in memory. */
function inMemoryOrder(key: number): number {
  return LITTLE_ENDIAN
    ? key
    : key >>> 24 | key >>> 8 & 0xff00 | key << 8 & 0xff0000 | key << 24;
}

/** The first index from `start` on at which a word can begin. */
function toWord(bytes: Uint8Array, start: number): number {
  return start + (-(bytes.byteOffset + start) & 3);
}

/** Masks by words of 32 bits; `words` begins where `bytes[base]` is, or would be. */
function maskIn(
  words: Int32Array,
  base: number,
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  const head = base - start & 3;
  if (head > 0) {
    maskBytes(bytes, start, head, key);
    key = rotateKey(key, head);
  }
  const word = inMemoryOrder(key);
  let i = (start + head - base) >> 2;
  const end = i + ((length - head) >>> 2);
  for (const last = end - 7; i < last; i += 8) {
    words[i]! ^= word;
    words[i + 1]! ^= word;
    words[i + 2]! ^= word;
    words[i + 3]! ^= word;
    words[i + 4]! ^= word;
    words[i + 5]! ^= word;
    words[i + 6]! ^= word;
    words[i + 7]! ^= word;
  }
  for (; i < end; i++) words[i]! ^= word;
  const rest = (length - head) & 3;
  if (rest > 0) maskBytes(bytes, start + length - rest, rest, key);
}

/**
 * XORs words of 64 bits. The view is made here, and the loop stands here, because V8 then
 * knows the view: 0.8 to 1.4 us for 16 KiB instead of 2.2 through a parameter.
 */
function maskWideWords(
  buffer: ArrayBufferLike,
  byteOffset: number,
  count: number,
  word: number,
): void {
  const words = new BigUint64Array(buffer, byteOffset, count);
  keyPair[0] = word;
  keyPair[1] = word;
  const wide = keyWord[0]!;
  let i = 0;
  for (const last = count - 3; i < last; i += 4) {
    words[i]! ^= wide;
    words[i + 1]! ^= wide;
    words[i + 2]! ^= wide;
    words[i + 3]! ^= wide;
  }
  for (; i < count; i++) words[i]! ^= wide;
}

/** Masks by words of 64 bits. */
function maskWide(
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  const address = bytes.byteOffset + start;
  const head = -address & 7;
  const count = Math.floor((length - head) / 8);
  maskBytes(bytes, start, head, key);
  key = rotateKey(key, head);
  maskWideWords(bytes.buffer, address + head, count, inMemoryOrder(key));
  const done = head + 8 * count;
  maskBytes(bytes, start + done, length - done, key);
}

/**
 * Masks by the words of the kept buffer. Elsewhere only every eighth time a buffer is
 * kept: where buffers take turns, each view would be made for one range.
 */
function maskNarrow(
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  const { buffer, byteOffset } = bytes;
  const end = byteOffset + start + length;
  let words = keptWords;
  let base = 0 - byteOffset;
  // A kept buffer may have been resized: a view that lost bytes has length 0.
  if (buffer !== keptBuffer || end >> 2 > words.length) {
    misses = misses + 1 & 7;
    if (
      misses === 0 && end <= buffer.byteLength &&
      (buffer.maxByteLength ?? buffer.byteLength) <= MAX_KEPT_BYTES
    ) {
      words = new Int32Array(buffer, 0, buffer.byteLength >> 2);
      keptBuffer = buffer;
      keptWords = words;
    } else if (length < MIN_VIEW_BYTES) {
      return maskBytes(bytes, start, length, key);
    } else if (length > MAX_NARROW_BYTES) {
      maskNarrow(bytes, start, MAX_NARROW_BYTES, key);
      start += MAX_NARROW_BYTES;
      length -= MAX_NARROW_BYTES;
      return maskNarrow(bytes, start, length, key);
    } else {
      base = toWord(bytes, start);
      const count = (start + length - base) >>> 2;
      words = new Int32Array(buffer, byteOffset + base, count);
    }
  }
  maskIn(words, base, bytes, start, length, key);
}

/** {@linkcode Backend.mask} in TypeScript. */
export function mask(
  bytes: Uint8Array,
  start: number,
  length: number,
  key: number,
): void {
  if (length < MIN_WORD_BYTES) maskBytes(bytes, start, length, key);
  else if (length < MIN_WIDE_BYTES) maskNarrow(bytes, start, length, key);
  else maskWide(bytes, start, length, key);
}

/** Below so many bytes a loop is quicker than a copy by the engine that is then masked. */
const MIN_COPY_BYTES = 128;

/** So much at a time, in bytes, that the second pass finds it in the nearest cache. */
const COPY_BYTES = 0x2000;

/** Of a typed array itself: a subclass may have a `set` or a constructor of its own. */
export const set: typeof Uint8Array.prototype.set = Uint8Array.prototype.set;

/**
 * {@linkcode Backend.maskInto} in TypeScript: a copy by the engine, then in place, a
 * piece at a time. A loop from words to words is as fast (1.7 us for 16 KiB) once V8 has
 * compiled its callers for good, too, but takes 57 us until then, maybe forever.
 */
export function maskInto(
  target: Uint8Array,
  targetStart: number,
  source: Uint8Array,
  sourceStart: number,
  length: number,
  key: number,
): void {
  // The direction makes every overlap right, without asking whose buffer it is.
  const backward =
    target.byteOffset + targetStart > source.byteOffset + sourceStart;
  if (length < MIN_COPY_BYTES) {
    const loop = backward ? maskBytesBackInto : maskBytesInto;
    return loop(target, targetStart, source, sourceStart, length, key);
  }
  const pieces = Math.ceil(length / COPY_BYTES);
  for (let i = 0; i < pieces; i++) {
    const at = COPY_BYTES * (backward ? pieces - 1 - i : i);
    const size = Math.min(COPY_BYTES, length - at);
    const start = source.byteOffset + sourceStart + at;
    set.call(
      target,
      new Uint8Array(source.buffer, start, size),
      targetStart + at,
    );
    if (key !== 0) mask(target, targetStart + at, size, key);
  }
}

/** {@linkcode Backend.scan} in TypeScript. */
export function scan(
  source: Uint8Array,
  start: number,
  length: number,
  target: Uint8Array | null,
  targetStart: number,
  table: Uint32Array,
  flags: number,
  maxPayloadLength: number,
): number {
  const end = start + length;
  const lastRow = table.length - SCAN_ROW_WORDS;
  let row = SCAN_ROWS;
  let at = start;
  let fault = 0;
  let masked = 0;
  while (row <= lastRow) {
    const headerLength = parseHeader(source, at, end, flags, maxPayloadLength);
    if (headerLength <= 0) {
      fault = -headerLength;
      break;
    }
    const payloadStart = at + headerLength;
    const { payloadLength, key } = parsed;
    if (payloadLength > end - payloadStart) break;
    const hasKey = source[at + 1]! & 0x80;
    masked |= hasKey;
    table[row] = source[at]! | hasKey << 1 | headerLength << 16;
    table[row + 1] = payloadStart - start;
    table[row + 2] = payloadLength;
    table[row + 3] = key;
    row += SCAN_ROW_WORDS;
    at = payloadStart + payloadLength;
  }
  table[SCAN_CONSUMED] = at - start;
  table[SCAN_FAULT] = fault;
  if (target !== null && masked !== 0) {
    const consumed = at - start;
    if (consumed < MIN_SCAN_BYTES) {
      for (let i = SCAN_ROWS; i < row; i += SCAN_ROW_WORDS) {
        if ((table[i]! & 0x100) === 0) continue;
        maskBytesInto(
          target,
          targetStart + table[i + 1]!,
          source,
          start + table[i + 1]!,
          table[i + 2]!,
          table[i + 3]!,
        );
      }
    } else {
      // One copy of everything, then each payload in place.
      if (target !== source) {
        maskInto(target, targetStart, source, start, consumed, 0);
      }
      maskRows(target, targetStart, consumed, table, row);
    }
  }
  return (row - SCAN_ROWS) / SCAN_ROW_WORDS;
}

/** Masks the payloads of the rows up to word `end` of the table, in place. */
function maskRows(
  bytes: Uint8Array,
  start: number,
  length: number,
  table: Uint32Array,
  end: number,
): void {
  const base = toWord(bytes, start);
  const count = (start + length - base) >> 2;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + base, count);
  for (let row = SCAN_ROWS; row < end; row += SCAN_ROW_WORDS) {
    // Without a mask it is 0, too.
    const key = table[row + 3]! | 0;
    if (key === 0) continue;
    const payloadStart = start + table[row + 1]!;
    const payloadLength = table[row + 2]!;
    if (payloadLength < MIN_SCAN_WORD_BYTES) {
      maskBytes(bytes, payloadStart, payloadLength, key);
    } else if (payloadLength >= MIN_WIDE_BYTES) {
      maskWide(bytes, payloadStart, payloadLength, key);
    } else {
      maskIn(words, base, bytes, payloadStart, payloadLength, key);
    }
  }
}

/** TypeScript, available everywhere. */
export const portable: Candidate = {
  name: "portable",
  open(): Backend {
    return {
      name: "portable",
      isa: V8 ? "u64" : "u32",
      minBytes: MIN_WORD_BYTES,
      mask,
      maskInto,
      scan,
    };
  },
};
