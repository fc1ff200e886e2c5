/** Drives a FrameReader in each of its ways and writes down what came out. */

import { assertInstanceOf, assertStrictEquals, fail } from "@std/assert";
import { FrameError, FrameReader } from "@wsframe/wsframe";
import type { Frame, ReadOptions } from "@wsframe/wsframe";
import { concat, hex } from "./vectors.ts";

/** A frame as the tests compare it. */
export interface Read {
  first: number;
  payload: string;
  maskKey: string | null;
  byteOffset: number;
}

/** What a stream gave: frames, then an error or a number of bytes that wait. */
export interface Outcome {
  frames: Read[];
  error: string | null;
  pendingBytes: number;
}

export type Way =
  | "iterator"
  | "iterator in place"
  | "cursor"
  | "cursor in place"
  | "partial iterator"
  | "partial iterator in place"
  | "partial cursor"
  | "both in turn";

/** The ways to read; each must give the same for every input. */
export const WAYS: Record<Way, {
  read: (reader: FrameReader, into: Piece[]) => void;
  options: ReadOptions;
}> = {
  iterator: { read: iterate, options: {} },
  "iterator in place": { read: iterate, options: { inPlace: true } },
  cursor: { read: step, options: {} },
  "cursor in place": { read: step, options: { inPlace: true } },
  "partial iterator": { read: iterate, options: { partial: true } },
  "partial iterator in place": {
    read: iterate,
    options: { partial: true, inPlace: true },
  },
  "partial cursor": { read: step, options: { partial: true } },
  "both in turn": { read: alternate, options: {} },
};

/** A frame or a piece of one. */
interface Piece {
  first: number;
  maskKey: Uint8Array | null;
  byteOffset: number;
  last: boolean;
  bytes: Uint8Array;
}

function firstByteOf(
  { fin, rsv1, rsv2, rsv3, opcode }: Pick<
    Frame,
    "fin" | "rsv1" | "rsv2" | "rsv3" | "opcode"
  >,
): number {
  return +fin << 7 | +rsv1 << 6 | +rsv2 << 5 | +rsv3 << 4 | opcode;
}

function pieceOf(frame: Frame, payload: Uint8Array): Piece {
  return {
    first: firstByteOf(frame),
    maskKey: frame.maskKey,
    byteOffset: frame.byteOffset,
    last: frame.last ?? true,
    bytes: payload,
  };
}

function iterate(reader: FrameReader, into: Piece[]): void {
  for (const frame of reader) {
    if (frame.payload.constructor !== Uint8Array) fail("No plain Uint8Array");
    // The payload itself is kept, so that a later change of it would show.
    into.push(pieceOf(frame, frame.payload));
  }
}

function step(reader: FrameReader, into: Piece[]): void {
  while (reader.advance()) {
    const { memory, payloadStart, payloadEnd } = reader;
    const bytes = memory.slice(payloadStart, payloadEnd);
    if (
      reader.payload.length !== bytes.length ||
      reader.payload.some((byte, i) => byte !== bytes[i]) ||
      reader.firstByte !== firstByteOf(reader)
    ) fail(`Fields disagree at byte ${reader.byteOffset}`);
    into.push(pieceOf(reader, bytes));
  }
}

function alternate(reader: FrameReader, into: Piece[]): void {
  for (;;) {
    if (!reader.advance()) return;
    into.push(pieceOf(reader, reader.payload.slice()));
    const { value, done } = reader[Symbol.iterator]().next();
    if (done) return;
    into.push(pieceOf(value, value.payload));
  }
}

/** Puts pieces together again. */
function join(pieces: Piece[]): Read[] {
  const frames: Read[] = [];
  let open: Piece[] = [];
  for (const piece of pieces) {
    open.push(piece);
    if (!piece.last) continue;
    const { first, maskKey, byteOffset } = piece;
    for (const part of open) {
      if (
        part.first !== first || part.byteOffset !== byteOffset ||
        part.maskKey?.some((byte, i) => byte !== maskKey?.[i])
      ) fail(`Pieces disagree at byte ${byteOffset}`);
    }
    frames.push({
      first,
      payload: hex(concat(open.map(({ bytes }) => bytes))),
      maskKey: maskKey && hex(maskKey),
      byteOffset,
    });
    open = [];
  }
  return frames;
}

/** Pushes chunks one by one, reading after each. */
export function readAll(
  way: Way,
  options: ReadOptions,
  chunks: Uint8Array[],
): Outcome {
  const { read, options: more } = WAYS[way];
  const reader = new FrameReader({ ...options, ...more });
  const pieces: Piece[] = [];
  let error: unknown = null;
  for (const chunk of chunks) {
    if (reader.push(chunk) !== reader) fail("push returns the reader");
    try {
      read(reader, pieces);
    } catch (thrown) {
      // A reader that failed stays failed, with the same error.
      if (error !== null) assertStrictEquals(thrown, error);
      error = thrown;
    }
  }
  const frames = join(pieces);
  if (error === null) {
    return { frames, error: null, pendingBytes: reader.bufferedBytes };
  }
  assertInstanceOf(error, FrameError);
  const { code, closeCode, byteOffset } = error;
  return {
    frames,
    error: `${code} ${closeCode} at ${byteOffset}`,
    pendingBytes: 0,
  };
}
