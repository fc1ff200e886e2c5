/**
 * Our client with servers that are not ours: npm `ws`, Deno.serve, Bun.serve, Python's
 * websockets.
 *
 * The client is a `Connection` over a TCP socket, under the runtime that runs this test;
 * each server runs where it is at home. What they do is in `interop/server.mjs` and
 * `interop/peer.py`.
 */

import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { Client } from "./interop/client.ts";
import { pattern, same, SIZES, text } from "./interop/client.mjs";
import { needs, Program, PYTHON, RUNTIMES } from "./interop/programs.ts";

const encoder = new TextEncoder();

/** What a server can do beyond echoing. */
interface Abilities {
  deflate?: boolean;
  /** It sends a Ping on demand. */
  ping?: boolean;
  /** It sends a Ping to whoever is silent at /idle. */
  idle?: boolean;
  /** It sends fragments on demand. */
  fragments?: boolean;
}

async function echo(client: Client, data: string | Uint8Array): Promise<void> {
  const event = await client.ask(data);
  const type = typeof data === "string" ? "text" : "binary";
  assertEquals(event.type, type);
  assert(
    "data" in event && same(event.data, data),
    `the echo of ${data.length} ${type} differs`,
  );
}

/** Sends fragments with a Ping between them. */
async function sendFragments(client: Client): Promise<void> {
  const { connection } = client;
  connection.send("frag", { fin: false });
  connection.ping(encoder.encode("between"));
  connection.send("", { fin: false });
  connection.send("mented 🧩");
  client.flush();
  const events = [await client.next(), await client.next()];
  // Which comes first is the server's choice.
  events.sort((a, b) => a.type < b.type ? -1 : 1);
  assertEquals(events, [
    { type: "pong", data: encoder.encode("between") },
    { type: "text", data: "fragmented 🧩" },
  ]);
}

/** Everything that both ends can, in two connections. */
async function converse(port: number, can: Abilities): Promise<void> {
  const first = await Client.open(port, { deflate: can.deflate });
  assertEquals(first.deflated, can.deflate === true);
  for (const size of SIZES) {
    await echo(first, pattern(size));
    await echo(first, text(size));
  }
  const many = Array.from({ length: 1000 }, (_, i) => `${i} `.repeat(i % 50));
  for (const message of many) first.connection.send(message);
  first.flush();
  for (const data of many) {
    assertEquals(await first.next(), { type: "text", data });
  }
  first.connection.ping(encoder.encode("there?"));
  first.flush();
  const there = encoder.encode("there?");
  assertEquals(await first.next(), { type: "pong", data: there });
  await sendFragments(first);
  if (can.ping) {
    assertEquals(await first.ask("ping"), { type: "ping", data: there });
    assertEquals(await first.next(), { type: "text", data: "pong there?" });
  }
  if (can.fragments) {
    let event = await first.ask("fragments");
    if (event.type === "ping") event = await first.next();
    assertEquals(event, { type: "text", data: "fragmented" });
  }
  first.connection.close(4001, "bye, später");
  first.flush();
  assertEquals(await first.next(), {
    type: "close",
    code: 4001,
    reason: "bye, später",
    clean: true,
  });

  const second = await Client.open(port);
  assertEquals(await second.ask("close 4002 auf Wiedersehen, привет"), {
    type: "close",
    code: 4002,
    reason: "auf Wiedersehen, привет",
    clean: true,
  });
  assertEquals(second.connection.state, "closed");

  if (!can.idle) return;
  const third = await Client.open(port, {}, "/idle");
  assertEquals(await third.next(), { type: "ping", data: new Uint8Array(0) });
  await echo(third, "still there");
  third.destroy();
}

async function test(command: string[], can: Abilities): Promise<void> {
  const server = new Program(command);
  try {
    const [port] = await server.printed(/^\d+$/m);
    await converse(Number(port), can);
    if (can.deflate) await converse(Number(port), { ...can, deflate: false });
  } finally {
    await server.stop();
  }
}

const SCRIPT = "tests/interop/server.mjs";

describe("our client", () => {
  it("with ws", () =>
    test([...RUNTIMES.node(), SCRIPT], {
      deflate: true,
      ping: true,
      fragments: true,
    }));

  it("with Deno.serve", () =>
    test([...RUNTIMES.deno(), SCRIPT], { idle: true }));

  it("with Bun.serve", () =>
    test([...RUNTIMES.bun(), SCRIPT], { deflate: true, ping: true }));

  it(
    "with Python's websockets",
    needs(PYTHON),
    () =>
      test([PYTHON, "tests/interop/peer.py", "server"], {
        deflate: true,
        ping: true,
        fragments: true,
      }),
  );
});
