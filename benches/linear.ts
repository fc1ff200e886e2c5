/**
 * Time grows linearly with bytes, memory does not grow at all: traffic made to
 * hurt, and what stays in memory.
 *
 * @module
 */

import type { Context, Engine, Fact, Library, Table } from "./context.ts";
import { encodeFrame, testBytes } from "./loops.ts";
import type { Contender, Race } from "./measure.ts";

const KiB = 2 ** 10, MiB = 2 ** 20;

/** Times the input grows from the first contender to the last. */
const GROWTH = [1, 8];
/** What one byte of the largest input may cost more than one of the smallest. */
const TOLERANCE = 2;

interface Flood {
  row: string;
  /** `times` as much of it, in chunks. */
  chunks: (times: number) => Uint8Array[];
}

function cut(stream: Uint8Array, length: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < stream.length; at += length) {
    chunks.push(stream.subarray(at, at + length));
  }
  return chunks;
}

function repeat(bytes: Uint8Array, times: number): Uint8Array {
  return Buffer.concat(Array<Uint8Array>(times).fill(bytes));
}

const FLOODS: Flood[] = [
  {
    row: "100-byte frames in 1-byte chunks",
    chunks: (times) => cut(repeat(encodeFrame(testBytes(100)), 40 * times), 1),
  },
  {
    row: "one frame in 1-byte chunks",
    chunks: (times) => cut(encodeFrame(testBytes(16 * KiB * times)), 1),
  },
  {
    row: "one frame in 64 KiB chunks",
    chunks: (times) => cut(encodeFrame(testBytes(4 * MiB * times)), 64 * KiB),
  },
  {
    row: "empty frames",
    chunks: (times) =>
      cut(repeat(encodeFrame(testBytes(0)), 2000 * times), 64 * KiB),
  },
  {
    row: "empty frames in 1-byte chunks",
    chunks: (times) => cut(repeat(encodeFrame(testBytes(0)), 500 * times), 1),
  },
  {
    row: "1-byte and 256 KiB frames by turns",
    chunks: (times) =>
      cut(
        repeat(
          Buffer.concat([
            encodeFrame(testBytes(1)),
            encodeFrame(testBytes(256 * KiB)),
          ]),
          8 * times,
        ),
        64 * KiB,
      ),
  },
];

function readAll(lib: Library, chunks: Uint8Array[]): () => number {
  const reader = new lib.FrameReader({
    role: "server",
    maxPayloadLength: 2 ** 30,
  });
  return () => {
    let bytes = 0;
    for (let i = 0; i < chunks.length; i++) {
      reader.push(chunks[i]);
      while (reader.advance()) bytes += reader.payloadLength + 1;
    }
    return bytes;
  };
}

function* floodRows(
  { native, portable, quick }: Context,
): Generator<Race> {
  const engines = quick && native ? [native] : [native, portable];
  for (const { row, chunks } of FLOODS) {
    for (const engine of engines) {
      if (!engine) continue;
      const name = (times: number) => `${times}x as long`;
      const contender = (times: number): Contender => {
        const input = chunks(times);
        const items = input.reduce((sum, { length }) => sum + length, 0);
        const run = readAll(engine.lib, input);
        let first = 0;
        return {
          name: name(times),
          items,
          run,
          // The same again from a reader that is used a second time.
          verify: (bytes) => (first = bytes as number) > 0 && run() === first,
        };
      };
      yield {
        row: `${row}, ${engine.name}`,
        contenders: () => GROWTH.map(contender),
        targets: [{
          of: name(GROWTH[GROWTH.length - 1]),
          over: name(GROWTH[0]),
          atLeast: 1 / TOLERANCE,
        }],
      };
    }
  }
}

/** Bytes of the heap and of buffers outside it, after a collection. */
function used(): number {
  const { Bun, gc } = globalThis as unknown as {
    Bun?: { gc(synchronous: boolean): void };
    gc?: () => void;
  };
  for (let i = 0; i < 3; i++) Bun ? Bun.gc(true) : gc?.();
  const { heapUsed, external } = process.memoryUsage();
  // In Bun the heap's number has the buffers in it.
  return Bun ? heapUsed : heapUsed + external;
}

function smallFrames({ lib }: Engine): number {
  const reader = new lib.FrameReader({ role: "server" });
  const frame = encodeFrame(testBytes(16));
  const chunk = Buffer.concat(Array<Buffer>(2000).fill(frame));
  const read = () => {
    let frames = 0;
    reader.push(chunk);
    while (reader.advance()) frames++;
    return frames;
  };
  read();
  const before = used();
  let frames = 0;
  while (frames < 2e6) frames += read();
  const grown = used() - before;
  // The reader is still in use, so what it holds is counted.
  return read() === 2000 ? grown : NaN;
}

function declaredHeader({ lib }: Engine): number {
  // FIN, Binary, masked, 64-bit length 2^31, key.
  const header = new Uint8Array(
    [0x82, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0, 1, 2, 3, 4],
  );
  const before = used();
  const reader = new lib.FrameReader({
    role: "server",
    maxPayloadLength: 2 ** 32,
  });
  reader.push(header);
  if (reader.advance()) return NaN;
  const grown = used() - before;
  return reader.bufferedBytes === header.length ? grown : NaN;
}

function* memoryRows({ engines }: Context): Generator<Fact> {
  for (const engine of engines) {
    const fact = (
      row: string,
      limit: number,
      bytes: (e: Engine) => number,
    ) => ({
      row,
      name: engine.name,
      unit: "KiB",
      limit: limit / KiB,
      measure: () => Math.max(0, bytes(engine) / KiB),
    });
    yield fact("two million 16-byte frames, heap grows by", 2e6, smallFrames);
    yield fact("a header that declares 2 GiB takes", 1e6, declaredHeader);
  }
}

/** The tables of growth. */
export const linearTables: Table[] = [
  {
    name: "linear",
    title: "Hostile traffic through the cursor, per byte",
    style: "peers",
    base: ["1x as long"],
    rows: floodRows,
  },
  {
    name: "memory",
    title: "Memory",
    style: "peers",
    rows: memoryRows,
  },
];
