/**
 * How the suite is started under each runtime, and what it answers.
 *
 * @module
 */

import { prepare, ROOT } from "../tests/runner/runtimes.ts";
import type { Message, Order } from "./suite.ts";

export { ROOT };

/** In the order in which they run. */
export const RUNTIMES: Order["runtime"][] = ["deno", "bun", "node20", "node26"];

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

/** Packs the library as the registry does, JavaScript, and gives its folder. */
export async function pack(): Promise<string> {
  const folder = `${ROOT}.cache/benches/package`;
  await Deno.mkdir(folder, { recursive: true });
  const tarball = `${folder}.tgz`;
  for (
    const [program, ...args] of [
      [
        Deno.execPath(),
        "pack",
        "--quiet",
        "--allow-dirty",
        "--allow-slow-types",
        "--config=jsr.json",
        `--output=${tarball}`,
      ],
      ["tar", "-xzf", tarball, "-C", folder, "--strip-components=1"],
    ]
  ) {
    const { success, stderr } = await new Deno.Command(program, {
      args,
      cwd: ROOT,
    }).output();
    if (!success) {
      throw new Error(
        `${program} ${args[0]} failed: ${new TextDecoder().decode(stderr)}`,
      );
    }
  }
  return folder;
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
