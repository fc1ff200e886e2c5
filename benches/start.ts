/**
 * What the library costs before it does anything: importing it, and its first
 * call, which opens a backend. Each sample is a process of its own.
 *
 * @module
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Context, Fact, Table } from "./context.ts";

interface Times {
  empty: number;
  imported: number;
  used: number;
}

/** Times in milliseconds; the first import of all pays for the loader. A peer has no use. */
function program(module: string): string {
  const empty = (n: number) => JSON.stringify(`./empty${n}.mjs`);
  return `
    await import(${empty(0)});
    const now = () => performance.now();
    const t0 = now();
    await import(${empty(1)});
    const t1 = now();
    const { mask } = await import(${JSON.stringify(module)});
    const t2 = now();
    mask?.(new Uint8Array(65536), new Uint8Array([1, 2, 3, 4]));
    const t3 = now();
    console.log(JSON.stringify({ empty: t1 - t0, imported: t2 - t1, used: t3 - t2 }));
  `;
}

function* rows(
  { runtime, cache, library, bundle, peers, quick, once }: Context,
): Generator<Fact> {
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, "start-"));
  writeFileSync(join(directory, "empty0.mjs"), "");
  writeFileSync(join(directory, "empty1.mjs"), "");
  /** Measures medians over some starts of a module, which all its values share. */
  const starter = (name: string, module: string) => {
    const file = join(directory, `${name}.mjs`);
    writeFileSync(file, program(pathToFileURL(module).href));
    const args = runtime === "deno"
      ? ["run", "--allow-all", "--no-check", file]
      : [file];
    const start = (): Times =>
      JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
    const starts: Times[] = [];
    return (value: (times: Times) => number) => () => {
      while (starts.length < (once ? 1 : quick ? 7 : 21)) starts.push(start());
      const values = starts.map(value).sort((a, b) => a - b);
      return values[values.length >> 1];
    };
  };
  const more = ({ imported, empty }: Times) => imported - empty;
  const measure = starter("mod", library);
  yield {
    row: "import, more than of an empty module",
    name: "mod",
    unit: "ms",
    limit: 5,
    measure: measure(more),
  };
  yield {
    row: "first use: write, open and test the library",
    name: "mask",
    unit: "ms",
    limit: 5,
    measure: measure(({ used }) => used),
  };
  if (bundle !== undefined) {
    yield {
      row: "import of all modules in one, more than of an empty module",
      name: "bundle",
      unit: "ms",
      limit: 5,
      measure: starter("bundle", bundle)(more),
    };
  }
  // By file path: Bun puts a shim before its name.
  const ws = join(process.cwd(), "node_modules/ws/wrapper.mjs");
  if (typeof peers.newReceiver !== "string") {
    yield {
      row: "import of npm ws, more than of an empty module",
      name: "ws",
      unit: "ms",
      measure: starter("ws", ws)(more),
    };
  }
}

/** The table of starting. */
export const startTables: Table[] = [{
  name: "start",
  title: "Start",
  style: "peers",
  rows,
}];
