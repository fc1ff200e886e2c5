/**
 * The recorded traffic in `tests/data/`, which `record.ts` made. How it is laid
 * out is stated here once.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { inflateRawSync } from "node:zlib";
import type { Received } from "./record_peer.ts";

/** Which end of a connection sent something. */
export type Side = "client" | "server";

/** One recorded connection, from the handshake to the Close, as the index has it. */
export interface Recording {
  /** Also the name of its files: `NAME.client.bin` and `NAME.server.bin`. */
  name: string;
  /** What the ends were, with versions. */
  client: string;
  server: string;
  /** What the server accepted in `Sec-WebSocket-Extensions`, null without. */
  extensions: string | null;
  /** Lengths of the TCP chunks in the order they passed: above 0 from the client, below from the server. */
  chunks: number[];
  /** How many frames each end sent, by the name of their opcode. */
  frames: Record<Side, Record<string, number>>;
  /** The messages each end received, as its own parser gave them out. */
  received: Record<Side, Received[]>;
  /** How the connection ended, as each end saw it. */
  close: Record<Side, { code: number; reason: string }>;
}

/** A chunk as it passed, and where it stands in all that its side sent. */
export interface Chunk {
  from: Side;
  bytes: Uint8Array;
}

const DATA = new URL("./data/", import.meta.url);

/** The date of the recordings, and all of them. */
export function readIndex(): { recorded: string; recordings: Recording[] } {
  return JSON.parse(readFileSync(new URL("index.json", DATA), "utf8"));
}

/** All that one side of a recording sent, its HTTP head first. */
export function readBytes(name: string, side: Side): Uint8Array {
  return readFileSync(new URL(`${name}.${side}.bin`, DATA));
}

/** The length of the HTTP head that `bytes` begin with, its blank line included. */
export function headLength(bytes: Uint8Array): number {
  for (let end = 4; end <= bytes.length; end++) {
    if (
      bytes[end - 4] === 13 && bytes[end - 3] === 10 &&
      bytes[end - 2] === 13 && bytes[end - 1] === 10
    ) return end;
  }
  throw new RangeError(`No blank line in ${bytes.length} bytes`);
}

/** The chunks of a recording in the order they passed. */
export function chunksOf({ name, chunks }: Recording): Chunk[] {
  const sent = {
    client: readBytes(name, "client"),
    server: readBytes(name, "server"),
  };
  const at = { client: 0, server: 0 };
  return chunks.map((signed) => {
    const from = signed > 0 ? "client" : "server";
    const start = at[from];
    at[from] += Math.abs(signed);
    return { from, bytes: sent[from].subarray(start, at[from]) };
  });
}

/** What the sender of a compressed message left away (RFC 7692, section 7.2.1). */
const TAIL = Uint8Array.of(0x00, 0x00, 0xff, 0xff);
/** An empty last block: makes a stream of messages one that has an end. */
const END = Uint8Array.of(0x01, 0x00, 0x00, 0xff, 0xff);

/**
 * Inflates the messages of one side, in order. Each time all of them from the
 * first one on, which is slow and simple, and right with context takeover.
 */
export class Inflater {
  readonly #takeover: boolean;
  #deflated: Uint8Array[] = [];
  #inflatedLength = 0;

  constructor({ extensions }: Recording, side: Side) {
    this.#takeover = !extensions?.includes(`${side}_no_context_takeover`);
  }

  message(payload: Uint8Array): Uint8Array {
    if (!this.#takeover) {
      this.#deflated = [];
      this.#inflatedLength = 0;
    }
    this.#deflated.push(payload, TAIL);
    const all = inflateRawSync(Buffer.concat([...this.#deflated, END]));
    const message = all.subarray(this.#inflatedLength);
    this.#inflatedLength = all.length;
    return message;
  }
}
