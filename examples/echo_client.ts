/**
 * A WebSocket client that sends messages to an echo server and checks what comes back.
 *
 *     deno run --allow-all examples/echo_client.ts [PORT [MESSAGE...]]
 *     bun examples/echo_client.ts [PORT [MESSAGE...]]
 *     node examples/echo_client.ts [PORT [MESSAGE...]]     (Node 26)
 *     npx tsx examples/echo_client.ts [PORT [MESSAGE...]]  (Node 20)
 *
 * PORT is the environment's PORT or 8080 unless given. Without a MESSAGE, the lines of
 * standard input are sent. Ctrl-C closes the connection. The exit code is 1 when an echo
 * differs, or the connection fails.
 */

import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { createInterface } from "node:readline";
// In your own program: from "@wsframe/wsframe/connection".
import {
  Connection,
  type ConnectionEvent,
  createUpgradeRequest,
  readUpgradeResponse,
} from "../src/connection/mod.ts";

const HOST = "127.0.0.1";
/** Milliseconds for the opening handshake, and for the closing one. */
const TIME = 5_000;

type Chunks = AsyncIterableIterator<Uint8Array>;

const [port = process.env.PORT ?? "8080", ...messages] = process.argv.slice(2);

/** Sends the request and reads the answer; returns also what came behind it. */
async function open(
  socket: Socket,
  chunks: Chunks,
): Promise<{ connection: Connection; rest: Uint8Array }> {
  const deflate = true;
  const { bytes, key } = createUpgradeRequest({
    host: `${HOST}:${port}`,
    deflate,
  });
  socket.write(bytes);
  let head: Uint8Array = new Uint8Array(0);
  for (;;) {
    const { done, value } = await chunks.next();
    if (done) throw new Error("The server hung up during the handshake");
    head = Buffer.concat([head, value]);
    // Throws HandshakeError when the server refuses.
    const answer = await readUpgradeResponse(head, { key, deflate });
    if (answer === undefined) continue; // more bytes are needed
    return {
      connection: new Connection({ role: "client", deflate: answer.deflate }),
      rest: head.subarray(answer.bytesRead),
    };
  }
}

/** A connection to the server, and the echo that it owes. */
class Client {
  readonly #socket: Socket;
  readonly #connection: Connection;
  #waiting: { resolve(echo: string): void; reject(error: Error): void } | null =
    null;
  #closing = false;

  constructor(socket: Socket, connection: Connection) {
    this.#socket = socket;
    this.#connection = connection;
  }

  /** Sends a message and waits for the next one that comes. */
  ask(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#connection.send(text);
      this.#flush();
    });
  }

  /** Sends a Close; the server's answer ends {@linkcode receive}. */
  close(code: number): void {
    this.#closing = true;
    this.#connection.close(code);
    this.#flush();
    setTimeout(() => this.#socket.destroy(), TIME).unref();
  }

  /** Receives until the connection is closed. */
  async receive(rest: Uint8Array, chunks: Chunks): Promise<void> {
    this.#handle(this.#connection.receive(rest));
    try {
      for await (const chunk of chunks) {
        this.#handle(this.#connection.receive(chunk));
      }
    } catch (error) {
      console.error((error as Error).message);
    }
    this.#handle(this.#connection.receiveEnd());
  }

  #handle(events: Iterable<ConnectionEvent>): void {
    for (const event of events) {
      if (event.type === "text") {
        this.#waiting?.resolve(event.data);
      } else if (event.type === "close") {
        if (!this.#closing) {
          console.error(`Closed: ${event.code} ${event.reason}`);
          process.exitCode = 1;
        }
        this.#waiting?.reject(new Error("There is no echo"));
      }
    }
    this.#flush(); // Pings and Closes are answered by themselves.
    if (this.#connection.state === "closed") this.#socket.end();
  }

  #flush(): void {
    const output = this.#connection.takeOutput();
    if (output.length > 0) this.#socket.write(output);
  }
}

/** The arguments, or else the lines of standard input. */
async function* texts(): AsyncGenerator<string> {
  if (messages.length > 0) yield* messages;
  else yield* createInterface({ input: process.stdin });
}

async function talk(client: Client): Promise<void> {
  for await (const text of texts()) {
    console.log(`> ${text}`);
    const echo = await client.ask(text);
    console.log(`< ${echo}`);
    if (echo !== text) process.exitCode = 1;
  }
}

async function main(): Promise<void> {
  const socket = connect({ host: HOST, port: Number(port), noDelay: true });
  const chunks: Chunks = socket[Symbol.asyncIterator]();
  const timer = setTimeout(() => socket.destroy(), TIME);
  const { connection, rest } = await open(socket, chunks);
  clearTimeout(timer);
  const client = new Client(socket, connection);
  const received = client.receive(rest, chunks);
  process.once("SIGINT", () => client.close(1001));
  // The server may end it at any time.
  await Promise.race([received, talk(client)]);
  client.close(1000);
  await received;
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
}).finally(() => process.exit());
