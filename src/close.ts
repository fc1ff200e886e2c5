/**
 * Close payloads: a code and a reason (RFC 6455 sections 5.5.1 and 7.4).
 *
 * @module
 */

import { checkBytes, shown } from "./check.ts";
import { FrameError } from "./errors.ts";

/** The longest reason in bytes of UTF-8: a control payload of 125 less the code (section 5.5). */
const MAX_REASON_LENGTH = 123;

let decoder: TextDecoder | undefined;
let encoder: TextEncoder | undefined;

/**
 * Tells whether a close code may be sent in a Close frame: 1000 to 1003, 1007 to 1014,
 * and 3000 to 4999 (RFC 6455 section 7.4 and the IANA registry).
 *
 * @param code The status code
 * @returns Whether it may stand in a Close frame
 *
 * @example
 * ```ts
 * import { isValidCloseCode } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(isValidCloseCode(1000), true);
 * assertEquals(isValidCloseCode(1005), false);
 * ```
 */
export function isValidCloseCode(code: number): boolean {
  return Number.isInteger(code) &&
    (code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 ||
      code >= 3000 && code <= 4999);
}

/**
 * Reads the payload of a Close frame.
 *
 * @param payload The unmasked payload
 * @returns Its code, 1005 when it is empty, and its reason
 * @throws {FrameError} WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH when it is 1 byte or over
 * 125 bytes long, WS_ERR_INVALID_CLOSE_CODE, or WS_ERR_INVALID_UTF8
 * @throws {TypeError} When `payload` is not a Uint8Array
 *
 * @example
 * ```ts
 * import { readClosePayload } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const payload = new Uint8Array([0x03, 0xe8, 0x62, 0x79, 0x65]);
 * assertEquals(readClosePayload(payload), { code: 1000, reason: "bye" });
 * ```
 */
export function readClosePayload(
  payload: Uint8Array,
): { code: number; reason: string } {
  checkBytes(payload, "payload");
  if (payload.length === 0) return { code: 1005, reason: "" };
  if (payload.length === 1 || payload.length > 125) {
    throw new FrameError("WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH", 0);
  }
  const code = payload[0]! << 8 | payload[1]!;
  if (!isValidCloseCode(code)) {
    throw new FrameError("WS_ERR_INVALID_CLOSE_CODE", 0);
  }
  if (payload.length === 2) return { code, reason: "" };
  decoder ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    // A copy, because TextDecoder refuses shared memory in some engines.
    return {
      code,
      reason: decoder.decode(new Uint8Array(payload).subarray(2)),
    };
  } catch {
    throw new FrameError("WS_ERR_INVALID_UTF8", 0);
  }
}

/**
 * Writes the payload of a Close frame.
 *
 * @param code The status code; absent: an empty payload
 * @param reason The reason, at most 123 bytes of UTF-8
 * @returns The payload, 0 to 125 bytes
 * @throws {RangeError} When the code must not be sent, the reason is too long, or there
 * is a reason without a code
 * @throws {TypeError} When an argument has the wrong type
 *
 * @example
 * ```ts
 * import { writeClosePayload, writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const payload = writeClosePayload(1000, "bye");
 * assertEquals(payload, new Uint8Array([0x03, 0xe8, 0x62, 0x79, 0x65]));
 * assertEquals(writeFrame({ opcode: 8, payload }).length, 7);
 * ```
 */
export function writeClosePayload(
  code?: number,
  reason?: string,
): Uint8Array<ArrayBuffer> {
  return closePayload(code, reason, true);
}

/** The same; without `strict` any code of 16 bits and reasons of any length. For the writer. */
export function closePayload(
  code: number | undefined,
  reason: string | undefined,
  strict: boolean,
): Uint8Array<ArrayBuffer> {
  if (reason !== undefined && typeof reason !== "string") {
    throw new TypeError(
      `Expected 'reason' to be a string, got ${shown(reason)}`,
    );
  }
  if (code === undefined) {
    if (reason !== undefined && reason !== "") {
      throw new RangeError("Expected a code with the reason, got none");
    }
    return new Uint8Array(0);
  }
  if (typeof code !== "number") {
    throw new TypeError(`Expected 'code' to be a number, got ${shown(code)}`);
  }
  if (strict) checkCloseCode(code);
  else if (!Number.isInteger(code) || code < 0 || code > 0xffff) {
    throw new RangeError(
      `Expected 'code' to be a whole number from 0 to 65535, got ${code}`,
    );
  }
  encoder ??= new TextEncoder();
  const bytes = encoder.encode(reason ?? "");
  if (strict && bytes.length > MAX_REASON_LENGTH) {
    throw new RangeError(
      `Expected 'reason' to be at most ${MAX_REASON_LENGTH} bytes of UTF-8, got ${bytes.length} bytes`,
    );
  }
  const payload = new Uint8Array(2 + bytes.length);
  payload[0] = code >>> 8;
  payload[1] = code;
  payload.set(bytes, 2);
  return payload;
}

/** Throws unless `code` may be sent. */
export function checkCloseCode(code: number): void {
  if (!isValidCloseCode(code)) {
    throw new RangeError(
      `Expected a close code of 1000-1003, 1007-1014 or 3000-4999, got ${code}`,
    );
  }
}
