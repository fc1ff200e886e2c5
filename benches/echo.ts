/**
 * Echo over loopback: the example server against the one that the runtime comes
 * with (on Node, npm `ws`), the same client for both.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Context, Fact, Runtime, Table } from "./context.ts";
import { size } from "./context.ts";
import type { Contender, Race, Target } from "./measure.ts";

const KiB = 2 ** 10;

/** What the runtime's own server is called. */
const PEERS: Record<Runtime, string> = {
  deno: "Deno.serve",
  bun: "Bun.serve",
  node20: "ws",
  node26: "ws",
};
const OURS = "wsframe";

const SERVER = "examples/echo_server", FLOOD = "examples/flood";
const PEER = "benches/echo_peer";

/** What `examples/flood.ts --json` prints, as far as it is used here. */
interface Flood {
  messages: number;
  seconds: number;
  /** Of a round trip, in milliseconds. */
  latency: { p50: number };
}

/** Programs of one runtime, and the processes that run. */
class Programs {
  #command: string[];
  #folder: string;
  #extension: string;
  #children = new Set<ChildProcess>();
  #servers = new Map<string, Promise<{ url: string; process: ChildProcess }>>();

  constructor({ runtime, library }: Context) {
    const flags = runtime === "deno"
      ? ["run", "--allow-all", "--no-check", "--quiet"]
      : runtime === "bun"
      ? [`--tsconfig-override=${join(process.cwd(), ".cache/tsconfig.json")}`]
      : [];
    this.#command = [process.execPath, ...flags];
    this.#folder = dirname(library);
    this.#extension = extname(library);
  }

  #path(name: string): string {
    return join(this.#folder, name + this.#extension);
  }

  /** Why a program cannot run, if it cannot. */
  absent(name: string): string | undefined {
    return existsSync(this.#path(name)) ? undefined : `there is no ${name}.ts`;
  }

  #spawn(name: string, args: string[]): ChildProcess {
    const [program, ...flags] = this.#command;
    const child = spawn(program, [...flags, this.#path(name), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  /** A server that stays up until `stop`; the same for the same arguments. */
  server(name: string, ...args: string[]) {
    const key = [name, ...args].join(" ");
    let server = this.#servers.get(key);
    if (!server) {
      const process = this.#spawn(name, args);
      server = new Promise((resolve, reject) => {
        process.once("exit", () => reject(new Error(`${name} ended`)));
        createInterface({ input: process.stdout! }).on("line", (line) => {
          const url = line.match(/ws:\/\/[\w.:]+\d\/?/)?.[0];
          if (url) resolve({ url, process });
        });
      });
      this.#servers.set(key, server);
    }
    return server;
  }

  /** Runs the load generator to its end; throws where an echo was wrong. */
  async flood(url: string, ...args: string[]): Promise<Flood> {
    const process = this.#spawn(FLOOD, [
      new URL(url).port,
      "--json",
      ...args,
    ]);
    let last = "";
    createInterface({ input: process.stdout! }).on("line", (line) => {
      last = line;
    });
    const code = await new Promise((resolve) => process.once("close", resolve));
    if (code !== 0) throw new Error(`flood ended with ${code}`);
    return JSON.parse(last);
  }

  stop(): void {
    for (const child of this.#children) child.kill();
  }
}

/** The two servers of a row; `time` says what counts of a flood. */
function contenders(
  { runtime }: Context,
  programs: Programs,
  args: string[],
  time: (flood: Flood) => number,
): Contender[] {
  const deflate = args.includes("--deflate") ? ["deflate"] : [];
  const contender = (name: string, program: string, options: string[]) => ({
    name,
    absent: programs.absent(program) ?? programs.absent(FLOOD),
    sample: async () => {
      const { url } = await programs.server(program, ...options);
      return time(await programs.flood(url, ...args));
    },
  });
  return [
    contender(OURS, SERVER, ["0"]),
    contender(PEERS[runtime], PEER, deflate),
  ];
}

function* rows(context: Context): Generator<Race | Fact> {
  const { runtime, quick, once } = context;
  const programs = new Programs(context);
  const over = PEERS[runtime];
  const bun = runtime === "bun";
  const times = [
    `--seconds=${quick || once ? 0.2 : 1}`,
    `--warmup=${quick || once ? 0.1 : 0.5}`,
  ];
  const perMessage = ({ messages, seconds }: Flood) => seconds * 1e9 / messages;
  const race = (
    row: string,
    bytes: number,
    args: string[],
    time: (flood: Flood) => number,
    atLeast: number,
  ): Race => ({
    row,
    bytes,
    rounds: quick ? 2 : 7,
    contenders: () =>
      contenders(
        context,
        programs,
        [`--size=${bytes}`, ...times, ...args],
        time,
      ),
    targets: [{ of: OURS, over, atLeast }] satisfies Target[],
  });
  try {
    const least: [number, number][] = [
      [16, bun ? 1.5 : 20],
      [125, bun ? 1.5 : 20],
      [KiB, bun ? 1 : 5],
      [64 * KiB, 1],
    ];
    for (const [bytes, atLeast] of quick ? least.slice(0, 1) : least) {
      yield race(size(bytes), bytes, [], perMessage, atLeast);
    }
    if (quick) return;
    yield race(
      "16 B, one at a time",
      16,
      ["--one"],
      ({ latency }) => latency.p50 * 1e6,
      1 / (bun ? 1.2 : 1.1),
    );
    // Deno's own server does not compress, and Bun's is not what the issue names.
    if (over === "ws") {
      yield race(
        "1 KiB of text, compressed",
        KiB,
        ["--deflate", "--text"],
        perMessage,
        0.5,
      );
    }
    if (process.platform !== "linux") return;
    for (const [name, program] of [[OURS, SERVER], [over, PEER]]) {
      yield {
        row: `${CONNECTIONS} idle connections, each takes`,
        name,
        unit: "KiB",
        unchecked: true,
        measure: () => idle(programs, program),
      };
    }
  } finally {
    programs.stop();
  }
}

/** Connections that do nothing, for their memory, and how many open at once. */
const CONNECTIONS = 10_000, BATCH = 50;

/** Milliseconds in which a handshake is answered. */
const OPEN_TIME = 5000;

/** KiB of a server's resident memory that one idle connection takes (Linux). */
async function idle(programs: Programs, program: string): Promise<number> {
  const { url, process } = await programs.server(
    program,
    ...program === SERVER ? ["0"] : [],
  );
  const port = Number(new URL(url).port);
  const resident = () =>
    Number(
      readFileSync(`/proc/${process.pid}/status`, "utf8")
        .match(/VmRSS:\s+(\d+)/)![1],
    );
  const openBatch = () =>
    Promise.all(Array.from({ length: BATCH }, () => open(port)));
  // The first ones pay for what all share.
  const sockets = await openBatch();
  const before = resident();
  while (sockets.length < CONNECTIONS) sockets.push(...await openBatch());
  const grown = resident() - before;
  for (const socket of sockets) socket.destroy();
  return grown / (CONNECTIONS - BATCH);
}

/** A connection whose handshake is done. */
function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.setTimeout(OPEN_TIME, () => {
      reject(new Error("no answer; is the limit of open files high enough?"));
    });
    socket.once("error", reject);
    socket.once("data", () => {
      socket.setTimeout(0);
      resolve(socket);
    });
    socket.write(
      [
        "GET / HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "\r\n",
      ].join("\r\n"),
    );
  });
}

/** The table of echoes. */
export const echoTables: Table[] = [{
  name: "echo",
  title: "Echo over loopback, one connection, per message",
  style: "peers",
  base: Object.values(PEERS),
  rows,
}];
