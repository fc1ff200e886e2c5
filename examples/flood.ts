/**
 * A load generator: sends messages to an echo server, counts what comes back, and
 * tells messages per second and how long they took.
 *
 *     deno run --allow-all examples/flood.ts [PORT] [OPTION...]
 *     bun examples/flood.ts [PORT] [OPTION...]
 *     node examples/flood.ts [PORT] [OPTION...]     (Node 26)
 *     npx tsx examples/flood.ts [PORT] [OPTION...]  (Node 20)
 *
 *     --host=127.0.0.1    the server
 *     --connections=1     how many at the same time
 *     --size=125          bytes of a message
 *     --text              text that looks like JSON, not random bytes
 *     --deflate           offer permessage-deflate
 *     --batch=65536       bytes that are written at once, at least one message
 *     --in-flight=4       batches on their way in each connection
 *     --one               one message at a time: --batch=0 --in-flight=1
 *     --warmup=0.5        seconds before counting begins
 *     --seconds=5         how long to count
 *     --messages=N        stop after N messages; without warmup unless it is given
 *     --json              print one line of JSON
 *
 * PORT is the environment's PORT or 8080 unless given. Ctrl-C ends it early. Latency is
 * counted by batches: from the write of one to its last echo.
 */

import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import process from "node:process";
// In your own program: from "@wsframe/wsframe" and "@wsframe/wsframe/connection".
import { FrameReader, Opcode, readClosePayload } from "../mod.ts";
import {
  Connection,
  createUpgradeRequest,
  type DeflateParameters,
  readUpgradeResponse,
} from "../src/connection/mod.ts";
import { free } from "./free.ts";

/** Milliseconds for everything up to the first echo, and for the closing handshake. */
const OPEN_TIME = 10_000;
const CLOSE_TIME = 2_000;
/** Milliseconds between two states of the progress line. */
const PROGRESS_TIME = 250;
/** How many connections are being opened at the same time. */
const OPENING = 100;

interface Options {
  port: number;
  host: string;
  connections: number;
  size: number;
  text: boolean;
  deflate: boolean;
  batch: number;
  inFlight: number;
  warmup: number;
  seconds: number;
  messages: number;
  json: boolean;
}

function readOptions(args: string[]): Options {
  const given = new Map<string, string>();
  for (const arg of args) {
    const [, name, value] = arg.match(/^--([a-z-]+)(?:=(.+))?$/) ??
      ["", "port", arg];
    given.set(name, value ?? "");
  }
  const take = (name: string) => {
    const value = given.get(name);
    given.delete(name);
    return value;
  };
  const flag = (name: string) => take(name) !== undefined;
  const number = (
    name: string,
    least: number,
    most: number,
    absent: number,
  ) => {
    const text = take(name) ?? String(absent);
    const value = Number(text || NaN);
    if (value >= least && value <= most) return value;
    throw new RangeError(
      `Expected '${name}' to be a number from ${least} to ${most}, got "${text}"`,
    );
  };
  const one = flag("one");
  const messages = number("messages", 1, Infinity, Infinity);
  const options: Options = {
    port: number("port", 1, 65535, Number(process.env.PORT ?? 8080)),
    host: take("host") || "127.0.0.1",
    connections: number("connections", 1, 10_000, 1),
    size: number("size", 0, 16 * 1024 * 1024, 125),
    text: flag("text"),
    deflate: flag("deflate"),
    batch: number("batch", 0, 16 * 1024 * 1024, one ? 0 : 64 * 1024),
    inFlight: number("in-flight", 1, 64, one ? 1 : 4),
    warmup: number("warmup", 0, 60, messages === Infinity ? 0.5 : 0),
    seconds: number("seconds", 0.01, 3600, 5),
    messages,
    json: flag("json"),
  };
  const [unknown] = given.keys();
  if (unknown === undefined) return options;
  throw new RangeError(`Expected a known option, got "--${unknown}"`);
}

/** Counts durations in buckets that are 2 % wide, so that any number of them fits. */
class Latency {
  readonly #counts: number[] = new Array(1500).fill(0);
  #total = 0;
  max = 0;

  /** Adds a duration in milliseconds. */
  add(duration: number): void {
    const bucket = Math.log(Math.max(1, duration * 1e6)) / Math.log(1.02);
    this.#counts[Math.min(Math.floor(bucket), 1499)]++;
    this.#total++;
    this.max = Math.max(this.max, duration);
  }

  /** The duration in milliseconds that `share` of all do not exceed. */
  percentile(share: number): number {
    let rest = share * this.#total;
    const bucket = this.#counts.findIndex((count) => (rest -= count) <= 0);
    return Math.min(this.max, 1.02 ** (bucket + 1) / 1e6);
  }
}

/** Messages ready to be written, made once: the same for every connection. */
interface Batch {
  bytes: Uint8Array;
  messages: number;
  /** The length of one of them with its header, in bytes. */
  length: number;
}

/** What all connections share. */
class Flood {
  readonly options: Options;
  readonly message: string | Uint8Array;
  latency: Latency = new Latency();
  /** Messages that may still be sent. */
  left: number;
  /** Messages whose echo came. */
  received = 0;
  /** Ends the run, with its result or with an error. */
  stop: () => void = () => {};
  fail: (error: Error) => void = () => {};
  #batch: Batch | undefined;

  constructor(options: Options) {
    this.options = options;
    this.left = options.messages;
    this.message = options.text ? jsonOf(options.size) : bytesOf(options.size);
  }

  get batchMessages(): number {
    return this.#batch!.messages;
  }

  batch(deflate: DeflateParameters | null): Batch {
    if (this.#batch !== undefined) return this.#batch;
    const connection = newConnection(deflate);
    connection.send(this.message);
    const first = connection.takeOutput();
    const messages = Math.max(1, Math.floor(this.options.batch / first.length));
    const bytes = new Uint8Array(messages * first.length);
    for (let i = 0; i < messages; i++) bytes.set(first, i * first.length);
    return this.#batch = { bytes, messages, length: first.length };
  }
}

function newConnection(deflate: DeflateParameters | null): Connection {
  return new Connection({
    role: "client",
    deflate,
    deflateThreshold: 0,
    maxPayloadLength: 64 * 1024 * 1024,
  });
}

function bytesOf(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65536) {
    crypto.getRandomValues(bytes.subarray(at, at + 65536));
  }
  return bytes;
}

function jsonOf(size: number): string {
  let text = "[";
  for (let i = 1; text.length < size; i++) {
    const price = (i * 7919 % 100_000) / 100;
    text += `{"id":${i},"symbol":"ABC${i % 7}","price":${price},"open":true},`;
  }
  return text.slice(0, size);
}

/** One connection to the server. */
class Client {
  readonly #flood: Flood;
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  #batch: Batch | undefined;
  #connection: Connection | undefined;
  /** When each batch in flight was written, and how many of its messages are missing. */
  #inFlight: { at: number; missing: number }[] = [];
  /** Bytes of the message that is arriving. */
  #length = 0;
  #take: (chunk: Uint8Array) => void | Promise<void> = () => {};
  #fail: (error: Error) => void = () => {};
  #closed: () => void = () => {};
  #closing = false;

  constructor(flood: Flood) {
    this.#flood = flood;
    this.#reader = new FrameReader({
      role: "client",
      allowRsv1: flood.options.deflate,
      maxPayloadLength: 64 * 1024 * 1024,
    });
    const { host, port } = flood.options;
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("end", () => this.#fail(new Error("The server hung up")));
    this.#socket.on("close", () => this.#closed());
    this.#socket.on("data", async (chunk: Uint8Array) => {
      try {
        // Only the handshake takes time; what comes meanwhile must wait.
        const work = this.#take(chunk);
        if (work === undefined) return;
        this.#socket.pause();
        await work;
        this.#socket.resume();
      } catch (error) {
        this.#fail(error as Error);
      }
    });
  }

  /** Resolves when a first message has come back as it went. */
  open(): Promise<void> {
    const { host, port, deflate: wanted } = this.#flood.options;
    // A batch is written again and again: its compression must not build on what was before.
    const deflate = wanted && { clientNoContextTakeover: true };
    const { bytes, key } = createUpgradeRequest({
      host: `${host.includes(":") ? `[${host}]` : host}:${port}`,
      deflate,
    });
    this.#socket.write(bytes);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.#fail(new Error("The server does not answer")),
        OPEN_TIME,
      );
      this.#fail = (error) => {
        clearTimeout(timer);
        this.#socket.destroy();
        reject(error);
      };
      let head: Uint8Array = new Uint8Array(0);
      this.#take = async (chunk) => {
        head = Buffer.concat([head, chunk]);
        const answer = await readUpgradeResponse(head, { key, deflate });
        if (answer === undefined) return; // more bytes are needed
        const connection = newConnection(answer.deflate);
        this.#connection = connection;
        this.#batch = this.#flood.batch(answer.deflate);
        this.#take = (chunk) => {
          if (!this.#checkEcho(connection, chunk)) return;
          clearTimeout(timer);
          this.#fail = this.#flood.fail;
          this.#take = (chunk) => this.#count(chunk);
          resolve();
        };
        this.#socket.write(this.#batch.bytes.subarray(0, this.#batch.length));
        this.#take(head.subarray(answer.bytesRead));
      };
    });
  }

  /** Whether the first echo is there. */
  #checkEcho(connection: Connection, chunk: Uint8Array): boolean {
    const { message } = this.#flood;
    let isThere = false;
    for (const event of connection.receive(chunk)) {
      if (event.type === "close") throw new Error(`Closed: ${event.code}`);
      if (event.type !== "text" && event.type !== "binary") continue;
      const { data } = event;
      const same = typeof data === "string" || typeof message === "string"
        ? data === message
        : Buffer.compare(data, message) === 0;
      if (!same) throw new Error("The first message came back changed");
      isThere = true;
    }
    this.#write(connection.takeOutput());
    return isThere;
  }

  start(): void {
    for (let i = 0; i < this.#flood.options.inFlight; i++) this.#send();
  }

  /** Writes a batch. How many are in flight bounds what waits in the socket. */
  #send(): void {
    const flood = this.#flood;
    const { bytes, messages, length } = this.#batch!;
    const missing = Math.min(messages, flood.left);
    if (missing === 0) return;
    flood.left -= missing;
    this.#inFlight.push({ at: performance.now(), missing });
    this.#socket.write(bytes.subarray(0, missing * length));
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#socket.write(bytes);
  }

  #count(chunk: Uint8Array): void {
    const reader = this.#reader;
    const { size, deflate } = this.#flood.options;
    let messages = 0;
    reader.push(chunk);
    while (reader.advance()) {
      if (reader.opcode >= Opcode.Close) {
        this.#control();
        continue;
      }
      this.#length += reader.payloadLength;
      if (!reader.fin) continue;
      if (this.#length !== size && !deflate) {
        throw new Error(`${this.#length} bytes came back, not ${size}`);
      }
      this.#length = 0;
      messages++;
    }
    free(chunk);
    if (messages > 0) this.#arrived(messages);
  }

  #arrived(messages: number): void {
    const flood = this.#flood;
    const now = performance.now();
    flood.received += messages;
    while (messages > 0) {
      const batch = this.#inFlight[0];
      if (batch === undefined) throw new Error("More came back than was sent");
      const part = Math.min(batch.missing, messages);
      batch.missing -= part;
      messages -= part;
      if (batch.missing > 0) return;
      this.#inFlight.shift();
      flood.latency.add(now - batch.at);
      this.#send();
    }
    if (flood.received === flood.options.messages) flood.stop();
  }

  #control(): void {
    const { opcode, payload } = this.#reader;
    if (opcode === Opcode.Ping && !this.#closing) {
      this.#connection!.pong(payload);
      this.#write(this.#connection!.takeOutput());
    } else if (opcode === Opcode.Close) {
      const { code, reason } = readClosePayload(payload);
      if (!this.#closing) throw new Error(`Closed: ${code} ${reason}`);
      this.#socket.end();
    }
  }

  /** Closes, and waits a little for the server to do it, too. */
  close(): Promise<void> {
    this.#closing = true;
    this.#fail = () => this.#socket.destroy();
    if (this.#socket.destroyed) return Promise.resolve();
    this.#connection?.close(1000);
    this.#write(this.#connection?.takeOutput() ?? new Uint8Array(0));
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#socket.destroy(), CLOSE_TIME);
      this.#closed = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** What was counted. */
interface Result {
  messages: number;
  seconds: number;
  /** What this program itself needed, in seconds of one core. */
  cpu: number;
}

/** Opens all connections, floods, and counts. */
async function run(flood: Flood): Promise<Result> {
  const { connections, warmup, seconds, json } = flood.options;
  const clients: Client[] = [];
  let from = 0, started = 0, cpu = 0;
  const begin = () => {
    from = flood.received;
    flood.latency = new Latency();
    started = performance.now();
    cpu = cpuTime();
  };
  const count = () => ({
    messages: flood.received - from,
    seconds: (performance.now() - started) / 1000,
    cpu: cpuTime() - cpu,
  });
  const timers: ReturnType<typeof setTimeout>[] = [];
  const stopped = new Promise<void>((resolve, reject) => {
    flood.stop = resolve;
    flood.fail = reject;
  });
  process.once("SIGINT", () => {
    if (started > 0) flood.stop();
    else flood.fail(new Error("Stopped before all connections were open"));
  });
  try {
    while (clients.length < connections) {
      const opening: Promise<void>[] = [];
      for (let i = 0; i < OPENING && clients.length < connections; i++) {
        const client = new Client(flood);
        clients.push(client);
        opening.push(client.open());
      }
      await Promise.race([Promise.all(opening), stopped]);
    }
    begin();
    if (warmup > 0) timers.push(setTimeout(begin, warmup * 1000));
    timers.push(setTimeout(flood.stop, (warmup + seconds) * 1000));
    if (!json && process.stderr.isTTY) {
      timers.push(setInterval(() => showProgress(count()), PROGRESS_TIME));
    }
    for (const client of clients) client.start();
    await stopped;
    return count();
  } finally {
    for (const timer of timers) clearTimeout(timer);
    flood.left = 0;
    await Promise.all(clients.map((client) => client.close()));
  }
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function showProgress({ messages, seconds }: Result): void {
  process.stderr.write(
    `\r\x1b[K${seconds.toFixed(1)} s  ${perSecond(messages, seconds)}`,
  );
}

function perSecond(messages: number, seconds: number): string {
  return `${Math.round(messages / seconds).toLocaleString("en-US")} messages/s`;
}

function print(flood: Flood, { messages, seconds, cpu }: Result): void {
  const { options, latency } = flood;
  const { connections, size, inFlight, json } = options;
  const ms = {
    p50: latency.percentile(0.5),
    p90: latency.percentile(0.9),
    p99: latency.percentile(0.99),
    max: latency.max,
  };
  const rate = messages / seconds;
  if (json) {
    console.log(JSON.stringify({
      options,
      messages,
      seconds,
      messagesPerSecond: rate,
      latency: ms,
      cpu: cpu / seconds,
    }));
    return;
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  const batch = flood.batchMessages;
  const times = Object.entries(ms)
    .map(([name, time]) => `${name} ${time.toFixed(3)} ms`);
  console.log(
    `${connections} x ${inFlight} x ${batch} messages of ${size} bytes\n` +
      `${perSecond(messages, seconds)}, ` +
      `${(rate * size / 1e6).toFixed(1)} MB/s each way, ` +
      `${messages} messages in ${seconds.toFixed(2)} s\n` +
      `latency of ${batch > 1 ? "a batch" : "a message"}: ${
        times.join(", ")
      }\n` +
      `this program used ${(100 * cpu / seconds).toFixed(0)} % of a core`,
  );
}

async function main(): Promise<void> {
  try {
    const flood = new Flood(readOptions(process.argv.slice(2)));
    print(flood, await run(flood));
    process.exit();
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}

main();
