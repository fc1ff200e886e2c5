/**
 * How the suite is started under each runtime, and what it answers.
 *
 * @module
 */

import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { prepare, ROOT } from "../tests/runner/runtimes.ts";
import type { Message, Order } from "./suite.ts";

export { ROOT };

/** Where this run puts what it makes. */
export const CACHE: string = `${ROOT}.cache/benches/${Deno.pid}`;

/** Removes what this run has put there. */
export async function removeCache(): Promise<void> {
  await Deno.mkdir(CACHE, { recursive: true });
  await Deno.remove(CACHE, { recursive: true });
}

/** In the order in which they run. */
export const RUNTIMES: Order["runtime"][] = ["deno", "bun", "node20", "node26"];

/** The runtimes in a list that a user wrote. */
export function chosen(list: string): Order["runtime"][] {
  return list.split(",").map((name) => {
    const runtime = RUNTIMES.find((one) => one === name);
    if (runtime) return runtime;
    throw new RangeError(
      `--runtime is a list of ${RUNTIMES.join(", ")}, got "${name}"`,
    );
  });
}

/** Program and arguments that run a TypeScript file, with a collector to call. */
export async function program(runtime: Order["runtime"]): Promise<string[]> {
  const { command } = await prepare(runtime);
  const [executable, ...args] = command("", { junit: "", coverage: undefined })
    .args;
  switch (runtime) {
    case "deno":
      return [
        executable,
        "run",
        "--allow-all",
        "--no-check",
        "--v8-flags=--expose-gc",
      ];
    case "bun":
      return [executable, "run"];
    case "node20":
      return [
        executable,
        "--expose-gc",
        ...args.filter((arg) => arg.startsWith("--import=")),
      ];
    case "node26":
      return [executable, "--expose-gc", "--no-warnings"];
  }
}

/**
 * The library in `folder` as a runtime's users get it, as the path of its module:
 * the source, or for Node JavaScript, which the registry makes of it. Through
 * tsx's own translation Node 20 would run other code than theirs. The programs of the echo
 * bench go with it.
 */
export async function libraryFor(
  runtime: Order["runtime"],
  folder: string,
): Promise<string> {
  if (runtime === "deno" || runtime === "bun") return join(folder, "mod.ts");
  await Deno.mkdir(CACHE, { recursive: true });
  const target = await Deno.makeTempDir({ dir: CACHE, prefix: "javascript-" });
  await strip(join(folder, "mod.ts"), join(target, "mod.mjs"));
  await stripAll(join(folder, "src"), join(target, "src"));
  await stripAll(join(folder, "examples"), join(target, "examples"));
  await Deno.mkdir(join(target, "benches"));
  const peer = "benches/echo_peer";
  await strip(join(folder, `${peer}.ts`), join(target, `${peer}.mjs`));
  return join(target, "mod.mjs");
}

/** The library in `folder` in one file, as applications bundle it; its path. */
export async function bundleOf(folder: string): Promise<string> {
  const target = join(CACHE, "bundle.mjs");
  const [bun] = await program("bun");
  const { success, stderr } = await new Deno.Command(bun, {
    args: [
      "build",
      "--target=node",
      `--outfile=${target}`,
      join(folder, "mod.ts"),
    ],
  }).output();
  if (success) return target;
  throw new Error(`bun build: ${new TextDecoder().decode(stderr)}`);
}

async function stripAll(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    const source = join(from, name);
    if (isDirectory) await stripAll(source, join(to, name));
    else if (name.endsWith(".ts")) {
      await strip(source, join(to, name.replace(/ts$/, "mjs")));
    }
  }
}

async function strip(from: string, to: string): Promise<void> {
  const source = stripTypeScriptTypes(await Deno.readTextFile(from));
  await Deno.writeTextFile(
    to,
    source.replace(/(from |import |import\()"(\.[^"]*)\.ts"/g, '$1"$2.mjs"')
      // An example names the package; it lies one folder below the module.
      .replaceAll('"@wsframe/wsframe"', '"../mod.mjs"')
      .replaceAll(
        '"@wsframe/wsframe/connection"',
        '"../src/connection/mod.mjs"',
      ),
  );
}

/** Runs the suite once and hands over each message as it comes. */
export async function runSuite(
  order: Order,
  hear: (message: Message) => void,
): Promise<boolean> {
  const [executable, ...args] = await program(order.runtime);
  const child = new Deno.Command(executable, {
    args: [...args, `${ROOT}benches/suite.ts`, JSON.stringify(order)],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let rest = "";
  let ended = false;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const message: Message = JSON.parse(line);
      ended ||= message.type === "end";
      hear(message);
    }
  }
  return (await child.status).success && ended;
}
