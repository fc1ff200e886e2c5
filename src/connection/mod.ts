/**
 * The WebSocket protocol above frames, still without a socket or a clock: the opening
 * handshake as bytes, messages, the closing handshake, and permessage-deflate. Bytes in,
 * events out, and back: any transport on any runtime becomes a WebSocket with it.
 *
 * @module
 */

export { acceptKey } from "./accept_key.ts";
export {
  Connection,
  type ConnectionOptions,
  type SendOptions,
} from "./connection.ts";
export type { DeflateParameters } from "./deflate_parameters.ts";
export type {
  ConnectionClose,
  ConnectionControl,
  ConnectionEvent,
  ConnectionMessage,
} from "./events.ts";
export {
  createUpgradeRequest,
  readUpgradeResponse,
  type SentRequest,
  type UpgradeRequestInit,
} from "./handshake_client.ts";
export {
  type AcceptOptions,
  acceptUpgrade,
  type HandshakeLimits,
  type ParsedRequest,
  readUpgradeRequest,
  rejectUpgrade,
  type Upgrade,
  type UpgradeRequest,
} from "./handshake_server.ts";
export { HandshakeError } from "./http.ts";
export type { Role } from "../frame.ts";
export type { WriteOptions } from "../writer.ts";
