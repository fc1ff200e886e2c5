/**
 * `scan` of every engine against reading frame by frame the obvious way: rows, bytes
 * consumed, fault, unmasked bytes, and all bytes that are none of its business.
 */

import process from "node:process";
import { describe, it } from "node:test";
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type Backend,
  SCAN_CONSUMED,
  SCAN_FAULT,
  SCAN_ROW_WORDS,
  SCAN_ROWS,
} from "../src/backend/backend.ts";
import { HEADER_FAULTS } from "../src/check.ts";
import { engines } from "./engines.ts";
import { bytesOf, streams } from "./random_frames.ts";
import { readHeader } from "./reference.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

/** Bytes before, between and behind what a scan may touch; an odd number. */
const GUARD = 37;

const LIMITS = [
  ...[0, 1, 125, 126, 65_535, 65_536],
  ...[2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32],
];

/** Kinds of memory that a view can be of. */
const MEMORY = [
  (length: number) => new ArrayBuffer(length),
  (length: number) => new SharedArrayBuffer(length),
  (length: number) => new ArrayBuffer(length, { maxByteLength: 2 * length }),
];

/** One call of `scan`, as random values make it. */
const calls = (longest: number, frames: number) =>
  fc.record({
    stream: streams(longest, frames),
    flags: fc.noBias(fc.nat({ max: 15 })),
    limit: fc.oneof(
      {
        weight: 8,
        arbitrary: fc.constantFrom(2 ** 24, Number.MAX_SAFE_INTEGER),
      },
      { weight: 1, arbitrary: fc.constantFrom(...LIMITS) },
      { weight: 1, arbitrary: fc.maxSafeNat() },
    ),
    start: fc.nat({ max: 40 }),
    memory: fc.constantFrom(...MEMORY),
    align: fc.noBias(fc.nat({ max: 31 })),
    into: fc.constantFrom("null", "in place", "other", "same buffer"),
    targetStart: fc.nat({ max: 40 }),
    targetAlign: fc.noBias(fc.nat({ max: 31 })),
    words: fc.oneof(
      fc.noBias(fc.integer({ min: 4, max: 60 })),
      fc.constant(SCAN_ROWS + (frames + 20) * SCAN_ROW_WORDS),
    ),
  });

type Call = ReturnType<typeof calls> extends fc.Arbitrary<infer T> ? T : never;

/** Rows, head and unmasked payloads, frame by frame. */
function expectedOf(bytes: Uint8Array, { flags, limit, words }: Call) {
  const most = Math.floor((words - SCAN_ROWS) / SCAN_ROW_WORDS);
  const rows: number[][] = [];
  const payloads: { at: number; bytes: Uint8Array }[] = [];
  let at = 0;
  let fault = 0;
  while (rows.length < most) {
    const header = readHeader(bytes, at, bytes.length, flags, limit);
    if (header === null) break;
    if (typeof header === "string") {
      fault = HEADER_FAULTS.indexOf(header);
      break;
    }
    const { first, headerLength, payloadLength, maskKey } = header;
    const payloadStart = at + headerLength;
    if (payloadLength > bytes.length - payloadStart) break;
    const key = maskKey ?? new Uint8Array(4);
    rows.push([
      first + (maskKey ? 0x100 : 0) + 0x10000 * headerLength,
      payloadStart,
      payloadLength,
      new DataView(key.buffer).getUint32(0, true),
    ]);
    at = payloadStart + payloadLength;
    if (maskKey === null) continue;
    const payload = bytes.slice(payloadStart, at);
    for (let i = 0; i < payload.length; i++) payload[i] ^= maskKey[i % 4];
    payloads.push({ at: payloadStart, bytes: payload });
  }
  return { rows, payloads, consumed: at, fault };
}

/** Where two arrays of one length differ first. */
function assertSame(actual: Uint8Array, expected: Uint8Array, what: string) {
  const at = actual.findIndex((byte, i) => byte !== expected[i]);
  if (at >= 0) assertEquals(actual[at], expected[at], `${what}: byte ${at}`);
}

function check(
  backend: Backend,
  call: Call,
  bytes: Uint8Array,
  expected: ReturnType<typeof expectedOf>,
): void {
  const { start, targetStart, into } = call;
  // A view at `align` from a multiple of 32 in memory of its own.
  const aligned = (length: number, align: number): Uint8Array =>
    new Uint8Array(call.memory(length + 64), align, length);
  const { length } = bytes;
  const memory = aligned(
    start + length + GUARD + 32 + targetStart + length + GUARD,
    call.align,
  );
  for (let i = 0; i < memory.length; i++) memory[i] = 0x80 + i * 7;
  const source = memory.subarray(0, start + length + GUARD);
  source.set(bytes, start);
  const target = into === "null"
    ? null
    : into === "in place"
    ? source
    : into === "same buffer"
    ? memory.subarray(source.length + call.targetAlign)
    : aligned(targetStart + length + GUARD, call.targetAlign).fill(0xa5);
  const targetAt = into === "in place" ? start : targetStart;
  const sourceAfter = source.slice();
  const targetAfter = target === source ? sourceAfter : target?.slice();
  const table = new Uint32Array(call.words).fill(0xdeadbeef);

  const count = backend.scan(
    source,
    start,
    length,
    target,
    targetAt,
    table,
    call.flags,
    call.limit,
  );

  const { rows, payloads, consumed, fault } = expected;
  assertEquals(
    { count, consumed: table[SCAN_CONSUMED], fault: table[SCAN_FAULT] },
    { count: rows.length, consumed, fault },
  );
  const end = SCAN_ROWS + count * SCAN_ROW_WORDS;
  assertEquals(Array.from(table.subarray(SCAN_ROWS, end)), rows.flat());
  assertEquals(
    table.subarray(end).find((word) => word !== 0xdeadbeef),
    undefined,
  );

  if (target !== null && target !== source) {
    // Between the payloads there may be anything.
    targetAfter!.set(target.subarray(targetAt, targetAt + consumed), targetAt);
  }
  for (const { at, bytes } of payloads) targetAfter?.set(bytes, targetAt + at);
  assertSame(source, sourceAfter, "source");
  if (target !== null) assertSame(target, targetAfter!, "target");
}

describe("scan", () => {
  for (const { title, backend } of engines) {
    it(`of short frames on ${title} (seed ${seed})`, () => {
      fc.assert(
        fc.property(calls(700, 12), (call) => {
          const bytes = bytesOf(call.stream, call.flags);
          check(backend, call, bytes, expectedOf(bytes, call));
        }),
        { seed, numRuns: 1500 },
      );
    });

    it(`of long frames on ${title} (seed ${seed})`, () => {
      fc.assert(
        fc.property(calls(70_000, 5), (call) => {
          const bytes = bytesOf(call.stream, call.flags);
          check(backend, call, bytes, expectedOf(bytes, call));
        }),
        { seed, numRuns: 60 },
      );
    });
  }
});
