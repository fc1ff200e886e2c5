/**
 * One runtime's part of a run: started by run.ts, tells its results on standard
 * output, one JSON object per line.
 *
 * @module
 */

import { join } from "node:path";
import type { Context, Fact, Runtime, Table } from "./context.ts";
import { loadCopy, loadEngines } from "./context.ts";
import { frameTables } from "./frames.ts";
import { openKernel } from "./kernel.ts";
import { linearTables } from "./linear.ts";
import { compareMask, maskTables } from "./mask.ts";
import type { Budget, Measured, Race } from "./measure.ts";
import { race } from "./measure.ts";
import { loadPeers } from "./peers.ts";
import { compareRead, readTables } from "./read.ts";
import { startTables } from "./start.ts";
import { streamTables } from "./streams.ts";
import { compareWrite, writeTables } from "./write.ts";

/** What run.ts and compare.ts ask of a runtime. */
export interface Order {
  runtime: Runtime;
  root: string;
  /** The library's module. */
  library: string;
  quick: boolean;
  once: boolean;
  /** Only tables or rows whose "table row" has this in it. */
  filter: string;
  /** Its module in two revisions: only the engines are timed, old against new. */
  revisions?: { old: string; new: string };
}

/** What a runtime answers. */
export type Message =
  | {
    type: "start";
    runtime: Runtime;
    version: string;
    engines: { name: string; isa: string; minBytes: number }[];
    refused: Record<string, string>;
    versions: Record<string, string>;
  }
  | {
    type: "table";
    name: string;
    title: string;
    style: Table["style"];
    base?: string[];
  }
  | { type: "tick"; table: string; row: string }
  | ({ type: "row"; faults: string[] } & Row)
  | { type: "end" };

/** One row of results. */
export interface Row {
  table: string;
  row: string;
  bytes?: number;
  results: Measured[];
  targets?: Race["targets"];
  limits?: Race["limits"];
  /** Of a fact. */
  unit?: string;
}

const TABLES: Table[] = [
  ...maskTables,
  ...frameTables,
  ...readTables,
  ...writeTables,
  ...streamTables,
  ...linearTables,
  ...startTables,
];

function say(message: Message): void {
  process.stdout.write(JSON.stringify(message) + "\n");
}

async function context(order: Order): Promise<Context> {
  const { runtime, root, library, quick, revisions } = order;
  const cache = join(root, ".cache/benches");
  const peers = loadPeers();
  let engines: Context["engines"], refused: Record<string, string> = {};
  if (revisions) {
    engines = [
      { name: "old", lib: await loadCopy(revisions.old, cache, "old") },
      { name: "new", lib: await loadCopy(revisions.new, cache, "new") },
    ];
  } else {
    ({ engines, refused } = await loadEngines(library, cache));
  }
  const { bun, deno, node } = process.versions;
  say({
    type: "start",
    runtime,
    version: bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`,
    engines: engines.map(({ name, lib }) => {
      const { isa, minBytes } = lib.backend();
      return { name, isa, minBytes };
    }),
    refused,
    versions: peers.versions,
  });
  const named = (name: string) => engines.find((one) => one.name === name);
  return {
    runtime,
    engines,
    native: named("bun-ffi") ?? named("deno-ffi") ?? named("node-api"),
    wasm: named("wasm"),
    portable: named("portable"),
    peers,
    kernel: revisions ? "not compared" : await openKernel(root, cache),
    quick,
    root,
    library,
  };
}

const COMPARED: Table = {
  name: "compare",
  title: "Two revisions",
  style: "change",
  *rows({ engines }) {
    yield* compareMask(engines);
    yield* compareRead(engines);
    yield* compareWrite(engines);
  },
};

async function measureFact(fact: Fact, order: Order): Promise<Row> {
  const { row, name, unit, measure, limit } = fact;
  const samples: number[] = [];
  for (let i = 0; i < (order.once || order.quick ? 1 : 5); i++) {
    samples.push(await measure());
  }
  samples.sort((a, b) => a - b);
  return {
    table: "",
    row,
    unit,
    results: [{ name, median: samples[samples.length >> 1], samples }],
    limits: limit === undefined ? [] : [{ of: name, ns: limit, source: "" }],
  };
}

async function main(): Promise<void> {
  const order: Order = JSON.parse(process.argv[2]);
  const { quick, once, filter, revisions } = order;
  const budget: Budget = quick || once
    ? { rounds: 25, sampleTime: 0.25e6, once }
    : { rounds: 101, sampleTime: 1e6, once };
  const all = await context(order);
  for (const table of revisions ? [COMPARED] : TABLES) {
    let begun = false;
    for (const row of table.rows(all)) {
      if (!`${table.name} ${row.row}`.includes(filter)) continue;
      const { name, title, style, base } = table;
      if (!begun) say({ type: "table", name, title, style, base });
      begun = true;
      const tick = () => say({ type: "tick", table: name, row: row.row });
      if ("measure" in row) {
        tick();
        say({
          type: "row",
          faults: [],
          ...await measureFact(row, order),
          table: name,
        });
        continue;
      }
      const { results, faults } = await race(row, budget, tick);
      const { bytes, targets, limits } = row;
      say({
        type: "row",
        table: name,
        row: row.row,
        bytes,
        results,
        faults,
        targets,
        limits,
      });
    }
  }
  if (typeof all.kernel !== "string") all.kernel.close();
  say({ type: "end" });
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
