/**
 * Tables on a terminal.
 *
 * @module
 */

import { geometricMean } from "simple-statistics";
import type { Measured } from "./measure.ts";
import type { Result } from "./context.ts";
import type { Message } from "./suite.ts";

/** Columns of the lines under a table. */
const WIDTH = 110;

/** What a run gave for one table. */
export interface TableResults {
  head: Extract<Message, { type: "table" }>;
  rows: Result[];
  notes: string[];
}

/** Three digits and a unit: "12.3 ns", "331 µs". */
export function time(ns: number): string {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) {
    if (ns >= size * 0.9995) return `${digits(ns / size)} ${unit}`;
  }
  return `${digits(ns)} ns`;
}

function digits(value: number): string {
  return value >= 99.95
    ? value.toFixed(0)
    : value >= 9.995
    ? value.toFixed(1)
    : value.toFixed(2);
}

/** "14.2x" */
function factor(value: number): string {
  return `${digits(value)}x`;
}

/** Half the distance of the quartiles, in percent of the median. */
export function spread({ median, low, high }: Measured): string {
  return `±${((high! - low!) / 2 / median! * 100).toFixed(0)}%`;
}

/** Lines up the columns of a table: the first to the left, others to the right. */
export function align(lines: string[][]): string {
  const widths: number[] = [];
  for (const line of lines) {
    line.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return lines.map((line) =>
    line.map((cell, i) =>
      i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])
    ).join("  ").trimEnd()
  ).join("\n");
}

/** What is being measured, on one line that is written over. */
export function progress(text: string): void {
  if (!Deno.stderr.isTerminal()) return;
  Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`));
}

function find(row: Result, name: string): Measured | undefined {
  return row.results.find((result) => result.name === name);
}

/** Before and after, with the columns of Go's tools. */
function changeTable(rows: Result[]): string {
  const names = rows[0].results.map(({ name }) => name);
  const counted = rows.some((row) =>
    row.results.some(({ bytes }) => bytes !== undefined)
  );
  const lines = [[
    "",
    ...names.flatMap((name) =>
      counted ? [name, "B/s", "B/op", "allocs/op"] : [name, "B/s"]
    ),
    ...(names.length > 1 ? ["change"] : []),
  ]];
  for (const row of rows) {
    const [before, after] = row.results;
    lines.push([
      row.row,
      ...row.results.flatMap((result) => {
        const { median, bytes, objects } = result;
        const cells = median === undefined
          ? ["n/a", ""]
          : [`${time(median)} ${spread(result)}`, rate(row, median)];
        return counted
          ? [...cells, bytes?.toFixed(0) ?? "n/a", objects?.toFixed(1) ?? "n/a"]
          : cells;
      }),
      ...(before?.median && after?.median
        ? [percent(after.median / before.median)]
        : []),
    ]);
  }
  const both = rows.filter(({ results: [a, b] }) => a?.median && b?.median);
  if (both.length > 1) {
    const mean = (i: number) =>
      geometricMean(both.map(({ results }) => results[i].median!));
    const gap = counted ? ["", "", ""] : [""];
    lines.push([
      "geomean",
      time(mean(0)),
      ...gap,
      time(mean(1)),
      ...gap,
      percent(mean(1) / mean(0)),
    ]);
  }
  return align(lines);
}

function rate({ bytes }: Result, ns: number): string {
  if (!bytes) return "";
  const perSecond = bytes / ns * 1e9;
  return perSecond >= 1e9
    ? `${digits(perSecond / 1e9)} GB/s`
    : `${digits(perSecond / 1e6)} MB/s`;
}

/** "-33.6%" */
export function percent(ratio: number): string {
  const change = (ratio - 1) * 100;
  return `${change > 0 ? "+" : ""}${change.toFixed(1)}%`;
}

/** A grid; each cell a median, its spread and how many times the base's speed it is. */
function peersTable(rows: Result[], base: string[]): string {
  const names = [
    ...new Set(rows.flatMap(({ results }) => results.map(({ name }) => name))),
  ];
  const cell = (row: Result, name: string) => {
    const result = find(row, name);
    if (result?.median === undefined) return "-";
    const other = base.map((name) => find(row, name)).find((found) =>
      found?.median !== undefined
    );
    const ratio = other && other !== result
      ? ` ${factor(other.median! / result.median).padStart(5)}`
      : "      ";
    return `${time(result.median)} ${spread(result).padStart(4)}${ratio}`;
  };
  const across = rows.length > names.length;
  return align(
    across
      ? [
        ["", ...names],
        ...rows.map((
          row,
        ) => [row.row, ...names.map((name) => cell(row, name))]),
      ]
      : [
        ["", ...rows.map(({ row }) => row)],
        ...names.map((name) => [name, ...rows.map((row) => cell(row, name))]),
      ],
  );
}

/** Facts: one value a line. */
function factTable(rows: Result[]): string {
  return align(
    rows.map(({ row, results: [{ name, median, absent }], unit }) => [
      `${row}, ${name}`,
      median === undefined ? absent! : `${digits(median)} ${unit}`,
    ]),
  );
}

/** Each target with what was measured, and how many were missed. */
function verdicts(
  rows: Result[],
): { lines: string[]; met: number; missed: number } {
  const groups = new Map<string, string[]>();
  let met = 0, missed = 0;
  const judge = (key: string, row: string, text: string, good: boolean) => {
    good ? met++ : missed++;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key)!.push(`${row} ${text} ${good ? "ok" : "SHORT"}`);
  };
  for (const row of rows) {
    for (const { of, over, atLeast } of row.targets ?? []) {
      const ours = find(row, of)?.median;
      const theirs = [over].flat().map((name) => find(row, name)?.median)
        .filter((median) => median !== undefined);
      if (ours === undefined || theirs.length === 0) continue;
      const ratio = Math.min(...theirs) / ours;
      judge(
        `${of} over ${Array.isArray(over) ? "the best peer" : over}`,
        row.row,
        `${factor(ratio)} of ${Math.round(atLeast * 100) / 100}x`,
        ratio >= atLeast,
      );
    }
    for (const { of, ns, source } of row.limits ?? []) {
      const ours = find(row, of)?.median;
      if (ours === undefined) continue;
      const shown = (value: number) =>
        row.unit ? `${digits(value)} ${row.unit}` : time(value);
      judge(
        `${of} at most`,
        row.row,
        `${shown(ours)} of ${shown(ns)}${source && ` (${source})`}`,
        ours <= ns,
      );
    }
  }
  const lines = [...groups].map(([key, list]) => wrap(`${key}: `, list));
  return { lines, met, missed };
}

/** A list that is continued on lines of its own. */
function wrap(first: string, list: string[]): string {
  const lines = [`  ${first}`];
  list.forEach((item, i) => {
    const text = i < list.length - 1 ? `${item}, ` : item;
    if (lines[lines.length - 1].length + text.length > WIDTH) {
      lines.push("    ");
    }
    lines[lines.length - 1] += text;
  });
  return lines.map((line) => line.trimEnd()).join("\n");
}

/** Why contenders did not run, each reason once. */
function absences(rows: Result[]): string[] {
  const reasons = new Set<string>();
  for (const { results } of rows) {
    for (const { name, absent } of results) {
      if (absent !== undefined) reasons.add(`  ${name} is absent: ${absent}`);
    }
  }
  return [...reasons];
}

/** One table, its verdicts and what was absent from it. */
export function table(
  { head, rows, notes }: TableResults,
): { text: string; met: number; missed: number } {
  const facts = rows.filter(({ unit }) => unit !== undefined);
  const races = rows.filter(({ unit }) => unit === undefined);
  const judged = verdicts(rows);
  const parts = [`\n${head.title}  [${head.name}]\n`];
  if (races.length > 0) {
    parts.push(
      head.style === "change"
        ? changeTable(races)
        : peersTable(races, head.base ?? []),
    );
  }
  if (facts.length > 0) parts.push(factTable(facts));
  parts.push(
    ...absences(rows),
    ...notes.map((note) => `  ${note}`),
    ...judged.lines,
  );
  return { text: parts.join("\n"), met: judged.met, missed: judged.missed };
}
