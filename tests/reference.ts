/** Reading a frame's header the slow and obvious way: what the engines must agree with. */

import type { FrameErrorCode } from "@wsframe/wsframe";
import {
  ALLOW_RSV1,
  EXPECT_MASK,
  EXPECT_NO_MASK,
  NO_CHECKS,
} from "../src/check.ts";

/** A complete header. */
export interface Header {
  first: number;
  headerLength: number;
  payloadLength: number;
  /** Null without one. */
  maskKey: Uint8Array | null;
}

const DATA = [1, 2];
const CONTROL = [8, 9, 10];
const OPCODES = [0, ...DATA, ...CONTROL];

/**
 * The header in `bytes[start .. end)`; null where it is not complete and shows no fault
 * so far, else the code of the first fault.
 */
export function readHeader(
  bytes: Uint8Array,
  start: number,
  end: number,
  flags: number,
  maxPayloadLength: number,
): Header | FrameErrorCode | null {
  const there = end - start;
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, there);
  const strict = (flags & NO_CHECKS) === 0;

  if (there < 1) return null;
  const first = view.getUint8(0);
  const opcode = first % 16;
  const control = CONTROL.includes(opcode);
  if (strict) {
    if (first & 0x40 && !(flags & ALLOW_RSV1 && DATA.includes(opcode))) {
      return "WS_ERR_UNEXPECTED_RSV_1";
    }
    if (first & 0x30) return "WS_ERR_UNEXPECTED_RSV_2_3";
    if (!OPCODES.includes(opcode)) return "WS_ERR_INVALID_OPCODE";
    if (control && first < 0x80) return "WS_ERR_EXPECTED_FIN";
  }

  if (there < 2) return null;
  const masked = view.getUint8(1) >= 0x80;
  const short = view.getUint8(1) % 0x80;
  if (strict) {
    if (control && short > 125 || opcode === 8 && short === 1) {
      return "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH";
    }
    if (masked && flags & EXPECT_NO_MASK) return "WS_ERR_UNEXPECTED_MASK";
    if (!masked && flags & EXPECT_MASK) return "WS_ERR_EXPECTED_MASK";
  }

  const field = short === 127 ? 8 : short === 126 ? 2 : 0;
  if (there < 2 + field) return null;
  const length = field === 8
    ? view.getBigUint64(2)
    : BigInt(field === 2 ? view.getUint16(2) : short);
  if (strict) {
    if (length < (field === 8 ? 65536n : field === 2 ? 126n : 0n)) {
      return "WS_ERR_LENGTH_NOT_MINIMAL";
    }
    if (length >= 2n ** 63n) return "WS_ERR_INVALID_LENGTH";
  }
  if (length >= 2n ** 53n) return "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH";
  if (length > maxPayloadLength) return "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";

  const headerLength = 2 + field + (masked ? 4 : 0);
  if (there < headerLength) return null;
  return {
    first,
    headerLength,
    payloadLength: Number(length),
    maskKey: masked
      ? bytes.slice(start + headerLength - 4, start + headerLength)
      : null,
  };
}
