/**
 * One end of a recorded session: a WebSocket client or server that is not ours.
 * `record.ts` starts it under the runtime whose WebSocket it is to use:
 * `record_peer.ts client|server PLAN`, where PLAN is a {@linkcode Plan} as JSON.
 * A server prints its port first; each end prints a {@linkcode Report} at the end.
 *
 * Under Node the peer is npm `ws`, under Deno and Bun their own WebSocket.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import process from "node:process";

/** Whose WebSocket it is. */
export type Peer = "ws" | "deno" | "bun";

/** What one end sends, in order. Fragments and pings only where the peer can. */
export type Step =
  | { text: string }
  | { binary: number }
  | { fragments: string[]; pingBetween?: string }
  | { binaryFragments: number[] }
  | { ping: string }
  | { pong: string };

/** What one end does in a session. */
export interface Plan {
  /** The tap's port; 0 for a server, which picks one. */
  port: number;
  /** Whether permessage-deflate is offered (client) or accepted (server). */
  deflate: boolean;
  steps: Step[];
  /** How many messages arrive before this end may close. */
  expect: number;
  /** With what this end closes; absent: the other end closes. No code: an empty Close. */
  close?: { code?: number; reason?: string };
}

/** A message as the peer's own parser gave it out: text itself, or a digest of the bytes. */
export type Received = string | { bytes: number; sha256: string };

/** What one end saw. */
export interface Report {
  /** Which implementation it was, with its version. */
  peer: string;
  received: Received[];
  close: { code: number; reason: string };
}

/** The few calls that the steps need, over whichever WebSocket this is. */
interface Sender {
  send(data: string | Uint8Array, last: boolean): void;
  ping(data: string): void;
  pong(data: string): void;
  close(code?: number, reason?: string): void;
}

/** The part of npm `ws` that is used here. */
interface WsSocket {
  on(event: string, listener: (...args: never[]) => void): void;
  send(data: string | Uint8Array, options: { fin: boolean }): void;
  ping(data: string): void;
  pong(data: string): void;
  close(code?: number, reason?: string): void;
}
interface WsServer {
  on(event: string, listener: (...args: never[]) => void): void;
  address(): { port: number };
  close(): void;
}
interface WsModule {
  WebSocket: new (url: string, options: object) => WsSocket;
  WebSocketServer: new (options: object) => WsServer;
}

/** The part of Bun that is used here. */
interface BunSocket {
  send(data: string | Uint8Array, compress?: boolean): number;
  ping(data: string): number;
  pong(data: string): number;
  close(code?: number, reason?: string): void;
}
interface BunServer {
  readonly port: number;
  upgrade(request: Request): boolean;
  stop(): void;
}
interface BunGlobal {
  serve(options: {
    hostname: string;
    port: number;
    fetch(request: Request, server: BunServer): Response | undefined;
    websocket: {
      perMessageDeflate: boolean;
      open(socket: BunSocket): void;
      message(socket: BunSocket, data: string | Uint8Array): void;
      close(socket: BunSocket, code: number, reason: string): void;
    };
  }): BunServer;
}

const bun = (globalThis as unknown as { Bun?: BunGlobal }).Bun;
const HOST = "127.0.0.1";

/** Bytes that look like data and are the same on every run. */
function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0, x = length + 1; i < length; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    bytes[i] = x >>> 16;
  }
  return bytes;
}

/** The peer's name and version. */
function version(): string {
  const { bun, deno, node } = process.versions;
  if (bun !== undefined) return `Bun ${bun}`;
  if (deno !== undefined) return `Deno ${deno}`;
  const manifest = createRequire(import.meta.url)("ws/package.json");
  return `ws ${manifest.version}, Node ${node}`;
}

/** Plays a plan on a socket and keeps what arrives. */
class Player {
  readonly #plan: Plan;
  readonly #received: Received[] = [];
  #sender: Sender | undefined;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  open(sender: Sender): void {
    this.#sender = sender;
    for (const step of this.#plan.steps) play(step, sender);
    this.#closeWhenDone();
  }

  message(data: string | ArrayBuffer | Uint8Array): void {
    if (typeof data === "string") {
      this.#received.push(data);
    } else {
      const bytes = new Uint8Array(data);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      this.#received.push({ bytes: bytes.length, sha256 });
    }
    this.#closeWhenDone();
  }

  closed(code: number, reason: string): void {
    const report: Report = {
      peer: version(),
      received: this.#received,
      close: { code, reason },
    };
    console.log(JSON.stringify(report));
  }

  #closeWhenDone(): void {
    const { close, expect } = this.#plan;
    if (close === undefined || this.#received.length !== expect) return;
    this.#sender?.close(close.code, close.reason);
  }
}

function play(step: Step, to: Sender): void {
  if ("text" in step) to.send(step.text, true);
  else if ("binary" in step) to.send(pattern(step.binary), true);
  else if ("ping" in step) to.ping(step.ping);
  else if ("pong" in step) to.pong(step.pong);
  else {
    const parts = "fragments" in step
      ? step.fragments
      : step.binaryFragments.map(pattern);
    parts.forEach((part, i) => {
      to.send(part, i === parts.length - 1);
      if (i === 0 && "pingBetween" in step) to.ping(step.pingBetween ?? "");
    });
  }
}

function playOnWs(
  socket: WsSocket,
  player: Player,
  start: (run: () => void) => void,
): void {
  socket.on(
    "message",
    (data: Uint8Array, isBinary: boolean) =>
      player.message(isBinary ? data : new TextDecoder().decode(data)),
  );
  socket.on(
    "close",
    (code: number, reason: Uint8Array) =>
      player.closed(code, new TextDecoder().decode(reason)),
  );
  start(() =>
    player.open({
      send: (data, last) => socket.send(data, { fin: last }),
      ping: (data) => socket.ping(data),
      pong: (data) => socket.pong(data),
      close: (code, reason) => socket.close(code, reason),
    })
  );
}

async function wsClient(plan: Plan): Promise<void> {
  const { WebSocket } = await import("ws") as WsModule;
  const socket = new WebSocket(`ws://${HOST}:${plan.port}/`, {
    perMessageDeflate: plan.deflate && { threshold: 0 },
  });
  playOnWs(socket, new Player(plan), (run) => socket.on("open", run));
}

async function wsServer(plan: Plan): Promise<void> {
  const { WebSocketServer } = await import("ws") as WsModule;
  const server = new WebSocketServer({
    host: HOST,
    port: 0,
    perMessageDeflate: plan.deflate && { threshold: 0 },
  });
  server.on("listening", () => console.log(server.address().port));
  server.on("connection", (socket: WsSocket) => {
    server.close();
    playOnWs(socket, new Player(plan), (run) => run());
  });
}

/** The WebSocket of the web, as Deno (both ends) and Bun (client) have it. */
function playOnWebSocket(socket: WebSocket, player: Player): void {
  // Bun's client has these two beside the standard's methods.
  const extra = socket as unknown as {
    ping(data: string): void;
    pong(data: string): void;
  };
  socket.binaryType = "arraybuffer";
  socket.onopen = () =>
    player.open({
      send: (data) => socket.send(data as string),
      ping: (data) => extra.ping(data),
      pong: (data) => extra.pong(data),
      close: (code, reason) => socket.close(code, reason),
    });
  socket.onmessage = (event) => player.message(event.data);
  socket.onclose = (event) => player.closed(event.code, event.reason);
}

function denoServer(plan: Plan): void {
  const server = Deno.serve({
    hostname: HOST,
    port: 0,
    onListen: ({ port }) => console.log(port),
  }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    playOnWebSocket(socket, new Player(plan));
    socket.addEventListener("close", () => server.shutdown());
    return response;
  });
}

function bunServer(plan: Plan, { serve }: BunGlobal): void {
  const player = new Player(plan);
  const server = serve({
    hostname: HOST,
    port: 0,
    fetch: (request, self) => {
      self.upgrade(request);
      return undefined;
    },
    websocket: {
      perMessageDeflate: plan.deflate,
      open: (socket) =>
        player.open({
          send: (data) => socket.send(data, plan.deflate),
          ping: (data) => socket.ping(data),
          pong: (data) => socket.pong(data),
          close: (code, reason) => socket.close(code, reason),
        }),
      message: (_, data) => player.message(data),
      close: (_, code, reason) => {
        player.closed(code, reason);
        server.stop();
      },
    },
  });
  console.log(server.port);
}

function main(role: string, plan: Plan): void | Promise<void> {
  const isDeno = "Deno" in globalThis;
  if (role === "client") {
    if (bun === undefined && !isDeno) return wsClient(plan);
    return playOnWebSocket(
      new WebSocket(`ws://${HOST}:${plan.port}/`),
      new Player(plan),
    );
  }
  if (bun !== undefined) return bunServer(plan, bun);
  return isDeno ? denoServer(plan) : wsServer(plan);
}

if (import.meta.main) {
  main(process.argv[2], JSON.parse(process.argv[3]) as Plan);
}
