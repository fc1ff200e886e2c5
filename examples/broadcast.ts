/**
 * A WebSocket server that sends every message to every peer: as one frame that is
 * written once, whatever the number of peers. It stands on Node's http server and its
 * `upgrade` event, as a program does that has such a server already.
 *
 *     deno run --allow-all examples/broadcast.ts [PORT]
 *     bun examples/broadcast.ts [PORT]
 *     node examples/broadcast.ts [PORT]     (Node 26)
 *     npx tsx examples/broadcast.ts [PORT]  (Node 20)
 *
 * PORT is the environment's PORT or 8080 unless given, 0 for a free one. Ctrl-C tells
 * every peer that the server goes away.
 */

import { createServer, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import process from "node:process";
// In your own program: from "@wsframe/wsframe" and "@wsframe/wsframe/connection".
import { Opcode, writeFrameHeader } from "../mod.ts";
import {
  acceptUpgrade,
  Connection,
  type ConnectionEvent,
  HandshakeError,
  rejectUpgrade,
} from "../src/connection/mod.ts";
import { portOf } from "./port.ts";

const HOST = "127.0.0.1";
/** Milliseconds that a peer has to close its end after ours. */
const CLOSE_TIME = 5_000;
/** Bytes that may wait for a peer. One that falls behind further is disconnected. */
const MAX_WAITING = 1024 * 1024;

const peers = new Set<Peer>();

class Peer {
  readonly #socket: Socket;
  readonly #connection: Connection = new Connection({ role: "server" });

  constructor(socket: Socket) {
    this.#socket = socket;
    peers.add(this);
    socket.setNoDelay(true);
    socket.on("data", (chunk: Uint8Array) => this.receive(chunk));
    socket.on("drain", () => socket.resume());
    socket.on("end", () => this.#handle(this.#connection.receiveEnd()));
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => {
      this.#handle(this.#connection.receiveEnd());
      peers.delete(this);
    });
  }

  receive(chunk: Uint8Array): void {
    this.#handle(this.#connection.receive(chunk));
  }

  #handle(events: Iterable<ConnectionEvent>): void {
    for (const event of events) {
      if (event.type === "text") {
        broadcast(Opcode.Text, new TextEncoder().encode(event.data));
      } else if (event.type === "binary") {
        broadcast(Opcode.Binary, event.data);
      }
    }
    this.#flush();
    if (this.#connection.state === "closed") this.#finish();
  }

  #flush(): void {
    const output = this.#connection.takeOutput();
    if (output.length === 0 || this.#socket.write(output)) return;
    // It reads slower than it sends: nothing more is taken from it until "drain".
    this.#socket.pause();
  }

  #finish(): void {
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), CLOSE_TIME).unref();
  }

  /** Writes a frame that was made for all. */
  write(header: Uint8Array, payload: Uint8Array): void {
    if (this.#connection.state !== "open") return;
    if (this.#socket.writableLength > MAX_WAITING) {
      this.#socket.destroy();
      return;
    }
    this.#flush(); // keeps the order: what this peer was sent before goes before
    // Both in one system call, the payload without a copy.
    this.#socket.cork();
    this.#socket.write(header);
    this.#socket.write(payload);
    this.#socket.uncork();
  }

  leave(): void {
    this.#connection.close(1001, "The server goes away");
    this.#flush();
    setTimeout(() => this.#socket.destroy(), CLOSE_TIME).unref();
  }
}

/** A server's frames are not masked, so all peers can be sent the same bytes. */
function broadcast(opcode: Opcode, payload: Uint8Array): void {
  const header = writeFrameHeader({ opcode, payloadLength: payload.length });
  for (const peer of peers) peer.write(header, payload);
}

async function upgrade(
  request: IncomingMessage,
  socket: Socket,
  head: Uint8Array,
): Promise<void> {
  socket.on("error", () => socket.destroy());
  try {
    const { bytes } = await acceptUpgrade(request);
    // A peer that left meanwhile: its "end" or "close" does not come again.
    if (socket.destroyed || socket.readableEnded || !server.listening) {
      return void socket.destroy();
    }
    socket.write(bytes);
    const peer = new Peer(socket);
    peer.receive(head); // frames that came right behind the handshake
  } catch (error) {
    const known = error instanceof HandshakeError;
    if (!known) console.error(error);
    socket.end(rejectUpgrade(known ? error.status : 500));
  }
}

const server = createServer((_request, response) => {
  response.writeHead(426, {
    upgrade: "websocket",
    connection: "upgrade, close",
  });
  response.end("This server speaks WebSocket\n");
});
server.on("upgrade", upgrade);
server.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
server.on("listening", () => {
  const { port } = server.address() as { port: number };
  console.log(`Broadcast server on ws://${HOST}:${port}/`);
});
server.listen(portOf(process.argv[2] ?? process.env.PORT ?? "8080"), HOST);

function stop(): void {
  server.close();
  for (const peer of peers) peer.leave();
  const timer = setInterval(() => {
    if (peers.size > 0) return;
    clearInterval(timer);
    process.exit();
  }, 10);
}
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
