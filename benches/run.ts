/**
 * Runs the benches under Deno, Bun, Node 20 and Node 26.
 *
 *     deno task bench [--quick] [--once] [--filter=TEXT,...] [--runtime=NAME,...] [--json=FILE]
 *
 * `--quick` takes less than two minutes; `--once` times nothing and only checks
 * every row's result, which is what a test run wants. Nothing fails on time.
 */

import { parseArgs } from "node:util";
import { cpus, platform, release } from "node:os";
import { progress, table, type TableResults } from "./report.ts";
import {
  bundleOf,
  CACHE,
  chosen,
  libraryFor,
  removeCache,
  ROOT,
  runSuite,
  RUNTIMES,
} from "./runtimes.ts";
import type { Message, Order } from "./suite.ts";

/** What `--json` saves and chart.ts draws. */
export interface Saved {
  date: string;
  command: string;
  machine: string;
  runs: Run[];
}

/** One runtime's results. */
export interface Run {
  start: Extract<Message, { type: "start" }>;
  tables: TableResults[];
}

const { values: options } = parseArgs({
  args: Deno.args,
  options: {
    quick: { type: "boolean", default: false },
    once: { type: "boolean", default: false },
    filter: { type: "string", default: "" },
    runtime: { type: "string", default: RUNTIMES.join(",") },
    json: { type: "string" },
  },
});

/** Runs the suite under one runtime and prints each table when it is complete. */
async function runOne(
  runtime: Order["runtime"],
  library: string,
  bundle: string,
): Promise<{ run: Run; good: boolean }> {
  const { quick, once, filter } = options;
  const run = { tables: [] as TableResults[] } as Run;
  let current: TableResults | undefined;
  let rows = 0, wrong = 0, met = 0, missed = 0;
  const began = Date.now();
  const seconds = () => Math.round((Date.now() - began) / 1000);
  const finishTable = () => {
    if (!current) return;
    progress("");
    if (once) {
      console.log(`${current.head.name}: ${current.rows.length} rows checked`);
      return;
    }
    const printed = table(current);
    console.log(printed.text);
    met += printed.met;
    missed += printed.missed;
  };
  const hear = (message: Message) => {
    switch (message.type) {
      case "start":
        run.start = message;
        console.log(title(message));
        break;
      case "table":
        finishTable();
        current = { head: message, rows: [], notes: [] };
        run.tables.push(current);
        break;
      case "tick":
        progress(
          `${runtime}: ${message.table}, ${message.row} (${seconds()} s)`,
        );
        break;
      case "row":
        current!.rows.push(message);
        rows++;
        wrong += message.faults.length;
        for (const fault of message.faults) {
          console.error(`WRONG: ${message.table}, ${message.row}: ${fault}`);
        }
        break;
      case "notes":
        current!.notes = message.lines;
        break;
      case "end":
        finishTable();
    }
  };
  const ended = await runSuite(
    { runtime, root: ROOT, cache: CACHE, library, bundle, quick, once, filter },
    hear,
  );
  progress("");
  if (!ended) console.error(`WRONG: the suite did not finish under ${runtime}`);
  const targets = once ? "" : `, ${met} targets met, ${missed} short`;
  console.log(
    `\n${runtime}: ${rows} rows in ${seconds()} s${targets}, ${wrong} wrong`,
  );
  return { run, good: ended && wrong === 0 && rows > 0 };
}

function title(start: Run["start"]): string {
  const engines = start.engines.map(({ name, isa, minBytes }) =>
    `${name} (${isa}${minBytes > 0 ? `, from ${minBytes} B` : ""})`
  );
  const versions = Object.entries(start.versions).map(([name, version]) =>
    `${name} ${version}`
  );
  const refused = Object.entries(start.refused).map(([name, reason]) =>
    `  ${name} is absent: ${reason}`
  );
  return [
    `\n=== ${start.version}: ${engines.join(", ")}`,
    `    beside ${versions.join(", ")}`,
    ...refused,
  ].join("\n");
}

if (import.meta.main) {
  const saved: Saved = {
    date: new Date().toISOString(),
    // Where it was saved says nothing about what was measured.
    command: [
      "deno task bench",
      ...Deno.args.filter((arg) => !arg.startsWith("--json")),
    ].join(" "),
    machine: `${
      cpus()[0].model.trim()
    }, ${cpus().length} cores, ${platform()} ${release()}`,
    runs: [],
  };
  console.log(`${saved.command}\n${saved.machine}\n${saved.date}`);
  let good = true;
  const bundle = await bundleOf(ROOT);
  for (const runtime of chosen(options.runtime)) {
    const library = await libraryFor(runtime, ROOT);
    const one = await runOne(runtime, library, bundle);
    saved.runs.push(one.run);
    good &&= one.good;
  }
  if (options.json) {
    await Deno.writeTextFile(
      options.json,
      JSON.stringify(
        saved,
        (key, value) => key === "samples" ? undefined : value,
      ) + "\n",
    );
  }
  await removeCache();
  Deno.exit(good ? 0 : 1);
}
