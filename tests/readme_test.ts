/**
 * The README's way to attach to a server that one has: it works, and whatever the peer
 * does, no socket stays behind.
 */

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { FrameReader, writeClosePayload, writeFrame } from "@wsframe/wsframe";
import {
  createUpgradeRequest,
  readUpgradeResponse,
} from "@wsframe/wsframe/connection";
import { codeBlocks, readSource } from "./runner/source.ts";
import { concat } from "./vectors.ts";

type Attach = (
  request: IncomingMessage,
  socket: Socket,
  head: Uint8Array,
) => Promise<void>;

const folder = new URL(`../.cache/readme/${process.pid}/`, import.meta.url);
let server: Server;
let port = 0;

/** Resolves when the server has no socket any more. */
async function noneLeft(): Promise<void> {
  for (let left = 1; left > 0;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    left = await new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) =>
        error ? reject(error) : resolve(count)
      )
    );
  }
}

/** A socket, and what comes from it, as one stream of bytes. */
class Peer {
  readonly socket: Socket = connect(port, "127.0.0.1");
  readonly ended: Promise<void>;
  received: Uint8Array = new Uint8Array(0);
  #changed: () => void = () => {};

  constructor() {
    this.socket.on("error", () => {});
    this.socket.on("data", (chunk: Uint8Array) => {
      this.received = concat([this.received, chunk]);
      this.#changed();
    });
    this.ended = new Promise((resolve) => {
      this.socket.once("end", resolve);
      this.socket.once("close", () => resolve());
    });
  }

  /** Waits until `read` finds what it wants in the bytes so far. */
  async until<T>(read: () => T | undefined | Promise<T | undefined>) {
    for (;;) {
      const result = await read();
      if (result !== undefined) return result;
      await new Promise<void>((resolve) => this.#changed = resolve);
    }
  }

  /** Opens the WebSocket; `behind` follows the request at once. */
  async open(behind: Uint8Array = new Uint8Array(0)): Promise<void> {
    const { bytes, key } = createUpgradeRequest({ host: "127.0.0.1" });
    this.socket.write(concat([bytes, behind]));
    const { bytesRead } = await this.until(() =>
      readUpgradeResponse(this.received, { key })
    );
    this.received = this.received.slice(bytesRead);
  }

  /** The payloads of the first frames. */
  payloads(count: number): Promise<string[]> {
    return this.until(() => {
      const frames = [...new FrameReader().push(this.received.slice())];
      return frames.length < count
        ? undefined
        : frames.map(({ payload }) => new TextDecoder().decode(payload));
    });
  }
}

function text(payload: string): Uint8Array {
  return writeFrame({ opcode: 1, payload }, { role: "client" });
}

/** What a block of the README exports. */
async function importBlock(mark: string): Promise<Record<string, unknown>> {
  const block = codeBlocks(readSource("README.md"))
    .find(({ code }) => code.includes(mark));
  assert(block !== undefined);
  mkdirSync(folder, { recursive: true });
  const file = new URL(`block${block.line}.mts`, folder);
  writeFileSync(file, block.code);
  return await import(file.href);
}

describe("attach of the README", () => {
  before(async () => {
    const { attach } = await importBlock("function attach(");
    server = createServer((_, response) => response.end());
    server.on("upgrade", attach as Attach);
    await new Promise<void>((resolve) =>
      server.listen(0, "127.0.0.1", resolve)
    );
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });

  it("answers, and ends after a Close", async () => {
    const peer = new Peer();
    await peer.open(text("a"));
    peer.socket.write(text("b"));
    assertEquals(await peer.payloads(2), ["You said: a", "You said: b"]);
    const payload = writeClosePayload(1000, "bye");
    peer.socket.write(writeFrame({ opcode: 8, payload }, { role: "client" }));
    await peer.ended;
    peer.socket.end();
    await noneLeft();
  });

  it("answers the client of the README", async () => {
    const { hello } = await importBlock("function hello(");
    const answer = (hello as (port: number, host: string) => Promise<string>)(
      port,
      "127.0.0.1",
    );
    assertEquals(await answer, "You said: Hello");
    await noneLeft();
  });

  it("lets go of peers that leave during the handshake", async () => {
    const { bytes } = createUpgradeRequest({ host: "127.0.0.1" });
    for (let i = 0; i < 20; i++) {
      const { socket } = new Peer();
      // At once, so that the end comes with the request or right behind it.
      if (i % 2 === 0) socket.end(bytes);
      else socket.write(bytes, () => socket.destroy());
    }
    await noneLeft();
  });

  it("ends when the peer ends without a Close", async () => {
    const peer = new Peer();
    await peer.open();
    peer.socket.end(text("a"));
    await peer.ended;
    await noneLeft();
  });

  it("survives a reset", async () => {
    const peer = new Peer();
    await peer.open();
    if ("resetAndDestroy" in peer.socket) peer.socket.resetAndDestroy();
    else (peer.socket as Socket).destroy();
    await noneLeft();
  });

  it("refuses what asks for something else", async () => {
    const peer = new Peer();
    peer.socket.write(
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    );
    await peer.ended;
    assertStringIncludes(new TextDecoder().decode(peer.received), " 426 ");
    peer.socket.end();
    await noneLeft();
  });
});
