/**
 * The directions in which modules may import each other, and what the
 * published modules may hold.
 */

import { describe, it } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import {
  filesUnder,
  importsOf,
  readSource,
  resolvePath,
  withoutComments,
} from "./runner/source.ts";

/** Imports point downward in this list, or stay inside a folder. */
const LAYERS: readonly (readonly string[])[] = [
  ["mod.ts", "src/web.ts"],
  ["src/connection/"],
  ["src/streams.ts"],
  ["src/reader.ts", "src/writer.ts"],
  ["src/close.ts"],
  ["src/mask.ts", "src/mask_key.ts"],
  ["src/backend/"],
  ["src/memory.ts"],
  ["src/check.ts"],
  ["src/frame.ts", "src/errors.ts"],
];

/** The modules that know that backends exist. */
const KNOW_BACKENDS = [
  "mod.ts",
  "src/web.ts",
  "src/reader.ts",
  "src/mask.ts",
  "src/connection/connection.ts",
];

/** Every module and what it imports, as written. */
type Graph = Record<string, readonly string[]>;

function layerOf(path: string): number {
  return LAYERS.findIndex((layer) =>
    layer.some((member) =>
      member.endsWith("/") ? path.startsWith(member) : path === member
    )
  );
}

function folderOf(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}

/** What in `graph` breaks the rules; `packages` are what ./connection may use. */
function faultsOf(graph: Graph, packages: readonly string[]): string[] {
  const faults: string[] = [];
  for (const [from, imports] of Object.entries(graph)) {
    const layer = layerOf(from);
    if (layer < 0) faults.push(`${from} stands in no layer`);
    for (const specifier of imports) {
      if (!specifier.startsWith(".")) {
        const allowed = from.startsWith("src/connection/") &&
          packages.includes(specifier);
        if (!allowed) faults.push(`${from} imports "${specifier}"`);
        continue;
      }
      const to = resolvePath(from, specifier);
      if (!(to in graph)) {
        faults.push(`${from} imports ${to}, which is not there`);
      }
      const inside = from.split("/").length > 2 &&
        folderOf(from) === folderOf(to);
      if (!inside && layerOf(to) <= layer) {
        faults.push(`${from} imports ${to}, which is not below it`);
      }
      if (
        !inside && to.startsWith("src/backend/") &&
        !KNOW_BACKENDS.includes(from)
      ) faults.push(`${from} imports ${to}, but knows no backends`);
    }
  }
  return faults;
}

/** All modules that `entry` loads, itself included. */
function reachable(graph: Graph, entry: string): Set<string> {
  const seen = new Set([entry]);
  for (const path of seen) {
    for (const specifier of graph[path] ?? []) {
      if (specifier.startsWith(".")) seen.add(resolvePath(path, specifier));
    }
  }
  return seen;
}

const files = ["mod.ts", ...filesUnder("src", ".ts")];
const sources = Object.fromEntries(files.map((f) => [f, readSource(f)]));
const graph: Graph = Object.fromEntries(
  files.map((file) => [file, importsOf(sources[file])]),
);
const manifest = JSON.parse(readSource("jsr.json")) as {
  exports: Record<string, string>;
  imports?: Record<string, string>;
};
const entry = (name: string) => manifest.exports[name].replace("./", "");

describe("imports", () => {
  it("point downward, and outside only where the manifest says so", () => {
    assertEquals(faultsOf(graph, Object.keys(manifest.imports ?? {})), []);
  });

  const wrong: [string, Graph][] = [
    ["an import upward", { "src/frame.ts": ["./mask.ts"], "src/mask.ts": [] }],
    ["an import sideways", {
      "src/reader.ts": ["./writer.ts"],
      "src/writer.ts": [],
    }],
    ["an import upward out of a folder", {
      "src/backend/portable.ts": ["../mask.ts"],
      "src/mask.ts": [],
    }],
    ["a backend known by the writer", {
      "src/writer.ts": ["./backend/select.ts"],
      "src/backend/select.ts": [],
    }],
    ["a module of the runtime", { "src/mask.ts": ["node:fs"] }],
    ["a package in the core", { "src/reader.ts": ["deflate"] }],
    ["a package that the manifest lacks", {
      "src/connection/deflate.ts": ["other"],
    }],
    ["a module in no layer", { "src/unheard_of.ts": [] }],
    ["a file that is not there", { "src/mask.ts": ["./frame.ts"] }],
  ];
  for (const [name, graph] of wrong) {
    it(`are refused: ${name}`, () => {
      assertEquals(faultsOf(graph, ["deflate"]).length, 1);
    });
  }
  it("are accepted where they are right", () => {
    const right: Graph = {
      "mod.ts": ["./src/mask.ts", "./src/backend/select.ts"],
      "src/mask.ts": ["./backend/select.ts", "./frame.ts"],
      "src/backend/select.ts": ["./portable.ts", "../frame.ts"],
      "src/backend/portable.ts": [],
      "src/connection/deflate.ts": ["deflate", "../mask.ts"],
      "src/frame.ts": [],
    };
    assertEquals(faultsOf(right, ["deflate"]), []);
  });

  it("are found in every form", () => {
    assertEquals(
      importsOf(`
        // import "./comment.ts";
        /* import "./comment.ts"; */
      `),
      [],
    );
    assertEquals(
      importsOf(
        [
          `import a from "./1.ts";`,
          `import type { B } from "./2.ts";`,
          `import {\n  c,\n} from './3.ts';`,
          `export * from "./4.ts";`,
          `export {\n  type D,\n} from "./5.ts";`,
          `import "./6.ts";`,
          `const e = "// not a comment", f = await import("./7.ts");`,
          `export const g = "import";`,
        ].join("\n"),
      ).sort(),
      [1, 2, 3, 4, 5, 6, 7].map((n) => `./${n}.ts`),
    );
  });

  it('keep native libraries out of "./web"', () => {
    const reached = [...reachable(graph, entry("./web"))];
    assert(reached.length > 5, `Only ${reached} reached`);
    const embedded = reached
      .filter((file) => file.startsWith("src/backend/embedded/"));
    assertEquals(
      embedded.filter((file) => file !== "src/backend/embedded/wasm.ts"),
      [],
    );
  });

  it('bring nothing of ./connection into "." and "./web"', () => {
    for (const name of [".", "./web"]) {
      const reached = [...reachable(graph, entry(name))];
      assertEquals(
        reached.filter((file) => file.startsWith("src/connection/")),
        [],
      );
    }
  });

  it("reach every module from an entry point", () => {
    const reached = Object.keys(manifest.exports)
      .flatMap((name) => [...reachable(graph, entry(name))]);
    assertEquals(files.filter((file) => !reached.includes(file)), []);
  });
});

describe("entry points", () => {
  for (const name of Object.keys(manifest.exports)) {
    it(`${name} re-exports and is documented, nothing else`, () => {
      const source = sources[entry(name)];
      assertMatch(source, /^\/\*\*[^]*?@module/);
      const rest = withoutComments(source).replace(
        /^export (type )?(\{[^}]*\}|\*) from "[^"]+";/gm,
        "",
      );
      assertEquals(rest.trim(), "");
    });
  }
});

/** Lines at the top level of a module that wait, or TypeScript that stays. */
function unerasable(source: string): string[] {
  return withoutComments(source).split("\n").filter((line) =>
    /^((const|let|export const) .*= )?await\b|^for await\b/.test(line) ||
    /^\s*(export )?(declare )?(const )?enum\b/.test(line) ||
    /^\s*(export )?(declare )?(namespace|module) [\w.]+ \{/.test(line)
  );
}

describe("sources", () => {
  for (const file of files) {
    it(`${file} has no top-level await, enum or namespace`, () => {
      assertEquals(unerasable(sources[file]), []);
    });
  }
  it("are told from ones that have", () => {
    const lines = ["await x;", "export const y = await x;", "enum Z {}"];
    for (const line of lines) assertEquals(unerasable(line), [line]);
  });
});
