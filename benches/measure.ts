/**
 * The harness: races between contenders that do the same work. Every contender's
 * result is checked before it is timed; contenders then take turns, one
 * sample of a mitata measurement each, in an order that changes from round to
 * round, so that whatever slows the machine slows all of them.
 *
 * @module
 */

import { measure } from "mitata";
import { fresh } from "./fresh.ts";

/** One way of doing the work of a race. */
export interface Contender {
  name: string;
  /** What is timed: `items` items of work (default: the race's). */
  run?: () => unknown;
  /** Measures itself instead, in nanoseconds per run (a process of its own). */
  sample?: () => Promise<number>;
  /** Called before the first `run`. */
  prepare?: () => void;
  /** Whether the first `run`, whose result it gets, did the right thing. */
  verify?: (result: unknown) => boolean;
  /** Why it cannot run here. */
  absent?: string;
  items?: number;
}

/** What the issues ask for: `of` at least `atLeast` times as fast as the best of `over`. */
export interface Target {
  of: string;
  over: string | string[];
  atLeast: number;
}

/** One row of a table. */
export interface Race {
  row: string;
  /** Payload bytes per item, where a throughput makes sense. */
  bytes?: number;
  /** Items per run (frames, say); times are given per item. */
  items?: number;
  /** Made when it is their turn, and dropped after it. */
  contenders: () => Contender[];
  targets?: Target[];
  /** Medians in nanoseconds that are not to be exceeded, with their source. */
  limits?: { of: string; ns: number; source: string }[];
  /** Rounds, where contenders measure themselves and take long. */
  rounds?: number;
  /** Count bytes and objects allocated too. */
  allocations?: boolean;
}

/** What a race gave for one contender. Times are nanoseconds per item. */
export interface Measured {
  name: string;
  absent?: string;
  median?: number;
  low?: number;
  high?: number;
  samples?: number[];
  /** Bytes and objects allocated per item; absent where the engine does not tell. */
  bytes?: number;
  objects?: number;
}

/** How much time a race may take. */
export interface Budget {
  rounds: number;
  /** Nanoseconds that one sample of one contender takes, if its runs are short. */
  sampleTime: number;
  /** Only check, time nothing. */
  once: boolean;
}

/** Nanoseconds of runs before the first sample: engines compile in the background. */
const WARM_TIME = 6e6;
/** The same where a run takes less than this: V8 compiles some loops after 400 000 calls. */
const SHORT_RUN = 1000;
const SHORT_RUN_WARM_TIME = 25e6;
/** A slow contender stops when its samples took so many times `sampleTime`, */
const PATIENCE = 200;
/** but not before so many rounds. */
const LEAST_ROUNDS = 5;

/** The value below which a share of the sorted numbers lies. */
function quantile(sorted: number[], share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at), high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** Runs once; says what was wrong, or null, and whether a run is asynchronous. */
async function check(
  { name, prepare, run, sample, verify }: Contender,
): Promise<{ fault: string | null; asynchronous: boolean }> {
  let asynchronous = false;
  try {
    prepare?.();
    const result = run ? run() : sample!();
    asynchronous = result instanceof Promise;
    const right = verify ? verify(await result) : await result !== undefined;
    return { fault: right ? null : `${name}: wrong result`, asynchronous };
  } catch (error) {
    const fault = `${name}: ${error instanceof Error ? error.stack : error}`;
    return { fault, asynchronous };
  }
}

/** Lets contenders run one at a time, each once a round, in a changing order. */
class Turns {
  #waiting = new Map<number, () => void>();
  #queue: (() => void)[] = [];
  #contenders: number;
  #round = 0;

  constructor(contenders: number) {
    this.#contenders = contenders;
  }

  /** Ends the turn of a contender, and resolves when it has the next. */
  wait(contender: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(contender, resolve);
      this.#pass();
    });
  }

  /** Ends the last turn of a contender. */
  leave(): void {
    this.#contenders--;
    this.#pass();
  }

  #pass(): void {
    const next = this.#queue.shift();
    if (next) return next();
    if (this.#waiting.size < this.#contenders || this.#contenders === 0) return;
    const all = [...this.#waiting].sort(([a], [b]) => a - b);
    const first = (this.#round >> 1) % all.length;
    const order = all.slice(first).concat(all.slice(0, first));
    if (this.#round++ & 1) order.reverse();
    this.#waiting.clear();
    this.#queue = order.map(([, resolve]) => resolve);
    // Through the event loop: runtimes work off there what runs put off.
    setTimeout(() => this.#pass());
  }
}

/** Runs many times; compiled anew for each contender. */
type Loop = (runs: number) => unknown;

/** How a contender is timed: so many runs a sample. */
interface Plan {
  loop: Loop;
  runTime: number;
  runs: number;
}

/** A contender in a race. */
interface Runner {
  contender: Contender;
  result: Measured;
  asynchronous: boolean;
  plan?: Plan;
}

function newLoop(run: () => unknown): Loop {
  return fresh((run: () => unknown) => (runs: number) => {
    let result = run();
    for (let i = 1; i < runs; i++) result = run();
    return result;
  })(run);
}

/** Runs so often and gives the time in nanoseconds. */
async function timed(loop: Loop, runs: number): Promise<number> {
  const start = performance.now();
  const result = loop(1);
  if (result instanceof Promise) {
    await result;
    // What is asynchronous runs one by one.
    for (let i = 1; i < runs; i++) await loop(1);
  } else if (runs > 1) {
    loop(runs - 1);
  }
  return (performance.now() - start) * 1e6;
}

/** Nanoseconds that a run takes once the engine has compiled it. */
async function estimate(loop: Loop, sampleTime: number): Promise<number> {
  let spent = 0, best = Infinity;
  const warmTime = () => best < SHORT_RUN ? SHORT_RUN_WARM_TIME : WARM_TIME;
  for (let n = 0, runs = 1; n < LEAST_ROUNDS || spent < warmTime(); n++) {
    const time = await timed(loop, runs);
    spent += time;
    // The best, or one interruption would leave the loop too short to be compiled.
    best = Math.min(best, time / runs);
    if (time < sampleTime) runs *= 2;
  }
  return best;
}

/** Warms a contender up and decides how many runs make a sample. */
async function warmUp(
  { contender, asynchronous }: Runner,
  { sampleTime }: Budget,
): Promise<Plan> {
  const loop = newLoop(contender.run!);
  const runTime = await estimate(loop, sampleTime);
  // What is asynchronous runs one by one.
  const runs = asynchronous ? 1 : Math.round(sampleTime / runTime);
  return { loop, runTime, runs: Math.max(1, runs) };
}

/** Runs one race. `tick` is called before each contender is prepared and timed. */
export async function race(
  { contenders, items = 1, allocations, rounds }: Race,
  budget: Budget,
  tick: () => void,
): Promise<{ results: Measured[]; faults: string[] }> {
  const faults: string[] = [];
  const results: Measured[] = [];
  const running: Runner[] = [];
  for (const contender of contenders()) {
    tick();
    const { name, absent } = contender;
    const result: Measured = { name, absent };
    results.push(result);
    if (absent !== undefined) continue;
    const { fault, asynchronous } = await check(contender);
    if (fault) {
      faults.push(fault);
      result.absent = "wrong result";
    } else {
      running.push({ contender, result, asynchronous });
    }
  }
  if (budget.once) return { results, faults };

  for (const runner of running) {
    tick();
    if (runner.contender.run) runner.plan = await warmUp(runner, budget);
  }
  const turns = new Turns(running.length);
  await Promise.all(running.map(async ({ contender, result, plan }, i) => {
    const turn = () => turns.wait(i);
    const times = plan ? await timeLoop(plan, budget, turn) : await timeSamples(
      contender.sample!,
      rounds ?? budget.rounds,
      turn,
    );
    turns.leave();
    const perRun = contender.items ?? items;
    const sorted = times.map((time) => time / perRun).sort((a, b) => a - b);
    result.samples = sorted;
    result.median = quantile(sorted, 0.5);
    result.low = quantile(sorted, 0.25);
    result.high = quantile(sorted, 0.75);
  }));
  for (const { contender: { run, items: own }, result } of running) {
    if (!allocations || !run) continue;
    const { bytes, objects } = await allocated(run);
    const perRun = own ?? items;
    if (bytes !== undefined) result.bytes = bytes / perRun;
    if (objects !== undefined) result.objects = objects / perRun;
  }
  return { results, faults };
}

/** Nanoseconds per run, one sample per turn, taken by mitata. */
async function timeLoop(
  { loop, runTime, runs }: Plan,
  { rounds, sampleTime }: Budget,
  turn: () => Promise<void>,
): Promise<number[]> {
  const affordable = Math.floor(sampleTime * PATIENCE / (runs * runTime));
  const samples = Math.min(rounds, Math.max(LEAST_ROUNDS, affordable));
  const ready = async () => {
    await turn();
    // So that it matters less who had the turn before.
    if (runs >= 8) await loop(runs >> 3);
  };
  const stats = await measure(
    function* () {
      yield { 0: ready, bench: (_turn: void) => loop(runs) };
    } as unknown as Parameters<typeof measure>[0],
    {
      gc: false,
      min_samples: samples,
      max_samples: samples,
      samples_threshold: Infinity,
      // One sample is one call: `loop` repeats the runs, and is warm.
      warmup_threshold: -1,
    },
  );
  return stats.samples.map((time) => time / runs);
}

/** The same for what measures itself. */
async function timeSamples(
  sample: () => Promise<number>,
  rounds: number,
  turn: () => Promise<void>,
): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < rounds; n++) {
    await turn();
    times.push(await sample());
  }
  return times;
}

/**
 * Bytes and objects that one item allocates. V8 tells: the heap and what its
 * buffers hold outside it, and its sampling profiler at one sample per byte sees
 * each object. JavaScriptCore counts only when it collects, so nothing is said.
 */
async function allocated(
  run: () => unknown,
): Promise<{ bytes?: number; objects?: number }> {
  if (process.versions.bun) return {};
  const { gc } = globalThis as { gc?: () => void };
  const used = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const grown = (runs: number) => {
    gc?.();
    gc?.();
    const idle = used();
    const before = used();
    for (let i = 0; i < runs; i++) run();
    // Asking takes memory too.
    return (used() - before - (before - idle)) / runs;
  };
  const median = (runs: number) =>
    Array.from({ length: 3 }, () => grown(runs)).sort((a, b) => a - b)[1];
  // So few runs that nothing is collected in between.
  const runs = Math.round(
    Math.min(500, Math.max(1, 1e6 / Math.max(1, grown(4)))),
  );
  const bytes = median(runs);

  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.enable");
  const objects = async (runs: number) => {
    await session.post("HeapProfiler.startSampling", {
      samplingInterval: 1,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
    for (let i = 0; i < runs; i++) run();
    const answer = await session.post("HeapProfiler.stopSampling");
    return (answer as unknown as { profile: { samples: unknown[] } })
      .profile.samples.length;
  };
  // Some belong to the session.
  const own = await objects(0);
  const counted = (await objects(runs) - own) / runs;
  session.disconnect();
  return {
    bytes: Math.max(0, Math.round(bytes)),
    objects: Math.max(0, Math.round(counted * 10) / 10),
  };
}
