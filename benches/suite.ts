/**
 * One runtime's part of a run: started by run.ts, tells its results on standard
 * output, one JSON object per line.
 *
 * @module
 */

import type {
  Context,
  Engine,
  Fact,
  Library,
  Result,
  Runtime,
  Table,
} from "./context.ts";
import { loadCopy, loadEngines } from "./context.ts";
import { echoTables } from "./echo.ts";
import { frameTables } from "./frames.ts";
import { openKernel } from "./kernel.ts";
import { linearTables } from "./linear.ts";
import { compareMask, maskTables } from "./mask.ts";
import type { Budget, Race } from "./measure.ts";
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
  /** A folder for what the suite makes. */
  cache: string;
  /** The library's module, and all its modules in one. */
  library: string;
  bundle?: string;
  quick: boolean;
  once: boolean;
  /** Only rows whose "table row" has one of these in it; a list with commas. */
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
  | ({ type: "row"; table: string } & Result)
  | { type: "notes"; lines: string[] }
  | { type: "end" };

const TABLES: Table[] = [
  ...maskTables,
  ...frameTables,
  ...readTables,
  ...writeTables,
  ...streamTables,
  ...linearTables,
  ...startTables,
  ...echoTables,
];

function say(message: Message): void {
  process.stdout.write(JSON.stringify(message) + "\n");
}

async function context(order: Order): Promise<Context> {
  const { runtime, root, cache, library, bundle, quick, once, revisions } =
    order;
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
  const native = named("bun-ffi") ?? named("deno-ffi") ?? named("node-api");
  let recycling: Engine | undefined;
  if (native !== undefined) {
    const lib = await loadCopy(library, cache, "recycling");
    lib.useBackend(native.name as Parameters<Library["useBackend"]>[0]);
    lib.recycle(new Uint8Array(0));
    recycling = { name: native.name, lib };
  }
  return {
    runtime,
    engines,
    native,
    recycling,
    wasm: named("wasm"),
    portable: named("portable"),
    peers,
    kernel: revisions ? "not compared" : await openKernel(root, cache),
    quick,
    once,
    cache,
    library,
    bundle,
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

async function measureFact(fact: Fact, once: boolean): Promise<Result> {
  const { row, name, unit, measure, limit } = fact;
  const result: Result = { row, unit, results: [{ name }], faults: [] };
  if (limit !== undefined) {
    result.limits = [{ of: name, ns: limit, source: "" }];
  }
  try {
    const value = await measure();
    if (Number.isNaN(value)) throw new Error("wrong result");
    if (!once) result.results[0].median = value;
  } catch (error) {
    result.results[0].absent = "failed";
    result.faults.push(`${name}: ${error}`);
  }
  return result;
}

async function measureRace(
  one: Race,
  budget: Budget,
  tick: () => void,
): Promise<Result> {
  const { results, faults } = await race(one, budget, tick);
  const { row, bytes, targets, limits } = one;
  return { row, bytes, results, targets, limits, faults };
}

async function main(): Promise<void> {
  const order: Order = JSON.parse(process.argv[2]);
  const { quick, once, filter, revisions } = order;
  const budget: Budget = quick || once
    ? { rounds: 21, sampleTime: 0.2e6, once }
    : { rounds: 101, sampleTime: 1e6, once };
  const all = await context(order);
  for (const table of revisions ? [COMPARED] : TABLES) {
    const { name, title, style, base, notes } = table;
    const rows: Result[] = [];
    for (const row of table.rows(all)) {
      const full = `${name} ${row.row}`;
      if (!filter.split(",").some((part) => full.includes(part))) continue;
      if (once && "measure" in row && row.unchecked) continue;
      if (rows.length === 0) say({ type: "table", name, title, style, base });
      const tick = () => say({ type: "tick", table: name, row: row.row });
      tick();
      const result = "measure" in row
        ? await measureFact(row, once)
        : await measureRace(row, budget, tick);
      rows.push(result);
      say({ type: "row", table: name, ...result });
    }
    if (notes && rows.length > 0 && !once) {
      say({ type: "notes", lines: notes(rows, all) });
    }
  }
  if (typeof all.kernel !== "string") all.kernel.close();
  say({ type: "end" });
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
