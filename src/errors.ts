/**
 * The one error a peer's bytes can cause. Mistakes of the caller are
 * TypeError and RangeError; a fault of the stream is a {@linkcode FrameError}
 * that carries the close code an endpoint answers with (RFC 6455 section 7.4).
 *
 * @module
 */

/** What was wrong with the stream. The names that users of npm `ws` know are kept. */
export type FrameErrorCode =
  | "WS_ERR_UNEXPECTED_RSV_1"
  | "WS_ERR_UNEXPECTED_RSV_2_3"
  | "WS_ERR_INVALID_OPCODE"
  | "WS_ERR_EXPECTED_FIN"
  | "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH"
  | "WS_ERR_EXPECTED_MASK"
  | "WS_ERR_UNEXPECTED_MASK"
  | "WS_ERR_LENGTH_NOT_MINIMAL"
  | "WS_ERR_INVALID_LENGTH"
  | "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH"
  | "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
  | "WS_ERR_TOO_MANY_BUFFERED_PARTS"
  | "WS_ERR_INVALID_CLOSE_CODE"
  | "WS_ERR_INVALID_UTF8"
  | "WS_ERR_INVALID_DEFLATE"
  | "WS_ERR_UNEXPECTED_END";

/** The close code (RFC 6455 section 7.4.1) and the sentence of each fault. */
const FAULTS: Record<FrameErrorCode, [closeCode: number, message: string]> = {
  WS_ERR_UNEXPECTED_RSV_1: [
    1002,
    "RSV1 is set, and no extension owns it here (allowRsv1, deflate)",
  ],
  WS_ERR_UNEXPECTED_RSV_2_3: [1002, "RSV2 or RSV3 is set"],
  WS_ERR_INVALID_OPCODE: [1002, "The opcode is reserved or out of order"],
  WS_ERR_EXPECTED_FIN: [1002, "A control frame is fragmented"],
  WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH: [
    1002,
    "The payload length is not one that this control frame may have",
  ],
  WS_ERR_EXPECTED_MASK: [1002, "A frame to a server is not masked"],
  WS_ERR_UNEXPECTED_MASK: [1002, "A frame to a client is masked"],
  WS_ERR_LENGTH_NOT_MINIMAL: [
    1002,
    "The payload length is not in its shortest form",
  ],
  WS_ERR_INVALID_LENGTH: [
    1002,
    "The top bit of the 64-bit payload length is set",
  ],
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: [
    1009,
    "The payload length is above 2^53 - 1",
  ],
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: [
    1009,
    "The payload or message is longer than maxPayloadLength or maxMessageLength",
  ],
  WS_ERR_TOO_MANY_BUFFERED_PARTS: [
    1008,
    "The message has more fragments than the reader allows",
  ],
  WS_ERR_INVALID_CLOSE_CODE: [
    1002,
    "The close code is one that must not be sent",
  ],
  WS_ERR_INVALID_UTF8: [1007, "The text is not valid UTF-8"],
  WS_ERR_INVALID_DEFLATE: [1007, "The compressed data is broken"],
  WS_ERR_UNEXPECTED_END: [1006, "The stream ended inside a frame"],
};

/**
 * A fault in the bytes of a peer.
 *
 * @example
 * ```ts
 * import { FrameError, readFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * try {
 *   readFrame(new Uint8Array([0x83, 0x00]));
 * } catch (error) {
 *   if (!(error instanceof FrameError)) throw error;
 *   assertEquals(error.code, "WS_ERR_INVALID_OPCODE");
 *   assertEquals(error.closeCode, 1002);
 *   assertEquals(error.byteOffset, 0);
 * }
 * ```
 */
export class FrameError extends Error {
  /** Which rule was broken. */
  code: FrameErrorCode;
  /** The status code to close with: 1002, 1006, 1007, 1008 or 1009. */
  closeCode: number;
  /** Where in the stream the faulty frame starts, in bytes. */
  byteOffset: number;

  /**
   * Makes the error of a broken rule.
   *
   * @param code Which rule was broken
   * @param byteOffset Where in the stream the faulty frame starts, in bytes
   */
  constructor(code: FrameErrorCode, byteOffset: number) {
    const [closeCode, message] = FAULTS[code];
    super(`${message} (in the frame at byte ${byteOffset})`);
    this.name = "FrameError";
    this.code = code;
    this.closeCode = closeCode;
    this.byteOffset = byteOffset;
  }
}
