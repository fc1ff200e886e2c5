/**
 * Reading one frame header from bytes (RFC 6455 section 5.2).
 *
 * @module
 */

import {
  faultOfFirstByte,
  faultOfLength,
  faultOfLength16,
  faultOfLength64,
  faultOfSecondByte,
} from "./check.ts";

/** The longest frame header in bytes: 2, an 8-byte length, a 4-byte key. */
export const MAX_HEADER_LENGTH = 14;

/** What {@linkcode parseHeader} found besides its result: reused, since it is called per frame. */
export const parsed: {
  /** The payload length in bytes. */
  payloadLength: number;
  /** The key as one little-endian 32-bit number; 0 without one. */
  key: number;
} = { payloadLength: 0, key: 0 };

/**
 * Reads the header in `bytes[start .. end)` and judges each part as soon as it is
 * there.
 *
 * @returns The length of the header, when it is complete ({@linkcode parsed} then
 * holds the rest); 0, when it needs more bytes; or the number of the fault, negated
 */
export function parseHeader(
  bytes: Uint8Array,
  start: number,
  end: number,
  flags: number,
  maxPayloadLength: number,
): number {
  if (start >= end) return 0;
  const first = bytes[start]!;
  let fault = faultOfFirstByte(first, flags);
  if (fault !== 0) return -fault;
  if (start + 1 >= end) return 0;
  const second = bytes[start + 1]!;
  fault = faultOfSecondByte(first, second, flags);
  if (fault !== 0) return -fault;
  let length = second & 0x7f;
  let at = start + 2;
  if (length === 126) {
    at += 2;
    if (at > end) return 0;
    length = bytes[start + 2]! << 8 | bytes[start + 3]!;
    fault = faultOfLength16(length, flags);
    if (fault !== 0) return -fault;
  } else if (length === 127) {
    at += 8;
    if (at > end) return 0;
    const high = (bytes[start + 2]! << 24 | bytes[start + 3]! << 16 |
      bytes[start + 4]! << 8 | bytes[start + 5]!) >>> 0;
    const low = (bytes[start + 6]! << 24 | bytes[start + 7]! << 16 |
      bytes[start + 8]! << 8 | bytes[start + 9]!) >>> 0;
    fault = faultOfLength64(high, low, flags);
    if (fault !== 0) return -fault;
    length = high * 0x100000000 + low;
  }
  fault = faultOfLength(length, maxPayloadLength);
  if (fault !== 0) return -fault;
  let key = 0;
  if (second >= 0x80) {
    at += 4;
    if (at > end) return 0;
    key = bytes[at - 4]! | bytes[at - 3]! << 8 | bytes[at - 2]! << 16 |
      bytes[at - 1]! << 24;
  }
  parsed.payloadLength = length;
  parsed.key = key;
  return at - start;
}
