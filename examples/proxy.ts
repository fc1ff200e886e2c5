/**
 * A TCP proxy that prints the WebSocket frames passing through it, in both directions,
 * without changing a byte.
 *
 *     deno run --allow-all examples/proxy.ts [LISTEN_PORT [TARGET_PORT]]
 *     bun examples/proxy.ts [LISTEN_PORT [TARGET_PORT]]
 *     node examples/proxy.ts [LISTEN_PORT [TARGET_PORT]]     (Node 26)
 *     npx tsx examples/proxy.ts [LISTEN_PORT [TARGET_PORT]]  (Node 20)
 *
 * LISTEN_PORT is the environment's PORT or 8081 unless given, 0 for a free one;
 * TARGET_PORT is 8080 unless given. Both are ports of this machine. A line tells the
 * connection, the direction (-> is from client to server), the frame's type, whether FIN
 * and RSV1 are set, and how its payload, of which no more than that is kept, begins.
 */

import { Buffer } from "node:buffer";
import { connect, createServer, type Socket } from "node:net";
import process from "node:process";
// In your own program: from "@wsframe/wsframe".
import { FrameError, FrameReader, Opcode, type Role } from "../mod.ts";
import { portOf } from "./port.ts";

const HOST = "127.0.0.1";
/** Bytes of a payload that are shown. */
const SHOWN = 40;
/** The longest head of an HTTP message that is looked for, in bytes. */
const MAX_HEAD = 64 * 1024;

const NAMES = new Map<number, string>(
  Object.entries(Opcode).map(([name, opcode]) => [opcode, name.toLowerCase()]),
);
const END_OF_HEAD = new TextEncoder().encode("\r\n\r\n");

/** Looks at one direction. Whatever it finds there, the bytes pass. */
class Inspector {
  readonly #label: string;
  readonly #reader: FrameReader;
  /** The head of the handshake so far; null when frames follow it. */
  #head: Uint8Array | null = new Uint8Array(0);
  #isOver = false;
  /** How the payload of the frame that is passing begins, until that was printed. */
  #start: Uint8Array | null = null;

  constructor(label: string, reader: Role) {
    this.#label = label;
    this.#reader = new FrameReader({
      role: reader,
      allowRsv1: true,
      maxPayloadLength: Number.MAX_SAFE_INTEGER,
      partial: true, // payloads are never put together
    });
  }

  #print(text: string): void {
    // Control characters could play with the terminal.
    console.log(`${this.#label} ${text.replace(/\p{Cc}/gu, "?")}`);
  }

  look(chunk: Uint8Array): void {
    if (this.#isOver) return;
    try {
      const frames = this.#head === null ? chunk : this.#lookForHead(chunk);
      if (frames !== null) this.#lookAtFrames(frames);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#stop(`${error.code}: ${error.message}`);
    }
  }

  #stop(reason: string): void {
    this.#print(`${reason}; what follows is passed on unseen`);
    this.#isOver = true;
  }

  /** Returns what follows the head; null when it is not complete, or no frames follow. */
  #lookForHead(chunk: Uint8Array): Uint8Array | null {
    const bytes = Buffer.concat([this.#head!, chunk]);
    const end = bytes.indexOf(END_OF_HEAD);
    this.#head = bytes;
    if (end < 0) {
      if (bytes.length > MAX_HEAD) this.#stop("There is no end of a head");
      return null;
    }
    const head = bytes.toString("latin1", 0, end);
    const [line] = head.split("\r\n");
    this.#print(line);
    if (/^HTTP\S+ 1(?!01 )/.test(line)) { // the answer is yet to come
      this.#head = Buffer.alloc(0);
      return this.#lookForHead(bytes.subarray(end + END_OF_HEAD.length));
    }
    this.#head = null;
    if (
      line.startsWith("HTTP/")
        ? !/^\S+ 101 /.test(line)
        : !/^upgrade:/im.test(head)
    ) {
      this.#stop("No WebSocket");
      return null;
    }
    return bytes.subarray(end + END_OF_HEAD.length);
  }

  #lookAtFrames(chunk: Uint8Array): void {
    const reader = this.#reader;
    reader.push(chunk);
    while (reader.advance()) {
      if (reader.payloadOffset === 0) this.#start = new Uint8Array(0);
      if (this.#start === null) continue; // printed already
      const more = SHOWN - this.#start.length;
      // A copy, since what the cursor shows is gone with the next chunk.
      this.#start = Buffer.concat([
        this.#start,
        reader.payload.subarray(0, more),
      ]);
      if (reader.last || this.#start.length === SHOWN) {
        this.#printFrame(this.#start);
        this.#start = null;
      }
    }
  }

  #printFrame(start: Uint8Array): void {
    const { opcode, fin, rsv1, payloadLength } = this.#reader;
    // The last character may be cut.
    const text = (bytes: Uint8Array) =>
      JSON.stringify(new TextDecoder().decode(bytes, { stream: true }));
    const shown = opcode === Opcode.Text && !rsv1
      ? text(start)
      : opcode === Opcode.Close && start.length >= 2
      ? `${start[0] << 8 | start[1]} ${text(start.subarray(2))}`
      : Buffer.from(start).toString("hex");
    const bits = `${fin ? "fin" : "   "} ${rsv1 ? "rsv1" : "    "}`;
    this.#print(
      `${
        NAMES.get(opcode)!.padEnd(12)
      } ${bits} ${payloadLength} bytes ${shown}` +
        (start.length < payloadLength ? "..." : ""),
    );
  }

  end(): void {
    this.#print("end");
  }
}

/** Passes on what arrives at `from`, no faster than `to` takes it. */
function pass(from: Socket, to: Socket, inspector: Inspector): void {
  from.setNoDelay(true);
  from.on("data", (chunk: Uint8Array) => {
    if (!to.write(chunk)) from.pause();
    inspector.look(chunk);
  });
  to.on("drain", () => from.resume());
  from.on("end", () => {
    inspector.end();
    to.end();
  });
  from.on("error", () => {}); // "close" follows
  // Broken off, or ended on both sides: so goes the other one.
  from.on("close", (failed) => failed ? to.destroy() : to.end());
}

const listenPort = portOf(process.argv[2] ?? process.env.PORT ?? "8081");
const targetPort = portOf(process.argv[3] ?? "8080");

const open = new Set<Socket>();
let count = 0;

const server = createServer({ allowHalfOpen: true }, (client) => {
  const target = connect({
    host: HOST,
    port: targetPort,
    allowHalfOpen: true,
  });
  const name = `#${++count}`;
  pass(client, target, new Inspector(`${name} ->`, "server"));
  pass(target, client, new Inspector(`${name} <-`, "client"));
  target.on("error", (error) => console.log(`${name} <- ${error.message}`));
  for (const socket of [client, target]) {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  }
});
server.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
server.on("listening", () => {
  const { port } = server.address() as { port: number };
  console.log(`Proxy on ws://${HOST}:${port}/`);
});
server.listen(listenPort, HOST);

function stop(): void {
  server.close(() => process.exit());
  for (const socket of open) socket.end();
  setTimeout(() => process.exit(), 1000).unref();
}
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
