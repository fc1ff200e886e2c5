/**
 * Masks WebSocket payloads and reads and writes WebSocket frames (RFC 6455) at native
 * speed, with one API under Deno, Bun and Node. Bytes in, frames out, and back: it
 * opens no socket, reads no clock and has no dependencies.
 *
 * @example
 * ```ts
 * import { FrameReader, writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = writeFrame({ opcode: 1, payload: "Hello" }, { role: "client" });
 * const reader = new FrameReader({ role: "server" });
 * for (const frame of reader.push(bytes)) {
 *   assertEquals(new TextDecoder().decode(frame.payload), "Hello");
 * }
 * ```
 *
 * @module
 */

export { backend, backends, useBackend } from "./src/backend/list.ts";
export type { BackendInfo, BackendStatus } from "./src/backend/select.ts";
export type { BackendName } from "./src/backend/backend.ts";
export {
  isValidCloseCode,
  readClosePayload,
  writeClosePayload,
} from "./src/close.ts";
export { FrameError } from "./src/errors.ts";
export type { FrameErrorCode } from "./src/errors.ts";
export { CloseCode, Opcode } from "./src/frame.ts";
export type { Frame, FrameHeader, FrameInit, Role } from "./src/frame.ts";
export { mask, maskInto } from "./src/mask.ts";
export { generateMaskKey } from "./src/mask_key.ts";
export { recycle } from "./src/memory.ts";
export { FrameReader, readFrame, readFrameHeader } from "./src/reader.ts";
export type { ReadOptions } from "./src/reader.ts";
export { FrameDecoderStream, FrameEncoderStream } from "./src/streams.ts";
export type {
  FrameDecoderStreamConstructor,
  FrameEncoderStreamConstructor,
} from "./src/streams.ts";
export {
  frameByteLength,
  FrameWriter,
  writeFrame,
  writeFrameHeader,
  writeFrameInto,
} from "./src/writer.ts";
export type { WriteOptions } from "./src/writer.ts";
