/**
 * A client that is not ours, of an echo server: sends messages, checks what comes back,
 * and closes in several ways. The WebSocket is that of Node 26, Deno, Bun or a browser,
 * or npm `ws`:
 *
 *     client.mjs [--ws|--ws-deflate] ORDERS URL
 *
 * ORDERS is a server that also follows orders (`server.ts`), for what the client itself
 * cannot send. Plain JavaScript, since a browser runs it, too. It says `{"waiting":true}` when the
 * server is to end the second connection, and at last what was done.
 *
 * @module
 */

export const SIZES = [0, 1, 125, 126, 65535, 65536, 1 << 20, 16 << 20];

/** Bytes that look like data and are the same on every run. */
export function pattern(length) {
  const bytes = new Uint8Array(length);
  for (let i = 0, x = length + 1; i < length; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    bytes[i] = x >>> 16;
  }
  return bytes;
}

/** Text that is `length` bytes of UTF-8. */
export function text(length) {
  return "é".repeat(length >> 1) + "x".repeat(length & 1);
}

export function same(a, b) {
  if (typeof a === "string" || typeof b === "string") return a === b;
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** A WebSocket with promises: messages in order, pongs, the close event. */
class Socket {
  #messages = [];
  #waiting = [];

  constructor(WebSocket, url, options) {
    this.socket = new WebSocket(url, options);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => {
      const message = typeof data === "string" ? data : new Uint8Array(data);
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#messages.push(message);
      else waiting.resolve(message);
    };
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onerror = (event) => {
        const error = new Error(`error event: ${event.message ?? ""}`);
        reject(error);
        for (const waiting of this.#waiting) waiting.reject(error);
      };
    });
    this.closed = new Promise((resolve) => {
      this.socket.onclose = ({ code, reason, wasClean }) => {
        resolve({ code, reason, wasClean });
        const error = new Error(`closed: ${code} ${reason}`);
        for (const waiting of this.#waiting) waiting.reject(error);
      };
    });
  }

  message() {
    if (this.#messages.length > 0) {
      return Promise.resolve(this.#messages.shift());
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  async echo(message) {
    this.socket.send(message);
    check(
      same(await this.message(), message),
      `the echo of ${message.length} ${typeof message} differs`,
    );
  }
}

/** Has a server send Pings and fragments, and close. Returns how it did. */
async function order(WebSocket, url, options) {
  const client = new Socket(WebSocket, url, options);
  await client.opened;
  client.socket.send("ping");
  check(await client.message() === "pong there?", "no pong arrived");
  client.socket.send("fragments");
  check(await client.message() === "fragmented 🧩", "fragments of text");
  check(same(await client.message(), pattern(70_000)), "fragments of bytes");
  client.socket.send("close 4002 auf Wiedersehen, привет");
  const closed = await client.closed;
  const other = new Socket(WebSocket, url, options);
  await other.opened;
  other.socket.close(4003, "до свидания");
  await other.closed;
  return closed;
}

/** Everything, with one WebSocket class. Returns what was done. */
export async function run(WebSocket, orders, url, options, say) {
  const report = { binary: [], text: [], extensions: "", extras: [] };
  const first = new Socket(WebSocket, url, options);
  await first.opened;
  const { socket } = first;
  report.extensions = socket.extensions;
  for (const size of SIZES) {
    await first.echo(pattern(size));
    report.binary.push(size);
    await first.echo(text(size));
    report.text.push(size);
  }

  const many = Array.from({ length: 1000 }, (_, i) => `${i} `.repeat(i % 50));
  for (const message of many) socket.send(message);
  for (const message of many) {
    check(same(await first.message(), message), "many: an echo differs");
  }
  report.extras.push("many");

  if (typeof socket.ping === "function") {
    const pong = new Promise((resolve) => {
      if (socket.on) socket.on("pong", (data) => resolve(String(data)));
      else {
        socket.addEventListener(
          "pong",
          ({ data }) => resolve(new TextDecoder().decode(data)),
        );
      }
    });
    socket.ping("there?");
    check(await pong === "there?", "the pong differs");
    report.extras.push("ping");
  }

  if (typeof socket._socket === "object") { // npm ws
    socket.send("frag", { fin: false });
    socket.ping("between");
    socket.send("", { fin: false });
    socket.send("mented", { fin: true });
    check(await first.message() === "fragmented", "fragments: echo differs");
    report.extras.push("fragments");
  }

  socket.close(4001, "bye, später");
  report.closed = await first.closed;

  report.ordered = await order(WebSocket, orders, options);

  const second = new Socket(WebSocket, url, options);
  await second.opened;
  await second.echo("still there");
  say({ waiting: true });
  report.closedByServer = await second.closed;
  say(report);
}

async function main(args) {
  let { WebSocket } = globalThis;
  let options;
  if (args.includes("--ws") || args.includes("--ws-deflate")) {
    ({ WebSocket } = await import("ws"));
    const deflate = args.includes("--ws-deflate") && { threshold: 0 };
    options = { perMessageDeflate: deflate };
  }
  await run(WebSocket, ...args.slice(-2), options, (what) => {
    console.log(JSON.stringify(what));
  });
}

// Imported, by a page or a test, it does nothing by itself.
if (globalThis.process?.argv.at(-1).startsWith("ws://")) {
  main(process.argv.slice(2)).then(() => process.exit(), (error) => {
    console.error(error);
    process.exit(1);
  });
}
