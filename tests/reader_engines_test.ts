/**
 * FrameReader on every engine against reading frame by frame the obvious way, from random
 * and broken streams: frames, errors, where they stand, and the bytes that wait.
 */

import process from "node:process";
import { describe, it } from "node:test";
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { FrameReader, type ReadOptions } from "@wsframe/wsframe";
import {
  ALLOW_RSV1,
  EXPECT_MASK,
  EXPECT_NO_MASK,
  NO_CHECKS,
} from "../src/check.ts";
import { engines, withEngine } from "./engines.ts";
import { bytesOf, streams } from "./random_frames.ts";
import { type Outcome, readAll, type Way, WAYS } from "./read.ts";
import { readHeader } from "./reference.ts";
import {
  bytesOf as vectorBytes,
  everyCut,
  frameCases,
  hex,
} from "./vectors.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

const ways = Object.keys(WAYS) as Way[];
const WHOLE: Way[] = ["iterator in place", "cursor", "cursor in place"];

interface Options extends ReadOptions {
  role: "client" | "server" | undefined;
  maxPayloadLength: number;
}

const inputs = (longest: number, frames: number) =>
  fc.record({
    stream: streams(longest, frames),
    options: fc.record<Options>({
      role: fc.constantFrom("client", "server", undefined),
      allowRsv1: fc.boolean(),
      checks: fc.constantFrom("strict", "strict", "none"),
      maxPayloadLength: fc.oneof(
        {
          weight: 8,
          arbitrary: fc.constantFrom(2 ** 24, Number.MAX_SAFE_INTEGER),
        },
        { weight: 1, arbitrary: fc.nat({ max: longest }) },
      ),
    }),
    /** Lengths of the chunks, in turn. */
    sizes: fc.array(fc.integer({ min: 1, max: 2 * longest }), {
      minLength: 1,
      maxLength: 6,
    }),
  });

function flagsOf({ role, allowRsv1, checks }: Options): number {
  return (role === "server" ? EXPECT_MASK : 0) |
    (role === "client" ? EXPECT_NO_MASK : 0) |
    (allowRsv1 ? ALLOW_RSV1 : 0) | (checks === "none" ? NO_CHECKS : 0);
}

/** What reading `bytes` is to give, and where each frame ends. */
function expectedOf(bytes: Uint8Array, options: Options) {
  const outcome: Outcome = { frames: [], error: null, pendingBytes: 0 };
  const ends = [0];
  for (let at = 0;;) {
    const header = readHeader(
      bytes,
      at,
      bytes.length,
      flagsOf(options),
      options.maxPayloadLength,
    );
    if (typeof header === "string") {
      const close = /UNSUPPORTED/.test(header) ? 1009 : 1002;
      outcome.error = `${header} ${close} at ${at}`;
      return { outcome, ends };
    }
    const start = at + (header?.headerLength ?? 0);
    const end = start + (header?.payloadLength ?? 0);
    if (header === null || end > bytes.length) {
      outcome.pendingBytes = bytes.length - at;
      return { outcome, ends };
    }
    const { first, maskKey } = header;
    const payload = bytes.slice(start, end);
    if (maskKey) {
      payload.forEach((byte, i) => payload[i] = byte ^ maskKey[i % 4]);
    }
    outcome.frames.push({
      first,
      payload: hex(payload),
      maskKey: maskKey && hex(maskKey),
      byteOffset: at,
    });
    ends.push(at = end);
  }
}

function chunksOf(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length];
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}

/** `bufferedBytes` after each chunk, up to a fault, by the number of bytes that arrived. */
function waiting(
  options: ReadOptions,
  chunks: Uint8Array[],
): { arrived: number; buffered: number }[] {
  const reader = new FrameReader(options);
  const counts = [];
  let arrived = 0;
  try {
    for (const chunk of chunks) {
      reader.push(chunk);
      while (reader.advance());
      arrived += chunk.length;
      counts.push({ arrived, buffered: reader.bufferedBytes });
    }
  } catch {
    // readAll looks at errors.
  }
  return counts;
}

type Input = ReturnType<typeof inputs> extends fc.Arbitrary<infer T> ? T
  : never;

function check({ stream, options, sizes }: Input): void {
  const bytes = bytesOf(stream, flagsOf(options));
  const { outcome, ends } = expectedOf(bytes, options);
  for (const way of ways) {
    const chunks = chunksOf(bytes, sizes);
    assertEquals(readAll(way, options, chunks), outcome, way);
  }
  const chunks = chunksOf(bytes, sizes);
  const counts = waiting(options, chunks);
  for (const { arrived, buffered } of counts) {
    assertEquals(buffered, arrived - ends.findLast((end) => end <= arrived)!);
  }
  // The same where most is not read yet.
  const reader = new FrameReader(options);
  for (const [i, chunk] of chunks.entries()) {
    reader.push(chunk);
    assertEquals(reader.bufferedBytes, counts[i]?.buffered ?? 0);
    if (i % 3 !== 0) continue;
    try {
      reader.advance();
    } catch {
      // As above.
    }
  }
}

describe("FrameReader", () => {
  for (const engine of engines) {
    it(`reads the vectors on ${engine.title}`, () => {
      withEngine(engine, () => {
        for (const { name, options, chunks: input } of frameCases) {
          const bytes = vectorBytes(input);
          const { outcome } = expectedOf(bytes, {
            role: undefined,
            maxPayloadLength: 2 ** 24,
            ...options,
          });
          let count = 0;
          for (const { name: cut, chunks } of everyCut(bytes)) {
            // Of 64 KiB some cuts do: reader_test.ts has all of them.
            if (bytes.length > 1024 && count++ % 16 !== 0) continue;
            for (const way of WHOLE) {
              const copies = chunks.map((chunk) => chunk.slice());
              const read = readAll(way, options, copies);
              assertEquals(read, outcome, `${name}, ${cut}, ${way}`);
            }
          }
        }
      });
    });
    it(`reads short frames on ${engine.title} (seed ${seed})`, () => {
      withEngine(
        engine,
        () =>
          fc.assert(fc.property(inputs(300, 12), check), {
            seed,
            numRuns: 400,
          }),
      );
    });

    it(`reads long frames on ${engine.title} (seed ${seed})`, () => {
      withEngine(
        engine,
        () =>
          fc.assert(fc.property(inputs(70_000, 5), check), {
            seed,
            numRuns: 20,
          }),
      );
    });
  }
});
