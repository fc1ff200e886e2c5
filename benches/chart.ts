/**
 * Draws the charts of the README from a saved run:
 *
 *     deno task bench --json=benches/results.json
 *     deno task bench:charts benches/results.json
 */

import { join } from "node:path";
// Named here and not in deno.json: who draws no chart need not install sixty packages.
// deno-lint-ignore no-import-prefix
import { compile, type TopLevelSpec } from "npm:vega-lite@6.5.0";
// deno-lint-ignore no-import-prefix
import * as vega from "npm:vega@6.4.0";
import type { Run, Saved } from "./run.ts";
import { ROOT } from "./runtimes.ts";

const FOLDER = join(ROOT, "benches/charts");

/** What the backends in C are called across runtimes. */
const LIBRARY = "C library";

/** Colours that keep apart on white and on black, and for most colour-blind eyes. */
const COLOURS: Record<string, string> = {
  [LIBRARY]: "#d9480f",
  "kernel from C": "#e8a87c",
  "wasm": "#7048e8",
  "portable": "#1c7ed6",
  "bufferutil": "#2f9e44",
  "http.websocketUnmask": "#0c9a9a",
  "ws": "#868e96",
  "ws loop": "#868e96",
  "websocket-driver": "#ad9a5b",
};

/** Text, lines and ground follow the reader's colour scheme. */
const STYLE = `<style>
  svg > rect { fill: #ffffff }
  text { fill: #24292f }
  .role-axis-grid line { stroke: #d8dee4 }
  @media (prefers-color-scheme: dark) {
    svg > rect { fill: #0d1117 }
    text { fill: #d6dde5 }
    .role-axis-grid line { stroke: #2d333b }
  }
</style>`;

const CONFIG: TopLevelSpec["config"] = {
  background: "#ffffff",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelFontSize: 11,
    labelLimit: 0,
    titleFontSize: 12,
    titleFontWeight: "normal",
    domain: false,
    ticks: false,
  },
  header: { labelFontSize: 13, labelFontWeight: "bold", title: null },
  legend: {
    labelLimit: 0,
    labelFontSize: 12,
    title: null,
    orient: "bottom",
    symbolSize: 120,
  },
  title: { fontSize: 15, anchor: "start", offset: 14, subtitleFontSize: 12 },
};

/** A contender's name without the name that its runtime gives the library. */
function plain(name: string): string {
  return name.replace(/\b(bun-ffi|deno-ffi|node-api)\b/, LIBRARY);
}

function rows(
  run: Run,
  table: string,
): { name: string; bytes: number; row: string; ns: number }[] {
  return run.tables.filter(({ head }) => head.name === table).flatMap((
    { rows },
  ) => rows).flatMap(({ row, bytes, results }) =>
    results.filter(({ median }) => median !== undefined).map((
      { name, median },
    ) => ({ name: plain(name), bytes: bytes!, row, ns: median! }))
  );
}

function masking(saved: Saved, subtitle: string): TopLevelSpec {
  const shown = Object.keys(COLOURS);
  const values = saved.runs.flatMap((run) =>
    rows(run, "mask-peers").filter(({ name }) => shown.includes(name))
      .map(({ name, bytes, ns }) => ({
        runtime: run.start.version,
        name,
        bytes,
        rate: bytes / ns,
      }))
  );
  const names = shown.filter((name) =>
    values.some((value) => value.name === name)
  );
  return {
    config: CONFIG,
    title: { text: "Masking in place: gigabytes per second by size", subtitle },
    data: { values },
    facet: {
      field: "runtime",
      type: "nominal",
      sort: saved.runs.map(({ start }) => start.version),
    },
    columns: 2,
    spec: {
      width: 330,
      height: 230,
      mark: { type: "line", strokeWidth: 2, point: { size: 18 } },
      encoding: {
        x: {
          field: "bytes",
          type: "quantitative",
          scale: { type: "log", base: 2, domain: [2, 2 ** 24] },
          axis: {
            title: null,
            values: [2, 16, 128, 1024, 8192, 65536, 2 ** 20, 2 ** 24],
            labelExpr: "datum.value < 1024 ? datum.value + ' B' : " +
              "datum.value < 1048576 ? datum.value / 1024 + ' KiB' : " +
              "datum.value / 1048576 + ' MiB'",
          },
        },
        y: {
          field: "rate",
          type: "quantitative",
          scale: { type: "log", domain: [0.01, 200], nice: false },
          axis: { title: null, values: [0.1, 1, 10, 100], format: "~r" },
        },
        color: {
          field: "name",
          type: "nominal",
          scale: { domain: names, range: names.map((name) => COLOURS[name]) },
          legend: { columns: 4 },
        },
        strokeDash: {
          condition: {
            test: "datum.name === 'kernel from C'",
            value: [4, 3],
          },
          value: [],
        },
      },
    },
  };
}

function frames(
  saved: Saved,
  table: string,
  ways: Record<string, string>,
  text: string,
  subtitle: string,
): TopLevelSpec {
  const sizes = ["16 B", "125 B", "1 KiB"];
  const names = Object.keys(ways);
  const panels = saved.runs.map((run, i): TopLevelSpec => {
    const values = sizes.flatMap((size) => {
      const panel = rows(run, table).filter(({ name, row }) =>
        names.includes(name) && row === size
      );
      const least = Math.min(...panel.map(({ ns }) => ns));
      return panel.map(({ name, row, ns }) => ({
        name,
        row: `${row} payload`,
        rate: 1e3 / ns,
        length: least / ns,
      }));
    });
    return {
      title: { text: run.start.version, fontSize: 13, offset: i === 0 ? 8 : 4 },
      data: { values },
      facet: {
        column: {
          field: "row",
          type: "nominal",
          sort: sizes.map((size) => `${size} payload`),
          header: { labelFontWeight: "normal", labels: i === 0 },
        },
      },
      spec: bars(ways),
    } as TopLevelSpec;
  });
  return {
    config: CONFIG,
    title: { text, subtitle },
    vconcat: panels,
    spacing: 14,
  } as TopLevelSpec;
}

/** One panel: a bar as long as its share of the fastest, with its rate. */
function bars(ways: Record<string, string>): object {
  const names = Object.keys(ways);
  return {
    width: 190,
    height: { step: 18 },
    encoding: {
      y: {
        field: "name",
        type: "nominal",
        sort: names,
        axis: { title: null },
      },
      x: {
        field: "length",
        type: "quantitative",
        axis: null,
        // Room for the number after the longest bar.
        scale: { domain: [0, 1.25] },
      },
    },
    layer: [
      {
        mark: { type: "bar", height: 13, cornerRadiusEnd: 2 },
        encoding: {
          color: {
            field: "name",
            type: "nominal",
            scale: { domain: names, range: Object.values(ways) },
            legend: null,
          },
        },
      },
      {
        mark: { type: "text", align: "left", dx: 4, fontSize: 11 },
        encoding: {
          text: { field: "rate", type: "quantitative", format: ".3~r" },
        },
      },
    ],
  };
}

async function draw(name: string, spec: TopLevelSpec): Promise<void> {
  const view = new vega.View(vega.parse(compile(spec).spec), {
    renderer: "none",
  });
  const svg = await view.toSVG();
  view.finalize();
  await Deno.mkdir(FOLDER, { recursive: true });
  await Deno.writeTextFile(
    join(FOLDER, `${name}.svg`),
    svg.replace(/ (aria-[a-z]+|role)="[^"]*"/g, "")
      .replace(/(<svg [^>]*>)/, `$1${STYLE}`),
  );
  console.log(`benches/charts/${name}.svg`);
}

if (Deno.args.length !== 1) {
  console.error("usage: deno task bench:charts FILE.json");
  Deno.exit(2);
}
const saved: Saved = JSON.parse(await Deno.readTextFile(Deno.args[0]));
const subtitle = `${saved.machine}, ${
  saved.date.slice(0, 10)
}: ${saved.command}`;
await draw("masking", masking(saved, subtitle));
await draw(
  "reading",
  frames(
    saved,
    "read",
    {
      [`cursor ${LIBRARY}`]: "#d9480f",
      "cursor wasm": "#7048e8",
      "cursor portable": "#1c7ed6",
      [`iterator inPlace ${LIBRARY}`]: "#f08c4a",
      [`iterator ${LIBRARY}`]: "#f08c4a",
      "ws": "#868e96",
      "websocket-driver": "#868e96",
    },
    "Reading masked frames: million frames per second",
    subtitle,
  ),
);
await draw(
  "writing",
  frames(
    saved,
    "write",
    {
      [`FrameWriter ${LIBRARY}`]: "#d9480f",
      [`writeFrameInto ${LIBRARY}`]: "#d9480f",
      [`writeFrame ${LIBRARY}`]: "#f08c4a",
      "writeFrame portable": "#1c7ed6",
      "ws": "#868e96",
      "websocket-driver": "#868e96",
    },
    "Writing masked frames, a fresh key each: million frames per second",
    subtitle,
  ),
);
