/**
 * Compares the speed of two revisions:
 *
 *     deno task bench:compare BASE [HEAD] [--filter=TEXT] [--runtime=NAME,...]
 *
 * HEAD is the working tree unless a revision is named. Both are timed by the
 * benches of the working tree, in one process per runtime, in turns.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { geometricMean, permutationTest } from "simple-statistics";
import { align, percent, progress, spread, time } from "./report.ts";
import {
  CACHE,
  chosen,
  libraryFor,
  removeCache,
  ROOT,
  runSuite,
  RUNTIMES,
} from "./runtimes.ts";
import type { Result } from "./context.ts";
import type { Order } from "./suite.ts";

/** A difference is told as one below this probability of being chance. */
const ALPHA = 0.05;
/** Permutations that the test of a difference draws. */
const PERMUTATIONS = 5000;

/** The folder of a revision's sources; without one, the working tree. */
async function checkOut(revision: string | undefined): Promise<string> {
  if (revision === undefined) return ROOT;
  await Deno.mkdir(CACHE, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: CACHE, prefix: "revision-" });
  const tarball = join(folder, "revision.tar");
  await command(
    "git",
    "archive",
    `--output=${tarball}`,
    revision,
    "mod.ts",
    "src",
  );
  await command("tar", "-xf", tarball, "-C", folder);
  return folder;
}

async function command(program: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, {
    args,
    cwd: ROOT,
  }).output();
  if (!success) {
    throw new Error(
      `${program} ${args[0]} failed: ${
        new TextDecoder().decode(stderr).trim()
      }`,
    );
  }
}

/** Numbers from 0 to 1 that are the same in every run. */
function seeded(): () => number {
  let state = 1;
  return () => {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

/**
 * The probability that two samples differ so much by chance: a permutation test
 * on ranks, as the Mann-Whitney test is, so that outliers weigh no more than others.
 */
function probability(a: number[], b: number[]): number {
  const all = a.concat(b).sort((x, y) => x - y);
  const rank = (value: number) =>
    (all.indexOf(value) + all.lastIndexOf(value)) / 2;
  return permutationTest(
    a.map(rank),
    b.map(rank),
    "two_side",
    PERMUTATIONS,
    seeded(),
  );
}

function comparison(rows: Result[]): string {
  const lines = [["", "old", "", "new", "", "delta", ""]];
  const ratios: number[] = [];
  for (const { row, results } of rows) {
    const [before, after] = ["old", "new"].map((name) =>
      results.find((result) => result.name === name)
    );
    if (before?.samples === undefined || after?.samples === undefined) {
      const absent = before?.absent ?? after?.absent ?? "not measured";
      lines.push([row, "n/a", "", "n/a", "", absent, ""]);
      continue;
    }
    const ratio = after.median! / before.median!;
    ratios.push(ratio);
    const p = probability(before.samples, after.samples);
    lines.push([
      row,
      time(before.median!),
      spread(before),
      time(after.median!),
      spread(after),
      p < ALPHA ? percent(ratio) : "~",
      `(p=${p.toFixed(3)} n=${before.samples.length}+${after.samples.length})`,
    ]);
  }
  if (ratios.length > 1) {
    lines.push(["geomean", "", "", "", "", percent(geometricMean(ratios)), ""]);
  }
  return align(lines);
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: {
    filter: { type: "string", default: "" },
    runtime: { type: "string", default: RUNTIMES.join(",") },
  },
});
const [base, head] = positionals;
if (base === undefined || positionals.length > 2) {
  console.error("usage: deno task bench:compare BASE [HEAD]");
  Deno.exit(2);
}
let good = true;
try {
  const before = await checkOut(base), after = await checkOut(head);
  for (const runtime of chosen(values.runtime)) {
    const order: Order = {
      runtime,
      root: ROOT,
      cache: CACHE,
      library: await libraryFor(runtime, after),
      revisions: {
        old: await libraryFor(runtime, before),
        new: await libraryFor(runtime, after),
      },
      quick: true,
      once: false,
      filter: values.filter,
    };
    const rows: Result[] = [];
    let title: string = runtime;
    good = await runSuite(order, (message) => {
      if (message.type === "start") title = message.version;
      if (message.type === "tick") progress(`${runtime}: ${message.row}`);
      if (message.type === "row") {
        rows.push(message);
        good &&= message.faults.length === 0;
      }
    }) && good;
    progress("");
    console.log(
      `\n=== ${title}: ${base} against ${head ?? "the working tree"}\n\n${
        comparison(rows)
      }`,
    );
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  good = false;
} finally {
  await removeCache();
}
Deno.exit(good ? 0 : 1);
