/**
 * Takes recorded WebSocket traffic apart, frame by frame, writes every frame
 * again, and shows how fast masking is here.
 *
 *     deno task demo [NAME...] [--all] [--rounds=N]
 *
 * NAME is a recording whose frames to list, `--all` lists those of every one;
 * without either a few are listed, of all of which every byte is read. The
 * traffic passed between npm `ws`, Deno and Bun (`tests/record.ts`). N is how
 * often each speed is measured. Also: `bun examples/demo.ts`, and from Node 26
 * on `node examples/demo.ts`.
 */

import process from "node:process";
import { backend, backends, Opcode, readClosePayload } from "../mod.ts";
import { readIndex } from "../tests/recordings.ts";
import { measure, type Table } from "./demo/speed.ts";
import {
  blue,
  bold,
  COLUMNS,
  cut,
  cyan,
  dim,
  green,
  magenta,
  print,
  quote,
  red,
  type Style,
  yellow,
} from "./demo/terminal.ts";
import { readTraffic, type Seen, type Traffic } from "./demo/traffic.ts";

/** What is listed without being asked for: fragments, two runtimes, deflate. */
const LISTED = ["ws-ws", "deno-bun", "ws-ws-deflate"];
const ROUNDS = 15;
/** From how many like frames on the rest is left out, and how many stay. */
const RUN = 4;
const RUN_SHOWN = 2;

const OPCODES: Record<number, { name: string; style: Style }> = {
  [Opcode.Continuation]: { name: "continuation", style: blue },
  [Opcode.Text]: { name: "text", style: green },
  [Opcode.Binary]: { name: "binary", style: yellow },
  [Opcode.Close]: { name: "close", style: red },
  [Opcode.Ping]: { name: "ping", style: magenta },
  [Opcode.Pong]: { name: "pong", style: magenta },
};

function count(n: number): string {
  return n.toLocaleString("en-US");
}

function hex(bytes: Uint8Array, separator = ""): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"))
    .join(separator);
}

/** Bytes of which a preview is made: a line holds no more. */
const PREVIEWED = 400;

/** What is in a frame, in a line; `cut` makes it fit. */
function preview({ frame, kind, deflated, message }: Seen): string {
  const { opcode, payload } = frame;
  const content = message ?? payload;
  if (opcode === Opcode.Close) {
    if (payload.length === 0) return "no code";
    const { code, reason } = readClosePayload(payload);
    return reason ? `${code} ${quote(reason)}` : `${code}`;
  }
  if (deflated && message === undefined) return "deflated, to be continued";
  const shown = content.subarray(0, PREVIEWED);
  const text = kind === "binary"
    ? hex(shown, " ")
    : content.length > 0
    ? quote(new TextDecoder().decode(shown))
    : "";
  return deflated ? `inflates to ${content.length}  ${text}` : text;
}

const HEADING =
  " from     offset  opcode       fin rsv  mask       length  payload";
const PREVIEW_AT = HEADING.indexOf("payload");

function printFrame(seen: Seen): void {
  const { from, offset, frame } = seen;
  const { fin, rsv1, rsv2, rsv3, opcode, payload, maskKey } = frame;
  const { name, style } = OPCODES[opcode];
  const rsv = [rsv1, rsv2, rsv3].map((bit) => bit ? "1" : "-").join("");
  const side = from === "client" ? cyan(from) : magenta(from);
  const bits = `${fin ? "FIN" : dim(" - ")} ${rsv1 ? bold(rsv) : dim(rsv)}`;
  const mask = dim(maskKey ? hex(maskKey) : "   -    ");
  print(
    ` ${side} ${count(offset).padStart(8)}  ${style(name.padEnd(12))} ` +
      `${bits}  ${mask} ${count(payload.length).padStart(8)}  ` +
      cut(preview(seen), COLUMNS - PREVIEW_AT),
  );
}

/** Whether a frame looks so much like another that seeing it tells nothing. */
function alike(a: Seen, b: Seen): boolean {
  return a.from === b.from && a.frame.opcode === b.frame.opcode &&
    a.frame.fin === b.frame.fin && a.frame.rsv1 === b.frame.rsv1 &&
    Math.min(a.byteLength, b.byteLength) > 16 &&
    Math.abs(a.byteLength - b.byteLength) < 16;
}

function printTraffic({ recording, heads, frames }: Traffic): void {
  const { name, client, server, extensions } = recording;
  const answer = heads.server.split("\r\n", 1)[0].replace("HTTP/1.1 ", "");
  print();
  print(
    `${bold(name)}  ${cyan(`client ${client}`)}  ${
      magenta(`server ${server}`)
    }`,
  );
  print(dim(
    `  ${heads.client.split("\r\n", 1)[0]}, ${answer}` +
      (extensions ? `, ${extensions}` : ""),
  ));
  print(dim(HEADING));
  for (let i = 0; i < frames.length;) {
    let end = i + 1;
    while (end < frames.length && alike(frames[i], frames[end])) end++;
    const shown = end - i < RUN ? end - i : RUN_SHOWN;
    for (const seen of frames.slice(i, i + shown)) printFrame(seen);
    const rest = frames.slice(i + shown, end);
    if (rest.length > 0) {
      const bytes = rest.reduce((sum, { byteLength }) => sum + byteLength, 0);
      print(dim(
        `${
          " ".repeat(HEADING.indexOf("opcode"))
        }… ${rest.length} more like these, ${count(bytes)} bytes`,
      ));
    }
    i = end;
  }
}

/** Prints a line per recording; returns whether every frame came out the same. */
function printTotals(traffic: Traffic[]): boolean {
  const opcodes = Object.keys(OPCODES).map(Number);
  print();
  print(bold("Every frame written again, with its own key"));
  print(dim(
    " recording      frames  cont  text   bin close  ping  pong    bytes" +
      "  the same",
  ));
  let [frameCount, identicalCount, right] = [0, 0, true];
  for (const { recording, frames, byteLength } of traffic) {
    const identical = frames.filter((seen) => seen.identical);
    const written = identical.reduce((sum, seen) => sum + seen.byteLength, 0);
    const style = written === byteLength ? green : red;
    const counts = opcodes.map((opcode) =>
      frames.filter(({ frame }) => frame.opcode === opcode).length
    );
    print(
      ` ${recording.name.padEnd(14)}${count(frames.length).padStart(7)}` +
        counts.map((n) => `${n || "-"}`.padStart(6)).join("") +
        `${count(byteLength).padStart(9)}  ` +
        style(`${identical.length} of ${frames.length}`),
    );
    frameCount += frames.length;
    identicalCount += identical.length;
    right &&= written === byteLength;
  }
  print((right ? green : red)(
    ` ${count(identicalCount)} of ${count(frameCount)} frames identical` +
      (right ? "" : ": NOT all bytes are the same"),
  ));
  return right;
}

/** Nanoseconds, to three digits. */
function duration(ns: number | undefined): string {
  if (ns === undefined) return "-";
  if (ns < 999.5) return `${ns.toPrecision(3)} ns`;
  if (ns < 999.5e3) return `${(ns / 1e3).toPrecision(3)} µs`;
  return `${(ns / 1e6).toPrecision(3)} ms`;
}

function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1 << 20) return `${bytes / 1024} KiB`;
  return `${bytes / (1 << 20)} MiB`;
}

function printSpeed({ names, absent, rows }: Table, rounds: number): void {
  const [own, ...others] = names;
  print();
  print(bold(`Masking in place, medians of ${rounds} rounds`));
  print(dim(
    `     size${own.padStart(10)}   GB/s` +
      others.map((name) => name.padStart(17)).join(""),
  ));
  for (const { size: bytes, times: [time, ...theirs] } of rows) {
    const cells = theirs.map((other) => {
      if (other === undefined || time === undefined) return "-".padStart(17);
      const ratio = other / time;
      const style = ratio >= 1.05 ? green : ratio <= 0.95 ? red : dim;
      return duration(other).padStart(10) +
        style(`${ratio.toFixed(ratio < 10 ? 1 : 0)}x`.padStart(7));
    });
    print(
      size(bytes).padStart(9) + bold(duration(time).padStart(10)) +
        (bytes / (time ?? NaN)).toFixed(1).padStart(7) + cells.join(""),
    );
  }
  print(dim(` x: how many times as fast ${own} is`));
  for (const line of absent) print(` ${line}`);
}

function runtime(): string {
  const { bun, deno, node } = process.versions;
  return bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`;
}

interface Options {
  /** Names of recordings to list. */
  listed: string[];
  rounds: number;
}

/** Reads the command line; throws RangeError for what it does not know. */
function readOptions(args: string[], names: string[]): Options {
  const options: Options = { listed: [], rounds: ROUNDS };
  for (const arg of args) {
    if (arg === "--all") options.listed.push(...names);
    else if (names.includes(arg)) options.listed.push(arg);
    else if (/^--rounds=[1-9]\d{0,3}$/.test(arg)) {
      options.rounds = Number(arg.slice("--rounds=".length));
    } else {
      throw new RangeError(
        `An argument is --all, --rounds=1 to 9999 or one of ${
          names.join(", ")
        }, got "${arg}"`,
      );
    }
  }
  if (options.listed.length === 0) options.listed.push(...LISTED);
  return options;
}

function main(args: string[]): void {
  const { recorded, recordings } = readIndex();
  const names = recordings.map(({ name }) => name);
  const { listed, rounds } = readOptions(args, names);
  const traffic = recordings.map(readTraffic);
  const { name, isa, minBytes } = backend();
  const others = backends().filter((one) => one.available && one.name !== name);

  print(
    `${
      bold("wsframe")
    } under ${runtime()} reads traffic of ws, Deno and Bun, ` +
      `recorded ${recorded}`,
  );
  print(
    `backend: ${bold(`${name} (${isa})`)} from ${minBytes} bytes up` +
      (others.length > 0
        ? `; also here: ${others.map(({ name }) => name).join(", ")}`
        : ""),
  );
  for (const one of traffic) {
    if (listed.includes(one.recording.name)) printTraffic(one);
  }
  if (!printTotals(traffic)) process.exitCode = 1;
  printSpeed(measure(rounds), rounds);
}

try {
  main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
