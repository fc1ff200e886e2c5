/**
 * What the benches compare with: npm `ws`, `bufferutil` and `websocket-driver`,
 * the runtime's own masking, and a plain loop. A peer that this runtime cannot
 * load is the reason why, as a string.
 *
 * @module
 */

import { createRequire } from "node:module";
import { join } from "node:path";

/** `ws`'s Receiver, as far as it is used here. */
export interface Receiver {
  write(chunk: Uint8Array): boolean;
  on(event: "message", listener: (data: Uint8Array) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
}

/** `websocket-driver`'s server, as far as it is used here. */
export interface Driver {
  start(): boolean;
  parse(chunk: Uint8Array): void;
  binary(payload: Uint8Array): boolean;
  on(event: "message", listener: (event: { data: Uint8Array }) => void): void;
  io: { on(event: "data", listener: (chunk: Uint8Array) => void): void };
}

/** Masks in place. */
export type Masker = (bytes: Uint8Array, key: Uint8Array) => void;

/** A peer, or why it is absent. */
export type Peer<T> = T | string;

/** Every peer of the suite. */
export interface Peers {
  versions: Record<string, string>;
  bufferutil: Peer<Masker>;
  wsLoop: Peer<Masker>;
  httpUnmask: Peer<Masker>;
  newReceiver: Peer<() => Receiver>;
  senderFrame: Peer<(payload: Uint8Array) => Uint8Array[]>;
  newDriver: Peer<() => Driver>;
}

// Not import.meta.url: Node 20 reads this file as CommonJS.
const require = createRequire(join(process.cwd(), "benches", "peers.ts"));
const modules = join(process.cwd(), "node_modules");

function attempt<T>(load: () => T): Peer<T> {
  try {
    return load();
  } catch (error) {
    return error instanceof Error ? error.message.split("\n")[0] : `${error}`;
  }
}

/**
 * The loop of `ws` itself. Its module prefers `http.websocketUnmask` and then
 * bufferutil, so it is loaded once without either and forgotten again.
 */
function loadWsLoop(): Masker {
  const http = require("node:http");
  const { websocketMask } = http;
  const path = require.resolve(join(modules, "ws/lib/buffer-util.js"));
  const kept = process.env.WS_NO_BUFFER_UTIL;
  process.env.WS_NO_BUFFER_UTIL = "1";
  if (websocketMask) http.websocketMask = undefined;
  try {
    delete require.cache[path];
    return require(path).unmask;
  } finally {
    delete require.cache[path];
    if (websocketMask) http.websocketMask = websocketMask;
    if (kept === undefined) delete process.env.WS_NO_BUFFER_UTIL;
    else process.env.WS_NO_BUFFER_UTIL = kept;
  }
}

/** Loads every peer. `ws` is taken by file path: Bun puts a shim before its name. */
export function loadPeers(): Peers {
  const version = (name: string) =>
    attempt(() => require(join(modules, name, "package.json")).version);
  return {
    versions: Object.fromEntries(
      ["ws", "bufferutil", "websocket-driver", "mitata"]
        .map((name) => [name, version(name)]),
    ),
    bufferutil: attempt(() => {
      const native = require(join(modules, "bufferutil"));
      // Its package falls back to a loop without a word.
      if (
        native.unmask === require(join(modules, "bufferutil/fallback")).unmask
      ) {
        throw new Error("no prebuilt library for this platform");
      }
      return native.unmask;
    }),
    wsLoop: attempt(loadWsLoop),
    httpUnmask: attempt(() =>
      require("node:http").websocketUnmask ?? fail("not in this runtime")
    ),
    newReceiver: attempt(() => {
      const Receiver = require(join(modules, "ws/lib/receiver.js"));
      return () => {
        const receiver: Receiver = new Receiver({
          isServer: true,
          maxPayload: 2 ** 30,
        });
        receiver.on("error", (error) => {
          throw error;
        });
        return receiver;
      };
    }),
    senderFrame: attempt(() => {
      const Sender = require(join(modules, "ws/lib/sender.js"));
      const options = {
        fin: true,
        rsv1: false,
        opcode: 2,
        mask: true,
        // The caller's payload stays as it is, as with ours.
        readOnly: true,
      };
      return (payload) => Sender.frame(payload, options);
    }),
    newDriver: attempt(() => {
      const driver = require(join(modules, "websocket-driver"));
      const request = {
        method: "GET",
        url: "/",
        headers: {
          host: "localhost",
          connection: "upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        },
      };
      return () => driver.http(request, { masking: true, maxLength: 2 ** 30 });
    }),
  };
}

function fail(reason: string): never {
  throw new Error(reason);
}
