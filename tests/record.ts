/**
 * Records WebSocket traffic between peers that are not ours, on loopback, for
 * the demo and the tests: npm `ws` (Node), Deno and Bun, each as client and as
 * server. A plain TCP relay between the two ends writes down what passes.
 *
 *     deno task record
 *
 * writes `tests/data/index.json` ({@linkcode Recording}s) and, per session, the
 * bytes of either direction from the handshake to the Close: `NAME.client.bin`
 * (what the client sent) and `NAME.server.bin`.
 */

import { headLength, type Recording, type Side } from "./recordings.ts";
import type { Peer, Plan, Report, Step } from "./record_peer.ts";
import { concat } from "./vectors.ts";
import { fromFileUrl } from "./runner/process.ts";
import { prepare, ROOT } from "./runner/runtimes.ts";

/** Seconds after which a session that hangs is given up. */
const LIMIT = 20;
const DATA = `${ROOT}tests/data/`;
const PEER = fromFileUrl(new URL("./record_peer.ts", import.meta.url));

/** What one end of a session is to do, without what the session knows. */
type Part = Pick<Plan, "steps" | "close">;

interface Session {
  client: Peer;
  server: Peer;
  deflate?: boolean;
  fromClient: Part;
  fromServer: Part;
}

const LATIN = "Grüße aus Zürich: naïve façade, smørrebrød, žluťoučký kůň";
const GREEK = "Καλημέρα κόσμε, τι νέα;";
const CYRILLIC = "Доброе утро, мир! Доброго ранку, світе!";
const HEBREW = "שלום עולם, מה שלומך היום?";
const ARABIC = "صباح الخير يا عالم";
const DEVANAGARI = "नमस्ते दुनिया";
const CHINESE = "你好，世界。今天天气很好。";
const JAPANESE = "こんにちは世界。カタカナとひらがなと漢字。";
const KOREAN = "안녕하세요, 세계!";
const EMOJI = "🚀🌍 👩‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 1️⃣ 👋🏽";

/** A line of market data: short, and much like the one before it. */
function tick(n: number): Step {
  const bid = (64000 + (n * 37) % 90).toFixed(2);
  const ask = (64000.5 + (n * 37) % 90).toFixed(2);
  return {
    text: `{"type":"tick","seq":${n},"pair":"BTC-USD",` +
      `"bid":"${bid}","ask":"${ask}","size":"0.${n % 9}25"}`,
  };
}

function ticks(from: number, count: number): Step[] {
  return Array.from({ length: count }, (_, i) => tick(from + i));
}

const text = (text: string): Step => ({ text });
const binary = (...sizes: number[]): Step[] =>
  sizes.map((size) => ({ binary: size }));

/** Every client with every server, then three with compression. */
const SESSIONS: readonly Session[] = [
  {
    client: "ws",
    server: "ws",
    fromClient: {
      steps: [
        text("Hello, frames!"),
        text(LATIN),
        text(GREEK),
        { ping: "are you there?" },
        ...binary(0, 1, 2, 3, 125, 126, 127),
        {
          fragments: ["Четыре ", "части, ", "", "一条消息 🧩"],
          pingBetween: "between two fragments",
        },
        { binaryFragments: [1000, 0, 3000] },
        ...binary(65535, 65536),
      ],
      close: { code: 1000, reason: "done, thank you" },
    },
    fromServer: {
      steps: [
        text("Hello yourself"),
        text(CYRILLIC),
        text(EMOJI),
        { ping: "" },
        { pong: "nobody asked" },
        { fragments: ["frag", "men", "ted"] },
        ...binary(0, 125, 126),
        text(""),
      ],
    },
  },
  {
    client: "ws",
    server: "deno",
    fromClient: {
      steps: [
        text(HEBREW),
        text(ARABIC),
        { ping: "ping 1" },
        { fragments: [CHINESE, JAPANESE, KOREAN] },
        ...binary(4096, 126),
        text(""),
      ],
    },
    fromServer: {
      steps: [text(EMOJI), text(LATIN), ...binary(0, 125, 126, 70000)],
      close: { code: 1001, reason: "сервер перезапускается" },
    },
  },
  {
    client: "ws",
    server: "bun",
    fromClient: {
      steps: [...ticks(1, 12), { ping: "tick?" }, { fragments: ["a", "b"] }],
      close: { code: 4000, reason: "再见" },
    },
    fromServer: {
      steps: [
        text(JAPANESE),
        { ping: "from Bun" },
        ...binary(1, 126, 65536),
        { pong: "" },
        ...ticks(100, 6),
      ],
    },
  },
  {
    client: "deno",
    server: "ws",
    fromClient: {
      steps: [
        text(GREEK),
        text(DEVANAGARI),
        ...binary(0, 1, 125, 126, 65535),
      ],
      close: { code: 1000, reason: "bye" },
    },
    fromServer: {
      steps: [
        { ping: "1" },
        { fragments: [HEBREW, " / ", ARABIC] },
        { ping: "2" },
        { binaryFragments: [126, 126] },
        text("last words"),
      ],
    },
  },
  {
    client: "deno",
    server: "deno",
    fromClient: {
      steps: [text(KOREAN), text(EMOJI), ...binary(127, 2048)],
      close: {},
    },
    fromServer: { steps: [text(CHINESE), ...ticks(200, 8), ...binary(16384)] },
  },
  {
    client: "deno",
    server: "bun",
    fromClient: { steps: [text(LATIN), ...binary(65537)] },
    fromServer: {
      steps: [{ ping: "🏓" }, text(DEVANAGARI), text(ARABIC), ...binary(126)],
      close: { code: 3000, reason: "" },
    },
  },
  {
    client: "bun",
    server: "ws",
    fromClient: {
      steps: [
        text(CYRILLIC),
        { ping: "Bun asks" },
        ...binary(0, 125, 126, 66000),
        { pong: "" },
        text(EMOJI),
      ],
      close: { code: 1000, reason: "👋" },
    },
    fromServer: {
      steps: [{ ping: "ws asks" }, { fragments: ["x", "", "y"] }, text(GREEK)],
    },
  },
  {
    client: "bun",
    server: "deno",
    fromClient: { steps: [text(CHINESE), { ping: "" }, ...binary(1024)] },
    fromServer: {
      steps: [text(KOREAN), ...binary(65535), text("שלום")],
      close: { code: 1000, reason: "להתראות" },
    },
  },
  {
    client: "bun",
    server: "bun",
    fromClient: {
      steps: [...ticks(300, 10), { ping: "x".repeat(125) }, ...binary(126)],
      close: { code: 4999, reason: "r".repeat(123) },
    },
    fromServer: { steps: [text(JAPANESE), ...ticks(400, 10), ...binary(127)] },
  },
  {
    client: "ws",
    server: "ws",
    deflate: true,
    fromClient: {
      steps: [
        ...ticks(500, 8),
        {
          fragments: [EMOJI, EMOJI, EMOJI],
          pingBetween: "a ping is never compressed",
        },
        ...binary(300),
      ],
      close: { code: 1000, reason: "compressed enough" },
    },
    fromServer: {
      steps: [
        text("Na na na na ".repeat(40)),
        ...ticks(500, 8),
        text(CYRILLIC),
        text(CYRILLIC),
        text(""),
      ],
    },
  },
  {
    client: "bun",
    server: "ws",
    deflate: true,
    fromClient: { steps: [...ticks(600, 6), text(LATIN), text(LATIN)] },
    fromServer: {
      steps: [...ticks(700, 6), ...binary(200)],
      close: { code: 1000, reason: "bye" },
    },
  },
  {
    client: "ws",
    server: "bun",
    deflate: true,
    fromClient: {
      steps: [...ticks(800, 6), text(HEBREW.repeat(10))],
      close: { code: 1000, reason: "bye" },
    },
    fromServer: { steps: [...ticks(900, 6), text(GREEK.repeat(10))] },
  },
];

/** A part of a plan sends so many messages; pings and pongs are none. */
function messagesIn({ steps }: Part): number {
  return steps.filter((step) => !("ping" in step || "pong" in step)).length;
}

/** Starts an end; its lines come one by one. */
function start(
  command: string[],
  role: "client" | "server",
  plan: Plan,
): { process: Deno.ChildProcess; lines: () => Promise<string> } {
  const [program, ...args] = [...command, PEER, role, JSON.stringify(plan)];
  const process = new Deno.Command(program, {
    args,
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    env: { NODE_NO_WARNINGS: "1" },
  }).spawn();
  const stdout = process.stdout.pipeThrough(new TextDecoderStream())
    .getReader();
  let text = "";
  const lines = async () => {
    while (!text.includes("\n")) {
      const { value, done } = await stdout.read();
      if (done) throw new Error(`${command[0]} ${role} said no more: ${text}`);
      text += value;
    }
    const end = text.indexOf("\n");
    const line = text.slice(0, end);
    text = text.slice(end + 1);
    return line;
  };
  return { process, lines };
}

/** The relay: what either side sends goes to the other and into the log. */
class Tap {
  readonly chunks: { from: Side; bytes: Uint8Array }[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  get port(): number {
    return this.#listener.addr.port;
  }

  /** Serves one connection, to its end. */
  async run(serverPort: number): Promise<void> {
    const client = await this.#listener.accept();
    this.#listener.close();
    const server = await Deno.connect({
      hostname: "127.0.0.1",
      port: serverPort,
    });
    await Promise.all([
      this.#relay("client", client, server),
      this.#relay("server", server, client),
    ]);
    client.close();
    server.close();
  }

  async #relay(from: Side, source: Deno.Conn, to: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(65536);
    try {
      for (;;) {
        const length = await source.read(buffer);
        if (length === null) break;
        const bytes = buffer.slice(0, length);
        this.chunks.push({ from, bytes });
        for (let sent = 0; sent < length;) {
          sent += await to.write(bytes.subarray(sent));
        }
      }
      await to.closeWrite();
    } catch (error) {
      // After the closing handshake an end may reset the connection.
      if (
        !(error instanceof Deno.errors.ConnectionReset ||
          error instanceof Deno.errors.BrokenPipe ||
          error instanceof Deno.errors.NotConnected)
      ) throw error;
    }
  }
}

function bytesFrom(side: Side, { chunks }: Tap): Uint8Array<ArrayBuffer> {
  return concat(
    chunks.filter(({ from }) => from === side).map(({ bytes }) => bytes),
  );
}

/** Counts frames by opcode without the library's help, for its tests. */
function countFrames(bytes: Uint8Array): Record<string, number> {
  const names: Record<number, string> = {
    0: "continuation",
    1: "text",
    2: "binary",
    8: "close",
    9: "ping",
    10: "pong",
  };
  const counts: Record<string, number> = {};
  const view = new DataView(bytes.buffer);
  for (let at = headLength(bytes); at < bytes.length;) {
    const name = names[bytes[at] & 15];
    counts[name] = (counts[name] ?? 0) + 1;
    let length = bytes[at + 1] & 127;
    let header = bytes[at + 1] & 128 ? 6 : 2;
    if (length === 126) {
      length = view.getUint16(at + 2);
      header += 2;
    } else if (length === 127) {
      length = Number(view.getBigUint64(at + 2));
      header += 8;
    }
    at += header + length;
    if (at > bytes.length) throw new Error("The recording ends inside a frame");
  }
  return counts;
}

function extensionsIn(bytes: Uint8Array): string | null {
  const head = new TextDecoder().decode(bytes.subarray(0, headLength(bytes)));
  return /^sec-websocket-extensions: *(.*)$/im.exec(head)?.[1].trim() ?? null;
}

async function record(
  session: Session,
  programs: Record<Peer, string[]>,
): Promise<Recording> {
  const { client, server, deflate = false, fromClient, fromServer } = session;
  const tap = new Tap();
  const listening = start(programs[server], "server", {
    ...fromServer,
    port: 0,
    deflate,
    expect: messagesIn(fromClient),
  });
  const late = setTimeout(() => listening.process.kill(), LIMIT * 1000);
  const relayed = tap.run(Number(await listening.lines()));
  const connecting = start(programs[client], "client", {
    ...fromClient,
    port: tap.port,
    deflate,
    expect: messagesIn(fromServer),
  });
  const reportOf = async (lines: () => Promise<string>) =>
    JSON.parse(await lines()) as Report;
  const [clientReport, serverReport] = await Promise.all([
    reportOf(connecting.lines),
    reportOf(listening.lines),
    relayed,
    connecting.process.status,
    listening.process.status,
  ]);
  clearTimeout(late);

  const name = `${client}-${server}${deflate ? "-deflate" : ""}`;
  const bytes = {
    client: bytesFrom("client", tap),
    server: bytesFrom("server", tap),
  };
  await Deno.writeFile(`${DATA}${name}.client.bin`, bytes.client);
  await Deno.writeFile(`${DATA}${name}.server.bin`, bytes.server);
  return {
    name,
    client: clientReport.peer,
    server: serverReport.peer,
    extensions: extensionsIn(bytes.server),
    chunks: tap.chunks.map(({ from, bytes }) =>
      from === "client" ? bytes.length : -bytes.length
    ),
    frames: {
      client: countFrames(bytes.client),
      server: countFrames(bytes.server),
    },
    received: {
      client: clientReport.received,
      server: serverReport.received,
    },
    close: { client: clientReport.close, server: serverReport.close },
  };
}

async function main(): Promise<void> {
  const [bun, node] = [await prepare("bun"), await prepare("node26")];
  const programOf = ({ command }: typeof bun) =>
    command("", { junit: "", coverage: undefined }).args[0];
  const programs: Record<Peer, string[]> = {
    ws: [programOf(node)],
    deno: [Deno.execPath(), "run", "--allow-all", "--no-check", "--quiet"],
    bun: [programOf(bun)],
  };
  const recordings: Recording[] = [];
  for (const session of SESSIONS) {
    const recording = await record(session, programs);
    console.log(recording.name, recording.extensions ?? "", recording.frames);
    recordings.push(recording);
  }
  const index = { recorded: new Date().toISOString().slice(0, 10), recordings };
  // Numbers stand on one line, for the reader's sake.
  const json = JSON.stringify(index, null, 1)
    .replaceAll(/\[[-\d,\s]+\]/g, (list) => list.replaceAll(/\s+/g, ""));
  await Deno.writeTextFile(`${DATA}index.json`, json + "\n");
}

await main();
