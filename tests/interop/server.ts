/**
 * Our server, inside of the process that tests: a `Connection` per TCP socket. Texts that
 * clients send are orders, as for `server.mjs`: most clients cannot send a Ping, nor
 * fragments, but all must take them.
 */

import { Buffer } from "node:buffer";
import { type AddressInfo, createServer, type Socket } from "node:net";
import {
  acceptUpgrade,
  Connection,
  type ConnectionEvent,
  readUpgradeRequest,
} from "@wsframe/wsframe/connection";
import { pattern } from "./client.mjs";

const encoder = new TextEncoder();

/** Follows an order. */
function obey(connection: Connection, order: string): void {
  const [word, code, ...reason] = order.split(" ");
  if (word === "close") connection.close(Number(code), reason.join(" "));
  else if (word === "ping") connection.ping(encoder.encode("there?"));
  else if (word === "fragments") {
    connection.send("frag", { fin: false });
    connection.ping(encoder.encode("between"));
    connection.send("", { fin: false });
    connection.send("mented 🧩");
    const bytes = pattern(70_000);
    connection.send(bytes.subarray(0, 1), { fin: false });
    connection.send(bytes.subarray(1, 69_000), { fin: false });
    connection.send(bytes.subarray(69_000));
  } else connection.send(`unknown: ${order}`);
}

export class Server {
  /** The `close` events of all connections, in order. */
  readonly closed: (ConnectionEvent & { type: "close" })[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {}); // "close" follows
    this.#serve(socket).catch((error) => socket.destroy(error));
  });

  /** Listens on a free port, and gives it. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve) =>
      this.#server.listen(0, "127.0.0.1", resolve)
    );
    return (this.#server.address() as AddressInfo).port;
  }

  /** Hangs up on everybody. */
  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  async #serve(socket: Socket): Promise<void> {
    let head: Uint8Array = new Uint8Array(0);
    let connection: Connection | undefined;
    for await (const chunk of socket as AsyncIterable<Uint8Array>) {
      if (connection !== undefined) {
        this.#receive(socket, connection, chunk);
        continue;
      }
      head = Buffer.concat([head, chunk]);
      const asked = readUpgradeRequest(head);
      if (asked === undefined) continue;
      const answer = await acceptUpgrade(asked.request, { deflate: true });
      socket.write(answer.bytes);
      connection = new Connection({
        role: "server",
        deflate: answer.deflate,
        deflateThreshold: 0,
      });
      this.#receive(socket, connection, head.subarray(asked.bytesRead));
    }
  }

  #receive(socket: Socket, connection: Connection, chunk: Uint8Array): void {
    for (const event of connection.receive(chunk)) {
      if (event.type === "text") obey(connection, event.data);
      else if (event.type === "pong") {
        const data = new TextDecoder().decode(event.data);
        if (data === "there?") connection.send(`pong ${data}`);
      } else if (event.type === "close") this.closed.push(event);
    }
    socket.write(connection.takeOutput());
    if (connection.state === "closed") socket.end();
  }
}
