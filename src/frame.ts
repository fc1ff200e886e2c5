/**
 * What a frame is: the data types and registered numbers of RFC 6455.
 *
 * @module
 */

/**
 * The opcodes that RFC 6455 section 5.2 defines.
 *
 * @example
 * ```ts
 * import { Opcode, writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(writeFrame({ opcode: Opcode.Ping }), new Uint8Array([0x89, 0]));
 * ```
 */
export const Opcode: {
  readonly Continuation: 0;
  readonly Text: 1;
  readonly Binary: 2;
  readonly Close: 8;
  readonly Ping: 9;
  readonly Pong: 10;
} = {
  Continuation: 0,
  Text: 1,
  Binary: 2,
  Close: 8,
  Ping: 9,
  Pong: 10,
} as const;

/** Any value of the four opcode bits. The reserved ones (3-7, 11-15) pass only under `checks: "none"`. */
export type Opcode =
  | 0
  | 1
  | 2
  | 3
  | 4
  | 5
  | 6
  | 7
  | 8
  | 9
  | 10
  | 11
  | 12
  | 13
  | 14
  | 15;

/**
 * The registered close codes (RFC 6455 section 7.4.1 and the IANA registry).
 * `NoStatusReceived`, `AbnormalClosure` and `TlsHandshake` are never sent.
 *
 * @example
 * ```ts
 * import { CloseCode, isValidCloseCode } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(isValidCloseCode(CloseCode.GoingAway), true);
 * assertEquals(isValidCloseCode(CloseCode.AbnormalClosure), false);
 * ```
 */
export const CloseCode: {
  readonly Normal: 1000;
  readonly GoingAway: 1001;
  readonly ProtocolError: 1002;
  readonly UnsupportedData: 1003;
  readonly NoStatusReceived: 1005;
  readonly AbnormalClosure: 1006;
  readonly InvalidPayload: 1007;
  readonly PolicyViolation: 1008;
  readonly MessageTooBig: 1009;
  readonly MandatoryExtension: 1010;
  readonly InternalError: 1011;
  readonly ServiceRestart: 1012;
  readonly TryAgainLater: 1013;
  readonly BadGateway: 1014;
  readonly TlsHandshake: 1015;
  readonly Unauthorized: 3000;
  readonly Forbidden: 3003;
  readonly Timeout: 3008;
} = {
  Normal: 1000,
  GoingAway: 1001,
  ProtocolError: 1002,
  UnsupportedData: 1003,
  NoStatusReceived: 1005,
  AbnormalClosure: 1006,
  InvalidPayload: 1007,
  PolicyViolation: 1008,
  MessageTooBig: 1009,
  MandatoryExtension: 1010,
  InternalError: 1011,
  ServiceRestart: 1012,
  TryAgainLater: 1013,
  BadGateway: 1014,
  TlsHandshake: 1015,
  Unauthorized: 3000,
  Forbidden: 3003,
  Timeout: 3008,
} as const;

/** What a frame header says (RFC 6455 section 5.2). */
export interface FrameHeader {
  /** Whether this is the last frame of its message. */
  fin: boolean;
  /** The first reserved bit; permessage-deflate owns it where negotiated (RFC 7692). */
  rsv1: boolean;
  /** The second reserved bit. */
  rsv2: boolean;
  /** The third reserved bit. */
  rsv3: boolean;
  /** What the payload is. */
  opcode: Opcode;
  /** The length of the payload in bytes, 0 to 2^53 - 1. */
  payloadLength: number;
  /** The four bytes of the masking key, or null when the MASK bit is 0. */
  maskKey: Uint8Array | null;
}

/** A frame as it was read; its payload is unmasked. */
export interface Frame {
  /** Whether this is the last frame of its message. */
  fin: boolean;
  /** The first reserved bit; permessage-deflate owns it where negotiated (RFC 7692). */
  rsv1: boolean;
  /** The second reserved bit. */
  rsv2: boolean;
  /** The third reserved bit. */
  rsv3: boolean;
  /** What the payload is. */
  opcode: Opcode;
  /**
   * The payload, unmasked; under `partial` the piece of it that arrived. Its buffer may hold
   * other payloads too: copy it before you transfer its buffer.
   */
  payload: Uint8Array;
  /**
   * The four bytes of the masking key, or null when the MASK bit was 0. A getter, which a
   * spread or `structuredClone` of the frame leaves out.
   */
  readonly maskKey: Uint8Array | null;
  /** Where the frame's first byte stands in the stream read so far, in bytes. */
  byteOffset: number;
  /** Only under `partial`: the length of the whole frame's payload in bytes. */
  payloadLength?: number;
  /** Only under `partial`: where in the whole payload this piece starts, in bytes. */
  payloadOffset?: number;
  /** Only under `partial`: whether this piece ends the frame. */
  last?: boolean;
}

/** A frame to be written. */
export interface FrameInit {
  /** What the payload is. */
  opcode: Opcode;
  /** The payload, never changed; a string is written as UTF-8. Absent: empty. */
  payload?: Uint8Array | string | undefined;
  /** Whether this is the last frame of its message (default true). */
  fin?: boolean | undefined;
  /** The first reserved bit (default false). */
  rsv1?: boolean | undefined;
  /** The second reserved bit (default false); only under `checks: "none"`. */
  rsv2?: boolean | undefined;
  /** The third reserved bit (default false); only under `checks: "none"`. */
  rsv3?: boolean | undefined;
}

/** Which end of the connection reads or writes: a client masks, a server does not. */
export type Role = "client" | "server";
