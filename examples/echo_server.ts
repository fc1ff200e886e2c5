/**
 * A WebSocket server that sends every message back.
 *
 *     deno run --allow-all examples/echo_server.ts [PORT [HOST]]
 *     bun examples/echo_server.ts [PORT [HOST]]
 *     node examples/echo_server.ts [PORT [HOST]]     (Node 26)
 *     npx tsx examples/echo_server.ts [PORT [HOST]]  (Node 20)
 *
 * PORT is the environment's PORT or 8080 unless given, 0 for a free one; HOST is
 * 127.0.0.1 unless given. Ctrl-C tells every peer that the server goes away.
 */

import { createServer, type Socket } from "node:net";
import process from "node:process";
// In your own program: from "@wsframe/wsframe" and "@wsframe/wsframe/connection".
import { recycle } from "../mod.ts";
import {
  acceptUpgrade,
  Connection,
  type ConnectionEvent,
  HandshakeError,
  readUpgradeRequest,
  rejectUpgrade,
} from "../src/connection/mod.ts";
import { free } from "./free.ts";
import { portOf } from "./port.ts";

/** Milliseconds that a peer has for its handshake. */
const HANDSHAKE_TIME = 10_000;
/** Milliseconds that a peer has to read what is on its way when nothing more comes. */
const READ_TIME = 60_000;
/** Milliseconds that a peer has to close its end after ours. */
const CLOSE_TIME = 5_000;
/** Milliseconds of silence after which the system asks whether the peer's machine is there. */
const KEEP_ALIVE_TIME = 60_000;
/** What is sent, in bytes or characters, before it is written: few writes, and yet early ones. */
const BATCH = 128 * 1024;

const peers = new Set<Peer>();

class Peer {
  readonly #socket: Socket;
  /** What is done with received bytes. */
  #take: (chunk: Uint8Array) => void = (chunk) => this.#readHandshake(chunk);
  #handshake: Uint8Array = new Uint8Array(0);
  #connection: Connection | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    peers.add(this);
    this.#limit(HANDSHAKE_TIME);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_TIME);
    socket.on("data", (chunk: Uint8Array) => this.#take(chunk));
    socket.on("drain", () => socket.resume());
    socket.on("end", () => this.#end());
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => {
      this.#end();
      clearTimeout(this.#timer);
      peers.delete(this);
    });
  }

  async #readHandshake(chunk: Uint8Array): Promise<void> {
    this.#socket.pause(); // until this chunk has been dealt with
    try {
      await this.#acceptHandshake(concat(this.#handshake, chunk));
    } catch (error) {
      this.#refuse(error);
    }
    if (!this.#socket.writableNeedDrain) this.#socket.resume();
  }

  async #acceptHandshake(bytes: Uint8Array): Promise<void> {
    this.#handshake = bytes;
    const result = readUpgradeRequest(bytes);
    if (result === undefined) return; // more bytes are needed
    const answer = await acceptUpgrade(result.request, { deflate: true });
    if (this.#socket.destroyed) return;
    clearTimeout(this.#timer);
    this.#socket.write(answer.bytes);
    const connection = new Connection({
      role: "server",
      deflate: answer.deflate,
      deflateThreshold: 0, // short messages, too, as they may have come compressed
      maxPayloadLength: 64 * 1024 * 1024,
      maxFragments: 128 * 1024,
      inPlace: true, // sockets hand over fresh memory with every chunk
    });
    this.#connection = connection;
    this.#handshake = new Uint8Array(0);
    this.#take = (chunk) => {
      this.#answer(connection, connection.receive(chunk));
      free(chunk); // nothing of it is kept: what was sent is a copy
    };
    // What came behind the handshake are frames already.
    this.#take(bytes.subarray(result.bytesRead));
  }

  #refuse(error: unknown): void {
    const known = error instanceof HandshakeError;
    if (!known) console.error(error);
    const status = known ? error.status : 500;
    this.#socket.write(rejectUpgrade(status, {}, known ? error.message : ""));
    this.#finish();
  }

  #answer(connection: Connection, events: Iterable<ConnectionEvent>): void {
    let waiting = 0;
    for (const event of events) {
      if (event.type !== "text" && event.type !== "binary") continue;
      // After a Close of ours, messages arrive until the peer has answered it.
      if (connection.state === "open") connection.send(event.data);
      waiting += event.data.length;
      if (event.type === "binary") recycle(event.data);
      if (waiting < BATCH) continue;
      // The peer can read this while the rest of a large chunk is worked off.
      this.#flush(connection);
      waiting = 0;
    }
    this.#flush(connection);
    if (connection.state === "closed") this.#finish();
  }

  /** One write for many messages: this is what makes small ones fast. */
  #flush(connection: Connection): void {
    const output = connection.takeOutput();
    if (output.length === 0) return;
    // Written, it makes room for the next: much data then needs no fresh memory.
    const written = (error?: Error | null) => error || recycle(output);
    if (this.#socket.write(output, written)) return;
    // The peer reads slower than it sends: nothing more is taken from it until "drain".
    this.#socket.pause();
  }

  /** Nothing more will come, or the socket is gone. */
  #end(): void {
    const connection = this.#connection;
    if (connection === undefined) this.#finish();
    else this.#answer(connection, connection.receiveEnd());
  }

  /** Sends nothing more, and gives the peer a moment to read the rest and to hang up. */
  #finish(): void {
    // Bytes that nobody reads would make the system reset the connection.
    this.#take = () => {};
    this.#limit(READ_TIME);
    this.#socket.once("finish", () => this.#limit(CLOSE_TIME)).end();
  }

  #limit(time: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#socket.destroy(), time);
  }

  /** Ends the connection from our side. */
  leave(): void {
    if (this.#connection === undefined) return this.#finish();
    this.#connection.close(1001, "The server goes away");
    this.#flush(this.#connection);
    this.#limit(CLOSE_TIME);
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(a.length + b.length);
  bytes.set(a);
  bytes.set(b, a.length);
  return bytes;
}

// A peer that has sent its last byte may still read the answer: allowHalfOpen.
const server = createServer(
  { allowHalfOpen: true },
  (socket) => void new Peer(socket),
);
server.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
server.on("listening", () => {
  const { address, port } = server.address() as {
    address: string;
    port: number;
  };
  const host = address.includes(":") ? `[${address}]` : address;
  console.log(`Echo server on ws://${host}:${port}/`);
});
server.listen(
  portOf(process.argv[2] ?? process.env.PORT ?? "8080"),
  process.argv[3] ?? "127.0.0.1",
);

function stop(): void {
  // Calls back when the last peer is gone.
  server.close(() => process.exit());
  for (const peer of peers) peer.leave();
}
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
