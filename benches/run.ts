/**
 * Runs the benches under Deno, Bun, Node 20 and Node 26.
 *
 *     deno task bench [--quick] [--once] [--filter=TEXT] [--runtime=NAME,...] [--json=FILE]
 *
 * `--quick` takes less than two minutes; `--once` times nothing and only checks
 * every row's result, which is what a test run wants. Nothing fails on time.
 */

import { parseArgs } from "node:util";
import { cpus, platform, release } from "node:os";
import { progress, table } from "./report.ts";
import { chosen, libraryFor, ROOT, runSuite, RUNTIMES } from "./runtimes.ts";
import type { Message, Order, Row } from "./suite.ts";

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
  rows: Row[];
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

async function runOne(
  runtime: Order["runtime"],
  library: string,
): Promise<{ run: Run; good: boolean }> {
  const { quick, once, filter } = options;
  const run = { rows: [] as Row[] } as Run;
  let head: Extract<Message, { type: "table" }> | undefined;
  let rows: Row[] = [], faults = 0, met = 0, missed = 0;
  const began = Date.now();
  const finishTable = () => {
    if (head && rows.length > 0) {
      progress("");
      if (once) {
        console.log(`${head.name}: ${rows.length} rows checked`);
      } else {
        const printed = table(head, rows);
        console.log(printed.text);
        met += printed.met;
        missed += printed.missed;
      }
    }
    rows = [];
  };
  const ended = await runSuite(
    { runtime, root: ROOT, library, quick, once, filter },
    (message) => {
      switch (message.type) {
        case "start":
          run.start = message;
          console.log(title(message));
          break;
        case "table":
          finishTable();
          head = message;
          break;
        case "tick":
          progress(
            `${runtime}: ${message.table}, ${message.row} (${
              Math.round((Date.now() - began) / 1000)
            } s)`,
          );
          break;
        case "row": {
          const { type: _, faults: wrong, ...row } = message;
          rows.push(row);
          run.rows.push(row);
          faults += wrong.length;
          for (const fault of wrong) {
            console.error(`WRONG: ${row.table}, ${row.row}: ${fault}`);
          }
          break;
        }
        case "end":
          finishTable();
          break;
      }
    },
  );
  progress("");
  if (!ended) console.error(`WRONG: the suite did not finish under ${runtime}`);
  const seconds = Math.round((Date.now() - began) / 1000);
  const targets = once ? "" : `, ${met} targets met, ${missed} short`;
  console.log(
    `\n${runtime}: ${run.rows.length} rows in ${seconds} s${targets}, ${faults} wrong`,
  );
  return { run, good: ended && faults === 0 && run.rows.length > 0 };
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
    command: ["deno task bench", ...Deno.args].join(" "),
    machine: `${
      cpus()[0].model.trim()
    }, ${cpus().length} cores, ${platform()} ${release()}`,
    runs: [],
  };
  console.log(`${saved.command}\n${saved.machine}\n${saved.date}`);
  let good = true;
  for (const runtime of chosen(options.runtime)) {
    const one = await runOne(runtime, await libraryFor(runtime, ROOT));
    saved.runs.push(one.run);
    good &&= one.good;
  }
  if (options.json) {
    await Deno.writeTextFile(options.json, JSON.stringify(saved) + "\n");
  }
  Deno.exit(good ? 0 : 1);
}
