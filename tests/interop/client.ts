/** Our client: a `Connection` over a TCP socket, with promises, for tests. */

import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import {
  Connection,
  type ConnectionEvent,
  type ConnectionOptions,
  createUpgradeRequest,
  readUpgradeResponse,
} from "@wsframe/wsframe/connection";

/** Milliseconds after which a client that waits gives up. */
const LIMIT = 60_000;

export class Client {
  readonly socket: Socket;
  connection!: Connection;
  /** Whether permessage-deflate was agreed on. */
  deflated = false;
  #events: ConnectionEvent[] = [];
  #changed: () => void = () => {};
  #failed: Error | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;

  private constructor(port: number) {
    this.socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#timer = setTimeout(
      () => this.socket.destroy(new Error("Waited too long")),
      LIMIT,
    );
    this.socket.on("error", (error) => this.#failed ??= error);
    this.socket.on("close", () => {
      clearTimeout(this.#timer);
      this.#handle(this.connection?.receiveEnd() ?? []);
    });
  }

  /** A client after its handshake. */
  static async open(
    port: number,
    options: Partial<ConnectionOptions> = {},
    path: string = "/",
  ): Promise<Client> {
    const client = new Client(port);
    const deflate = options.deflate ?? false;
    const { bytes, key } = createUpgradeRequest({
      host: `127.0.0.1:${port}`,
      path,
      deflate,
    });
    client.socket.write(bytes);
    let head: Uint8Array = new Uint8Array(0);
    let reading = Promise.resolve();
    await new Promise<void>((resolve, reject) => {
      client.socket.once(
        "close",
        () => reject(client.#failed ?? new Error("The server hung up")),
      );
      client.socket.on("data", (chunk: Uint8Array) => {
        if (client.connection !== undefined) return client.#receive(chunk);
        head = Buffer.concat([head, chunk]);
        const bytes = head;
        reading = reading.then(async () => {
          if (client.connection !== undefined) return client.#receive(chunk);
          const answer = await readUpgradeResponse(bytes, { key, deflate });
          if (answer === undefined) return;
          client.deflated = answer.deflate !== null;
          client.connection = new Connection({
            role: "client",
            maxPayloadLength: 64 << 20,
            deflateThreshold: 0,
            ...options,
            deflate: answer.deflate,
          });
          client.#receive(bytes.subarray(answer.bytesRead));
          resolve();
        }).catch(reject);
      });
    });
    return client;
  }

  #receive(chunk: Uint8Array): void {
    this.#handle(this.connection.receive(chunk));
    this.flush();
    if (this.connection.state === "closed") this.socket.end();
  }

  #handle(events: Iterable<ConnectionEvent>): void {
    this.#events.push(...events);
    this.#changed();
  }

  /** Writes what the connection has to send. */
  flush(): void {
    const output = this.connection.takeOutput();
    if (output.length > 0) this.socket.write(output);
  }

  /** The next event. */
  async next(): Promise<ConnectionEvent> {
    while (this.#events.length === 0) {
      await new Promise<void>((resolve) => this.#changed = resolve);
    }
    return this.#events.shift()!;
  }

  /** Sends a message, whole, and waits for the next event. */
  ask(data: string | Uint8Array): Promise<ConnectionEvent> {
    this.connection.send(data);
    this.flush();
    return this.next();
  }

  /** Breaks off. */
  destroy(): void {
    this.socket.destroy();
  }
}
