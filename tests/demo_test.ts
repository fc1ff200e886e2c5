/** The demo as a person runs it, its output in a pipe. */

import { spawnSync } from "node:child_process";
import process from "node:process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  assertEquals,
  assertFalse,
  assertLessOrEqual,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { backend } from "@wsframe/wsframe";
import { readIndex } from "./recordings.ts";

/** Milliseconds after which the demo is stopped. */
const LIMIT = 60_000;

/** Runs the demo under the runtime that runs this. */
function demo(...args: string[]): {
  status: number | null;
  stdout: string;
  stderr: string;
} {
  // Node 20 reads TypeScript only through a loader: as this file, so the demo.
  const before = "Deno" in globalThis
    ? ["run", "--allow-all", "--quiet"]
    : process.execArgv.filter((arg) => arg.startsWith("--import="));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [...before, "examples/demo.ts", ...args],
    {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "" },
      timeout: LIMIT,
    },
  );
  return { status, stdout, stderr };
}

const { recordings } = readIndex();
const frameCount = recordings
  .flatMap(({ frames }) => [frames.client, frames.server])
  .flatMap((counts) => Object.values(counts))
  .reduce((sum, count) => sum + count);

describe("demo", () => {
  it("lists, writes again, and times, in plain text", () => {
    const { status, stdout, stderr } = demo("--rounds=1");
    assertEquals(stderr, "");
    assertEquals(status, 0);
    assertFalse(stdout.includes("\x1b"), "escape sequences in a pipe");
    const { name, isa } = backend();
    assertStringIncludes(stdout, `backend: ${name} (${isa})`);
    assertMatch(
      stdout,
      / client +154 +text +FIN --- +[0-9a-f]{8} +14 +"Hello, frames!"\n/,
    );
    assertMatch(stdout, / server +\d+ +text +FIN 1-- .* inflates to 480 /);
    assertStringIncludes(stdout, "more like these");
    assertStringIncludes(
      stdout,
      ` ${frameCount} of ${frameCount} frames identical\n`,
    );
    // bufferutil has no binary for some machines; then the demo says so.
    const other = / bufferutil: ./.test(stdout)
      ? "( +[\\d.]+ [nµm]s +[\\d.]+x| +-)"
      : "( +[\\d.]+ [nµm]s +[\\d.]+x)";
    for (const size of ["2 B", "1 KiB", "64 KiB", "1 MiB"]) {
      assertMatch(
        stdout,
        new RegExp(`^ +${size} +[\\d.]+ [nµm]s +[\\d.]+${other}{3}$`, "m"),
      );
    }
    for (const line of stdout.split("\n")) {
      assertLessOrEqual([...line].length, 110, line);
    }
  });

  it("lists every recording with --all", () => {
    const { status, stdout } = demo("--all", "--rounds=1");
    assertEquals(status, 0);
    for (const { name, client, server } of recordings) {
      assertStringIncludes(
        stdout,
        `\n${name}  client ${client}  server ${server}\n`,
      );
    }
    for (
      const content of [
        '1001 "сервер перезапускается"',
        '4000 "再见"',
        '1000 "להתראות"',
        '"नमस्ते दुनिया"',
        "no code",
      ]
    ) assertStringIncludes(stdout, content);
  });

  it("says what it does not know", () => {
    const { status, stdout, stderr } = demo("--al");
    assertEquals(status, 2);
    assertEquals(stdout, "");
    assertMatch(stderr, /^An argument is --all, .*, got "--al"\n$/);
  });
});
