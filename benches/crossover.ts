/**
 * Measures from which length on a library is quicker than TypeScript, for each
 * function of each backend that this runtime has: `deno task bench:crossover`, or this
 * file under Bun or Node (20 with tsx). The constants `MINIMUM` in src/backend/ are
 * what it gave.
 *
 * A length is the crossover if the library is quicker there and at every greater
 * length measured: by the median of ratios of rounds that alternate in one process.
 *
 * @module
 */

import type { Backend } from "../src/backend/backend.ts";
import { openBunFfi } from "../src/backend/bun_ffi.ts";
import { openDenoFfi } from "../src/backend/deno_ffi.ts";
import { openNodeApi } from "../src/backend/node_api.ts";
import { portable } from "../src/backend/portable.ts";
import { current } from "../src/backend/select.ts";
import { openWasm } from "../src/backend/wasm.ts";
import { mask } from "../src/mask.ts";

const LENGTHS: readonly number[] = [
  ...[8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192],
  ...[256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384, 65536, 262144],
];
const ROUNDS = 21;
/** What one round should take, in milliseconds. */
const ROUND = 0.5;
const KEY = 0x3d21fa37;
const KEY_BYTES = new Uint8Array(new Int32Array([KEY]).buffer);

type Run = (times: number) => void;

/** What is timed with a backend: each function over ranges of one length. */
const FUNCTIONS: Record<string, (backend: Backend, length: number) => Run> = {
  mask(backend, length) {
    // As it is called, because part of the work in TypeScript is done there.
    const bytes = new Uint8Array(length + 64).subarray(16, 16 + length);
    return (times) => {
      current.engine = backend;
      current.minBytes = backend.minBytes;
      for (let i = 0; i < times; i++) mask(bytes, KEY_BYTES);
    };
  },
  maskInto(backend, length) {
    const source = new Uint8Array(length + 64);
    const target = new Uint8Array(length + 64);
    return (times) => {
      for (let i = 0; i < times; i++) {
        backend.maskInto(target, 16, source, 16, length, KEY);
      }
    };
  },
  "scan of one frame"(backend, length) {
    const headerLength = length < 132 ? 6 : length < 65550 ? 8 : 14;
    const payload = length - headerLength;
    return scanning(backend, frame(payload), length);
  },
  "scan of frames of 16 bytes"(backend, length) {
    const chunk = new Uint8Array(Math.ceil(length / 22) * 22);
    for (let at = 0; at < chunk.length; at += 22) chunk.set(frame(16), at);
    return scanning(backend, chunk, length);
  },
};

/** A masked binary frame. */
function frame(payload: number): Uint8Array {
  const header = payload < 126
    ? [0x82, 0x80 | payload]
    : payload < 65536
    ? [0x82, 0xfe, payload >> 8, payload & 255]
    : [
      0x82,
      0xff,
      0,
      0,
      0,
      0,
      ...[24, 16, 8, 0].map((n) => payload >> n & 255),
    ];
  const bytes = new Uint8Array(header.length + 4 + payload);
  bytes.set([...header, 1, 2, 3, 4]);
  return bytes;
}

function scanning(backend: Backend, chunk: Uint8Array, length: number): Run {
  const target = new Uint8Array(chunk.length);
  const table = new Uint32Array(4 + 4 * 16384);
  const max = 2 ** 24;
  return (times) => {
    for (let i = 0; i < times; i++) {
      backend.scan(chunk, 0, length, target, 0, table, 1, max);
    }
  };
}

function time(run: Run, times: number): number {
  const start = performance.now();
  run(times);
  return performance.now() - start;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

/** Nanoseconds of both, and how many times quicker the library is. */
function race(library: Run, typescript: Run): [number, number, number] {
  let times = 16;
  while (time(typescript, times) < ROUND) times *= 2;
  const rounds = Array.from({ length: ROUNDS }, () => {
    const a = time(library, times);
    const b = time(typescript, times);
    return [a, b, b / a];
  });
  const [a, b, ratio] = [0, 1, 2].map((i) =>
    median(rounds.map((round) => round[i]!))
  );
  return [a! / times * 1e6, b! / times * 1e6, ratio!];
}

function main(): void {
  const always = { mask: 0, maskInto: 0, scan: 0 };
  const typescript = portable.open() as Backend;
  for (const open of [openBunFfi, openDenoFfi, openNodeApi, openWasm]) {
    const library = open(always);
    if (typeof library === "string") continue;
    for (const [name, prepare] of Object.entries(FUNCTIONS)) {
      let crossover: number | null = null;
      const shown: string[] = [];
      for (const length of LENGTHS) {
        const [a, b, ratio] = race(
          prepare(library, length),
          prepare(typescript, length),
        );
        if (ratio < 1) crossover = null;
        else crossover ??= length;
        shown.push(`${length}: ${a.toFixed(0)}/${b.toFixed(0)}`);
      }
      console.log(`${library.name} (${library.isa}) ${name}: ${crossover}`);
      console.log(`  ns, library/TypeScript: ${shown.join(", ")}`);
    }
  }
}

main();
