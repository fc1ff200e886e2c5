/**
 * A recording, read frame by frame in the order in which its bytes passed, and
 * every frame written again.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { type Frame, FrameReader, Opcode, writeFrame } from "../../mod.ts";
import {
  chunksOf,
  headLength,
  Inflater,
  readBytes,
  type Recording,
  type Side,
} from "../../tests/recordings.ts";

/** A frame as it was read. */
export interface Seen {
  from: Side;
  /** Of its first byte in all that this side sent, the HTTP head included. */
  offset: number;
  frame: Frame;
  /** How many bytes it had on the wire. */
  byteLength: number;
  /** Whether it belongs to a text message, to a binary one, or is a control frame. */
  kind: "text" | "binary" | "control";
  /** Whether it belongs to a compressed message. */
  deflated: boolean;
  /** The inflated message, on the last frame of a compressed one. */
  message: Uint8Array | undefined;
  /** Whether writing it again gave the bytes that were read. */
  identical: boolean;
}

/** What is known of one side of a connection. */
class Direction {
  readonly head: string;
  readonly headLength: number;
  readonly #from: Side;
  readonly #sent: Uint8Array;
  readonly #reader: FrameReader;
  readonly #inflater: Inflater;
  #skip: number;
  #kind: "text" | "binary" = "text";
  #deflated: Uint8Array[] | undefined;

  constructor(recording: Recording, from: Side) {
    this.#from = from;
    this.#sent = readBytes(recording.name, from);
    this.headLength = headLength(this.#sent);
    this.#skip = this.headLength;
    this.head = new TextDecoder().decode(
      this.#sent.subarray(0, this.headLength),
    );
    this.#reader = new FrameReader({
      role: from === "client" ? "server" : "client",
      allowRsv1: recording.extensions !== null,
    });
    this.#inflater = new Inflater(recording, from);
  }

  *receive(chunk: Uint8Array): Generator<Seen> {
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    for (const frame of this.#reader.push(chunk.subarray(skipped))) {
      yield this.#look(frame);
    }
  }

  end(): void {
    this.#reader.end();
  }

  #look(frame: Frame): Seen {
    const { opcode, fin, rsv1, payload, maskKey, byteOffset } = frame;
    const offset = this.headLength + byteOffset;
    const again = writeFrame(frame, { maskKey });
    const read = this.#sent.subarray(offset, offset + again.length);
    const seen: Seen = {
      from: this.#from,
      offset,
      frame,
      byteLength: again.length,
      kind: "control",
      deflated: false,
      message: undefined,
      identical: Buffer.compare(again, read) === 0,
    };
    if (opcode >= Opcode.Close) return seen;

    if (opcode !== Opcode.Continuation) {
      this.#kind = opcode === Opcode.Text ? "text" : "binary";
      this.#deflated = rsv1 ? [] : undefined;
    }
    seen.kind = this.#kind;
    if (this.#deflated) {
      seen.deflated = true;
      this.#deflated.push(payload);
      if (fin) {
        seen.message = this.#inflater.message(Buffer.concat(this.#deflated));
      }
    }
    return seen;
  }
}

/** A recording, taken apart. */
export interface Traffic {
  recording: Recording;
  /** The HTTP heads of the handshake. */
  heads: Record<Side, string>;
  /** Every frame, in the order in which their last bytes passed. */
  frames: Seen[];
  /** Bytes of all frames, as recorded. */
  byteLength: number;
}

/** Reads a whole recording. */
export function readTraffic(recording: Recording): Traffic {
  const client = new Direction(recording, "client");
  const server = new Direction(recording, "server");
  const frames: Seen[] = [];
  let byteLength = -client.headLength - server.headLength;
  for (const { from, bytes } of chunksOf(recording)) {
    byteLength += bytes.length;
    frames.push(...(from === "client" ? client : server).receive(bytes));
  }
  client.end();
  server.end();
  const heads = { client: client.head, server: server.head };
  return { recording, heads, frames, byteLength };
}
