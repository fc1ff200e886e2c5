/**
 * The rules of RFC 6455 section 5 over the parts of a frame header, the reading of one by
 * them, and the checks of options. Each rule speaks as soon as the byte that shows it has
 * arrived; where one byte shows two faults, the first in the order of the list below wins.
 *
 * @module
 */

import type { FrameErrorCode } from "./errors.ts";
import type { Role } from "./frame.ts";

/** The faults of a header, in order; the number of a fault is its index (native/wsframe.h has the same). */
export const HEADER_FAULTS: readonly FrameErrorCode[] = [
  "WS_ERR_UNEXPECTED_END", // 0 is no fault of a header
  "WS_ERR_UNEXPECTED_RSV_1",
  "WS_ERR_UNEXPECTED_RSV_2_3",
  "WS_ERR_INVALID_OPCODE",
  "WS_ERR_EXPECTED_FIN",
  "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH",
  "WS_ERR_EXPECTED_MASK",
  "WS_ERR_UNEXPECTED_MASK",
  "WS_ERR_LENGTH_NOT_MINIMAL",
  "WS_ERR_INVALID_LENGTH",
  "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH",
  "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH",
];

const UNEXPECTED_RSV_1 = 1;
const UNEXPECTED_RSV_2_3 = 2;
const INVALID_OPCODE = 3;
const EXPECTED_FIN = 4;
const INVALID_CONTROL_PAYLOAD_LENGTH = 5;
const EXPECTED_MASK = 6;
const UNEXPECTED_MASK = 7;
const LENGTH_NOT_MINIMAL = 8;
const INVALID_LENGTH = 9;
const UNSUPPORTED_DATA_PAYLOAD_LENGTH = 10;
const UNSUPPORTED_MESSAGE_LENGTH = 11;

/** Rule flag: a frame without mask is a fault (the reader is a server). */
export const EXPECT_MASK = 1;
/** Rule flag: a frame with mask is a fault (the reader is a client). */
export const EXPECT_NO_MASK = 2;
/** Rule flag: an extension owns RSV1 on Text and Binary. */
export const ALLOW_RSV1 = 4;
/** Rule flag: only the two length limits are checked. */
export const NO_CHECKS = 8;

/** In a function, where an interpreter is four times as fast as at the top of a module. */
function firstByteFaults(): Uint8Array {
  const faults = new Uint8Array(512);
  for (let byte = 0; byte < 256; byte++) {
    const opcode = byte & 0x0f;
    const fault = byte & 0x30
      ? UNEXPECTED_RSV_2_3
      : (opcode & 7) > 2
      ? INVALID_OPCODE
      : opcode >= 8 && byte < 0x80
      ? EXPECTED_FIN
      : 0;
    const rsv1 = (byte & 0x40) !== 0;
    faults[byte] = rsv1 ? UNEXPECTED_RSV_1 : fault;
    faults[256 + byte] = rsv1 && opcode !== 1 && opcode !== 2
      ? UNEXPECTED_RSV_1
      : fault;
  }
  return faults;
}

/**
 * The fault that each first byte shows: one table without and one with RSV1 allowed
 * (bytes 256 on), so that the hot path is one load.
 */
const FIRST_BYTE_FAULTS: Uint8Array = firstByteFaults();

/** RSV bits, opcode and FIN (RFC 6455 sections 5.2 and 5.5). */
export function faultOfFirstByte(first: number, flags: number): number {
  if ((flags & NO_CHECKS) !== 0) return 0;
  return FIRST_BYTE_FAULTS[(flags & ALLOW_RSV1) << 6 | first]!;
}

/** The length of control frames (section 5.5), and the mask (section 5.1). */
export function faultOfSecondByte(
  first: number,
  second: number,
  flags: number,
): number {
  if ((flags & NO_CHECKS) !== 0) return 0;
  if ((first & 8) !== 0) {
    const length = second & 0x7f;
    if (length > 125 || length === 1 && (first & 0x0f) === 8) {
      return INVALID_CONTROL_PAYLOAD_LENGTH;
    }
  }
  if (second >= 0x80) return flags & EXPECT_NO_MASK ? UNEXPECTED_MASK : 0;
  return flags & EXPECT_MASK ? EXPECTED_MASK : 0;
}

/** The 16-bit form must not hold what fits in 7 bits (section 5.2). */
export function faultOfLength16(length: number, flags: number): number {
  return length < 126 && (flags & NO_CHECKS) === 0 ? LENGTH_NOT_MINIMAL : 0;
}

/** The 64-bit form: shortest (section 5.2), top bit 0, a safe integer. */
export function faultOfLength64(
  high: number,
  low: number,
  flags: number,
): number {
  if ((flags & NO_CHECKS) === 0) {
    if (high === 0 && low < 0x10000) return LENGTH_NOT_MINIMAL;
    if (high >= 0x80000000) return INVALID_LENGTH;
  }
  return high >= 0x200000 ? UNSUPPORTED_DATA_PAYLOAD_LENGTH : 0;
}

/** The reader's own limit. */
export function faultOfLength(
  length: number,
  maxPayloadLength: number,
): number {
  return length > maxPayloadLength ? UNSUPPORTED_MESSAGE_LENGTH : 0;
}

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

/** How a wrong value is shown in a message: its text where short, else its type. */
export function shown(value: unknown): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return value.length > 32
        ? `a string of ${value.length} characters`
        : JSON.stringify(value);
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    case "bigint":
      return `${value}n`;
    case "object": {
      const name = (value as object).constructor?.name;
      return typeof name === "string" && name !== ""
        ? `an instance of ${name}`
        : "an object";
    }
    default:
      return `a ${typeof value}`;
  }
}

const typedArrayTag = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)!.get!;

/**
 * Throws unless `value` is a Uint8Array (a Buffer is one; so is one of another realm).
 * `expected` says what else the caller takes.
 */
export function checkBytes(
  value: unknown,
  name: string,
  expected: string = "a Uint8Array",
): void {
  if (
    !(value instanceof Uint8Array) && typedArrayTag.call(value) !== "Uint8Array"
  ) {
    throw new TypeError(
      `Expected '${name}' to be ${expected}, got ${shown(value)}`,
    );
  }
}

/** What can be a payload. */
export const TEXT_OR_BYTES = "a string or a Uint8Array";

/** Throws unless `value` is an object to read options from. */
export function checkOptions(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null) {
    throw new TypeError(
      `Expected '${name}' to be an object, got ${shown(value)}`,
    );
  }
}

/** An optional boolean. */
export function checkFlag(
  value: unknown,
  name: string,
  fallback: boolean,
): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== "boolean") {
    throw new TypeError(
      `Expected '${name}' to be a boolean, got ${shown(value)}`,
    );
  }
  return value;
}

/** A whole number from `min` to `max`. */
export function checkRange(
  value: unknown,
  name: string,
  min: number,
  max: number,
): number {
  if (typeof value !== "number") {
    throw new TypeError(
      `Expected '${name}' to be a number, got ${shown(value)}`,
    );
  }
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(
      `Expected '${name}' to be a whole number from ${min} to ${max}, got ${value}`,
    );
  }
  return value;
}

/** A whole number from 0 to `max` (2^53 - 1 unless told). */
export function checkLength(
  value: unknown,
  name: string,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  return checkRange(value, name, 0, max);
}

/** The same where it is optional. */
export function checkCount(
  value: unknown,
  name: string,
  fallback: number,
  max?: number,
): number {
  return value === undefined ? fallback : checkLength(value, name, max);
}

function checkWord(
  value: unknown,
  name: string,
  words: readonly string[],
): void {
  if (value === undefined || words.includes(value as string)) return;
  const message = `Expected '${name}' to be ${
    words.map((word) => JSON.stringify(word)).join(" or ")
  }, got ${shown(value)}`;
  throw typeof value === "string"
    ? new RangeError(message)
    : new TypeError(message);
}

const ROLES = ["client", "server"];
const CHECKS = ["strict", "none"];

/** An optional role. */
export function checkRole(value: unknown): Role | undefined {
  checkWord(value, "role", ROLES);
  return value as Role | undefined;
}

/** Whether the option `checks` asks for the rules (the default). */
export function checkStrict(value: unknown): boolean {
  checkWord(value, "checks", CHECKS);
  return value !== "none";
}
