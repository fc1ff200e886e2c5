/**
 * What a connection tells its owner.
 *
 * @module
 */

/** A message, a control frame, or the end of a connection. */
export type ConnectionEvent =
  | ConnectionMessage
  | ConnectionControl
  | ConnectionClose;

/** A message; under `partial`, a piece of one. */
export type ConnectionMessage =
  | {
    /** A text message. */
    type: "text";
    /** The text. */
    data: string;
    /** Only under `partial`: whether this piece ends the message. */
    last?: boolean;
  }
  | {
    /** A binary message. */
    type: "binary";
    /**
     * The bytes, which are the receiver's to keep. Small messages of one chunk share its
     * memory, 64 KiB at most: keep a copy where few of many are kept for long.
     */
    data: Uint8Array;
    /** Only under `partial`: whether this piece ends the message. */
    last?: boolean;
  };

/** A Ping, which was answered unless `autoPong` is false, or a Pong. */
export interface ConnectionControl {
  /** Which of the two. */
  type: "ping" | "pong";
  /** The payload, at most 125 bytes. */
  data: Uint8Array;
}

/** The connection is closed. No event follows it. */
export interface ConnectionClose {
  /** The last event. */
  type: "close";
  /**
   * The code that the peer sent; 1005 when its Close had none; 1006 when the transport
   * ended without a Close; after a fault of the peer, the code that tells which; 1011
   * when this side could not go on.
   */
  code: number;
  /** The reason that the peer sent; after a fault of the peer, what it was. */
  reason: string;
  /** Whether the peer sent a valid Close. */
  clean: boolean;
}
