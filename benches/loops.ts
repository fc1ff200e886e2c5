/**
 * The plain ways of masking that the tables compare with, and the data and the
 * encoder the checks use: nothing here comes from the library under test.
 *
 * @module
 */

/** XORs byte by byte: the oracle. */
export function byteLoop(bytes: Uint8Array, key: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] ^= key[i & 3];
}

/** Bytes up to a boundary of `width`, and the key from there on. */
function head(bytes: Uint8Array, key: Uint8Array, width: number): number {
  const length = Math.min(bytes.length, -bytes.byteOffset & (width - 1));
  for (let i = 0; i < length; i++) bytes[i] ^= key[i & 3];
  return length;
}

/** The key from a phase on, as a 32-bit word. */
function word(key: Uint8Array, phase: number): number {
  return key[phase & 3] | key[phase + 1 & 3] << 8 | key[phase + 2 & 3] << 16 |
    key[phase + 3 & 3] << 24;
}

/** XORs 32-bit words. */
export function words32(bytes: Uint8Array, key: Uint8Array): void {
  const start = head(bytes, key, 4);
  if (start === bytes.length) return;
  const count = (bytes.length - start) >>> 2;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + start, count);
  const mask = word(key, start);
  for (let i = 0; i < count; i++) words[i] ^= mask;
  for (let i = start + count * 4; i < bytes.length; i++) bytes[i] ^= key[i & 3];
}

/** XORs 64-bit words. */
export function words64(bytes: Uint8Array, key: Uint8Array): void {
  const start = head(bytes, key, 8);
  if (start === bytes.length) return;
  const count = (bytes.length - start) >>> 3;
  const words = new BigUint64Array(
    bytes.buffer,
    bytes.byteOffset + start,
    count,
  );
  const half = BigInt(word(key, start) >>> 0);
  const mask = half << 32n | half;
  for (let i = 0; i < count; i++) words[i] ^= mask;
  for (let i = start + count * 8; i < bytes.length; i++) bytes[i] ^= key[i & 3];
}

/** Bytes that look random and are the same in every run. */
export function testBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** Whether two ranges hold the same bytes. */
export function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** The key of every masked frame of the tables. */
export const KEY: Buffer = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** Encodes one binary frame, FIN set (RFC 6455 section 5.2). */
export function encodeFrame(
  payload: Uint8Array,
  key: Uint8Array | null = KEY,
): Buffer {
  const { length } = payload;
  const extended = length < 126 ? 0 : length < 65536 ? 2 : 8;
  const frame = Buffer.alloc(2 + extended + (key ? 4 : 0) + length);
  frame[0] = 0x82;
  frame[1] = extended === 0 ? length : extended === 2 ? 126 : 127;
  if (extended === 2) frame.writeUInt16BE(length, 2);
  if (extended === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const body = frame.subarray(frame.length - length);
  body.set(payload);
  if (key) {
    frame[1] |= 0x80;
    frame.set(key, 2 + extended);
    byteLoop(body, key);
  }
  return frame;
}

/** The payload of one masked frame, or null where it is not one of this length. */
export function decodeFrame(
  frame: Uint8Array,
  payloadLength: number,
): Uint8Array | null {
  const start = frame.length - payloadLength;
  const expected = encodeFrame(new Uint8Array(payloadLength), KEY);
  if (expected.length !== frame.length) return null;
  if (!same(expected.subarray(0, start - 4), frame.subarray(0, start - 4))) {
    return null;
  }
  const payload = Uint8Array.from(frame.subarray(start));
  byteLoop(payload, frame.subarray(start - 4, start));
  return payload;
}
