/**
 * How long masking takes: this library, `bufferutil`, the loop in `ws` and a
 * plain loop. They take turns, so that whatever slows the machine slows all.
 *
 * @module
 */

import { byteLoop, KEY, same, testBytes } from "../../benches/loops.ts";
import { loadPeers } from "../../benches/peers.ts";
import { mask } from "../../mod.ts";

const SIZES = [2, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536, 1048576];
/** Milliseconds that one sample takes, */
const SAMPLE_TIME = 1.5;
/** that precede the first of a size, */
const WARM_TIME = 6;
/** and that precede all: engines compile in the background. */
const START_TIME = 40;
/** A size is timed anew until nobody is faster than before by more than this part, */
const GAIN = 0.1;
/** so many times at most: on a busy machine the engine's compiler comes late. */
const TRIES = 5;

/** Masks `bytes` so many times. */
type Repeat = (bytes: Uint8Array, key: Uint8Array, times: number) => void;

interface Contender {
  name: string;
  /** What runs, or why it does not. */
  repeat: Repeat | string;
}

/** A size, and nanoseconds per contender; undefined where one is absent. */
export interface Row {
  size: number;
  times: (number | undefined)[];
}

export interface Table {
  names: string[];
  /** Why a contender is absent. */
  absent: string[];
  rows: Row[];
}

/** Each has a loop of its own, for the engine to compile for it alone. */
function contenders(): Contender[] {
  const { bufferutil, wsLoop } = loadPeers();
  return [
    {
      name: "wsframe",
      repeat: (bytes, key, times) => {
        for (let i = 0; i < times; i++) mask(bytes, key);
      },
    },
    {
      name: "bufferutil",
      repeat: typeof bufferutil === "string"
        ? bufferutil
        : (bytes, key, times) => {
          for (let i = 0; i < times; i++) bufferutil(bytes, key);
        },
    },
    {
      name: "ws loop",
      repeat: typeof wsLoop === "string" ? wsLoop : (bytes, key, times) => {
        for (let i = 0; i < times; i++) wsLoop(bytes, key);
      },
    },
    {
      name: "byte loop",
      repeat: (bytes, key, times) => {
        for (let i = 0; i < times; i++) byteLoop(bytes, key);
      },
    },
  ];
}

/** Throws unless masking once gives what the plain loop gives. */
function check(name: string, repeat: Repeat, size: number): void {
  const [bytes, expected] = [testBytes(size), testBytes(size)];
  repeat(bytes, KEY, 1);
  byteLoop(expected, KEY);
  if (!same(bytes, expected)) {
    throw new Error(`${name} masks ${size} bytes wrongly`);
  }
}

/** Milliseconds that `times` runs take. */
function time(repeat: Repeat, bytes: Uint8Array, times: number): number {
  const start = performance.now();
  repeat(bytes, KEY, times);
  return performance.now() - start;
}

/** Runs for so many milliseconds; returns how many runs fill a sample. */
function warm(repeat: Repeat, bytes: Uint8Array, duration: number): number {
  const end = performance.now() + duration;
  for (let times = 1;; times *= 2) {
    const taken = time(repeat, bytes, times);
    if (performance.now() < end) continue;
    return Math.max(1, Math.round(times * SAMPLE_TIME / taken));
  }
}

function median(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}

/** A contender at one size. */
interface Run {
  repeat: Repeat;
  bytes: Uint8Array;
}

/** Nanoseconds that each takes once: medians of rounds in which they take turns. */
function race(runs: Run[], rounds: number): number[] {
  const counts = runs.map(({ repeat, bytes }) =>
    warm(repeat, bytes, WARM_TIME)
  );
  const samples: number[][] = runs.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, { repeat, bytes }] of runs.entries()) {
      samples[i].push(time(repeat, bytes, counts[i]) * 1e6 / counts[i]);
    }
  }
  return samples.map(median);
}

/** The same from compiled code. */
function raceCompiled(runs: Run[], rounds: number): number[] {
  let best = race(runs, rounds);
  for (let i = 1; i < TRIES; i++) {
    const again = race(runs, rounds);
    const gained = again.some((time, i) => time < best[i] * (1 - GAIN));
    best = best.map((time, i) => Math.min(time, again[i]));
    if (!gained) break;
  }
  return best;
}

/** Times every size, in `rounds` rounds. */
export function measure(rounds: number): Table {
  const all = contenders();
  const present = all.flatMap(({ name, repeat }) =>
    typeof repeat === "string" ? [] : [{ name, repeat }]
  );
  for (const { repeat } of present) warm(repeat, testBytes(64), START_TIME);
  const rows = SIZES.map((size): Row => {
    const raced = raceCompiled(
      present.map(({ name, repeat }) => {
        check(name, repeat, size);
        return { repeat, bytes: testBytes(size) };
      }),
      rounds,
    );
    const times = all.map(({ name }) =>
      raced[present.findIndex((contender) => contender.name === name)]
    );
    return { size, times };
  });
  return {
    names: all.map(({ name }) => name),
    absent: all.flatMap(({ name, repeat }) =>
      typeof repeat === "string" ? [`${name}: ${repeat}`] : []
    ),
    rows,
  };
}
