/**
 * The rules of RFC 6455 section 5 over one frame header. Reading a header and
 * judging it are two things; this file judges. Each rule speaks as soon as the
 * byte that shows it has arrived; where one byte shows two faults the first in
 * the order of the list below wins.
 *
 * @module
 */

import type { FrameErrorCode } from "./errors.ts";

/** The faults of a header in order; a fault's number is its index. Shared with native/wsframe.h. */
export const HEADER_FAULTS: readonly (FrameErrorCode | null)[] = [
  null,
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
