/**
 * The shared vectors (`tests/vectors/*.json`), typed, and the ways to cut
 * their bytes into chunks. Everything here is the same in every run: whatever
 * is random comes from a seed.
 */

import { createHash } from "node:crypto";
import frames from "./vectors/frames.json" with { type: "json" };
import masks from "./vectors/mask.json" with { type: "json" };
import messages from "./vectors/messages.json" with { type: "json" };
import writes from "./vectors/write.json" with { type: "json" };

/** Bytes as the vectors write them: hex, a hex repeated, or several in a row. */
export type VectorBytes =
  | string
  | { repeat: string; times: number }
  | readonly VectorBytes[];

/** What every case has: its name and where its fact comes from. */
export interface VectorCase {
  name: string;
  source: string;
}

/** A case of `mask.json`; `inputOf` gives its input. */
export interface MaskCase extends VectorCase {
  key: string;
  phase: number;
  nextPhase: number;
  input?: string;
  output?: string;
  inputLength?: number;
  outputSha256?: string;
}

/** Options of a reading case, as they stand in the file. */
export interface VectorReadOptions {
  role?: "client" | "server";
  allowRsv1?: boolean;
  maxPayloadLength?: number;
  checks?: "strict" | "none";
}

/** A case of `frames.json`: chunks in, frames out, then an error or none. */
export interface FrameCase extends VectorCase {
  options: VectorReadOptions;
  chunks: VectorBytes[];
  frames: {
    fin: boolean;
    rsv1: boolean;
    rsv2: boolean;
    rsv3: boolean;
    opcode: number;
    payload: VectorBytes;
    maskKey: string | null;
  }[];
  error: { code: string; closeCode: number } | null;
  pendingBytes?: number;
}

/** A case of `write.json`: a frame in, bytes or the name of an exception out. */
export interface WriteCase extends VectorCase {
  frame: {
    opcode: number;
    fin?: boolean;
    rsv1?: boolean;
    rsv2?: boolean;
    rsv3?: boolean;
    payload?:
      | string
      | { repeat: string; times: number }
      | { text: string }
      | { close: { code?: number; reason?: string } };
  };
  options: {
    role?: "client" | "server";
    maskKey?: string | null;
    disableClientMask?: boolean;
    checks?: "strict" | "none";
  };
  output: string | { head: string; length: number; sha256: string } | null;
  error: "TypeError" | "RangeError" | null;
}

/** An event of `messages.json`: text as a string, other data as hex. */
export type VectorEvent =
  | { type: "text" | "binary" | "ping" | "pong"; data: string }
  | { type: "close"; code: number; reason: string; clean: boolean };

/** A case of `messages.json`: chunks in, events and answers out. */
export interface MessageCase extends VectorCase {
  options: {
    role: "client" | "server";
    maxMessageLength?: number;
    maxPayloadLength?: number;
    maxFragments?: number;
    deflate?: boolean;
  };
  chunks: VectorBytes[];
  events: VectorEvent[];
  output?: string;
  outputFrames?: { opcode: number; payload: string }[];
}

export const maskCases = masks.cases as MaskCase[];
export const frameCases = frames.cases as unknown as FrameCase[];
export const writeCases = writes.cases as unknown as WriteCase[];
export const messageCases = messages.cases as unknown as MessageCase[];

/** The bytes that a vector means. */
export function bytesOf(value: VectorBytes): Uint8Array<ArrayBuffer> {
  if (typeof value === "string") {
    if (!/^([0-9a-f]{2})*$/i.test(value)) {
      throw new TypeError(`Not hex: "${value}"`);
    }
    const bytes = new Uint8Array(value.length / 2);
    for (let i = 0; i < bytes.length; i++) {
      bytes[i] = parseInt(value.slice(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }
  if ("repeat" in value) {
    const unit = bytesOf(value.repeat);
    const bytes = new Uint8Array(unit.length * value.times);
    for (let at = 0; at < bytes.length; at += unit.length) bytes.set(unit, at);
    return bytes;
  }
  return concat(value.map(bytesOf));
}

/** The input of a masking case: long ones are given by a formula. */
export function inputOf(vector: MaskCase): Uint8Array<ArrayBuffer> {
  if (vector.input !== undefined) return bytesOf(vector.input);
  return Uint8Array.from(
    { length: vector.inputLength ?? 0 },
    (_, i) => i * 7 + 3,
  );
}

const HEX = Array.from(
  { length: 256 },
  (_, byte) => byte.toString(16).padStart(2, "0"),
);

/** Lower-case hex without spaces. */
export function hex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]];
  return text;
}

/** SHA-256 as hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** One new array that holds all parts in order. */
export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/**
 * A generator of integers in `0 .. below - 1`, the same sequence for the same
 * seed in every runtime (mulberry32, a public-domain 32-bit generator).
 */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    word = (word ^ (word >>> 14)) >>> 0;
    return Math.floor(word / 2 ** 32 * below);
  };
}

/** `length` bytes from a generator made by `seeded`. */
export function randomBytes(
  length: number,
  random: (below: number) => number,
): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, () => random(256));
}

/** Where frames start in `bytes`, as far as their declared lengths lead. */
function frameStarts(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const starts = [];
  for (let at = 0; at < bytes.length;) {
    starts.push(at);
    if (at + 10 > bytes.length) break;
    const masked = bytes[at + 1] >= 0x80;
    const short = bytes[at + 1] & 0x7f;
    at += masked ? 6 : 2;
    const field = at - (masked ? 4 : 0);
    if (short < 126) at += short;
    else if (short === 126) at += 2 + view.getUint16(field);
    else at += 8 + Number(view.getBigUint64(field));
  }
  return starts;
}

/** One way of cutting an input. */
export interface Cut {
  /** Such as "whole" or "in two at 7". */
  name: string;
  /** Copies: a reader that works in place spoils no other cut. */
  chunks: Uint8Array<ArrayBuffer>[];
}

/** Above this many bytes an input is not cut at every byte. */
const EVERY_BYTE = 1024;
/** Bytes before and after the start of a header that get a cut each. */
const NEAR = 16;
/** Seeded places that get a cut besides. */
const PLACES = 64;

/**
 * Every way in which a test feeds `bytes`: whole, byte by byte, and in two at
 * every byte (above 1 KiB: at every byte near a header, and at seeded places).
 */
export function* everyCut(bytes: Uint8Array, seed = 1): Generator<Cut> {
  yield { name: "whole", chunks: [copy(bytes)] };
  yield {
    name: "byte by byte",
    chunks: Array.from(bytes, (byte) => Uint8Array.of(byte)),
  };
  const places = new Set<number>();
  if (bytes.length <= EVERY_BYTE) {
    for (let at = 1; at < bytes.length; at++) places.add(at);
  } else {
    for (const start of [...frameStarts(bytes), bytes.length]) {
      for (let at = start - NEAR; at <= start + NEAR; at++) places.add(at);
    }
    const random = seeded(seed);
    for (let i = 0; i < PLACES; i++) places.add(1 + random(bytes.length - 1));
  }
  for (const at of places) {
    if (at <= 0 || at >= bytes.length) continue;
    yield {
      name: `in two at ${at}`,
      chunks: [copy(bytes.subarray(0, at)), copy(bytes.subarray(at))],
    };
  }
}

/**
 * `bytes` with `trailing` after them: in the same chunk, and as a chunk of
 * their own.
 */
export function* withTrailing(
  bytes: Uint8Array,
  trailing: Uint8Array,
): Generator<Cut> {
  const name = `with ${trailing.length} trailing bytes`;
  yield { name, chunks: [concat([bytes, trailing])] };
  yield {
    name: `${name} in their own chunk`,
    chunks: [copy(bytes), copy(trailing)],
  };
}

function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
