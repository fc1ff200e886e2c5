/**
 * The API of `@wsframe/wsframe` with the engines that need no native library: `wasm`
 * and `portable`. Its import graph carries no embedded library, for browser bundles.
 *
 * @module
 */

export { backend, backends, useBackend } from "./backend/list_web.ts";
export type { BackendInfo, BackendStatus } from "./backend/select.ts";
export type { BackendName } from "./backend/backend.ts";
export {
  isValidCloseCode,
  readClosePayload,
  writeClosePayload,
} from "./close.ts";
export { FrameError } from "./errors.ts";
export type { FrameErrorCode } from "./errors.ts";
export { CloseCode, Opcode } from "./frame.ts";
export type { Frame, FrameHeader, FrameInit, Role } from "./frame.ts";
export { mask, maskInto } from "./mask.ts";
export { generateMaskKey } from "./mask_key.ts";
export { recycle } from "./memory.ts";
export { FrameReader, readFrame, readFrameHeader } from "./reader.ts";
export type { ReadOptions } from "./reader.ts";
export { FrameDecoderStream, FrameEncoderStream } from "./streams.ts";
export type {
  FrameDecoderStreamConstructor,
  FrameEncoderStreamConstructor,
} from "./streams.ts";
export {
  frameByteLength,
  FrameWriter,
  writeFrame,
  writeFrameHeader,
  writeFrameInto,
} from "./writer.ts";
export type { WriteOptions } from "./writer.ts";
