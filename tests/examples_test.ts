/**
 * The examples as programs, under the runtime that runs this: what they print and how
 * they end; and that the echo server survives bad peers while it keeps serving another.
 */

import { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertLess,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { writeFrame } from "@wsframe/wsframe";
import { createUpgradeRequest } from "@wsframe/wsframe/connection";
import { Client } from "./interop/client.ts";
import { pattern } from "./interop/client.mjs";
import { example, Program, startServer } from "./interop/programs.ts";

/** Runs an example to its end. */
async function runExample(
  file: string,
  ...args: string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const program = new Program(example(file, ...args));
  try {
    return await program.ended;
  } finally {
    await program.stop();
  }
}

/** Runs a server for as long as `use` takes; then it must leave as it should. */
async function withServer(
  file: string,
  use: (port: number, program: Program) => Promise<void>,
  ...args: string[]
): Promise<string> {
  const { program, port } = await startServer(file, ...args);
  try {
    await use(port, program);
    program.signal("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    return stdout;
  } finally {
    await program.stop();
  }
}

/** A peer that does as it likes. */
class Raw {
  readonly socket: Socket;
  received: Buffer = Buffer.alloc(0);
  /** Resolves when the server has ended its side, or the connection is gone. */
  readonly ended: Promise<void>;
  #changed: () => void = () => {};

  constructor(port: number) {
    this.socket = connect({
      host: "127.0.0.1",
      port,
      noDelay: true,
      allowHalfOpen: true,
    });
    this.ended = new Promise((resolve) => {
      const end = () => {
        resolve();
        this.#changed();
      };
      this.socket.on("end", end).on("close", end).on("error", end);
    });
    this.socket.on("data", (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk]);
      this.#changed();
    });
  }

  /** A peer that has shaken hands. */
  static async open(port: number): Promise<Raw> {
    const raw = new Raw(port);
    raw.socket.write(REQUEST);
    await raw.until(() => raw.received.includes("\r\n\r\n"));
    assertMatch(raw.received.toString(), /^HTTP\/1\.1 101 /);
    raw.received = Buffer.alloc(0);
    return raw;
  }

  /** Waits for bytes until `condition` is true, or there will be no more of them. */
  async until(condition: () => boolean): Promise<void> {
    let isOver = false;
    this.ended.then(() => isOver = true);
    while (!condition() && !isOver) {
      await new Promise<void>((resolve) => this.#changed = resolve);
    }
  }

  write(bytes: Uint8Array | string): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Breaks off, not even with a goodbye of TCP. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

const REQUEST = createUpgradeRequest({ host: "127.0.0.1" }).bytes;

const encoder = new TextEncoder();

function frame(opcode: number, payload: string | Uint8Array): Uint8Array {
  return writeFrame({ opcode: opcode as 1, payload }, { role: "client" });
}

/** Runs the echo server; a peer that behaves is served before, meanwhile and after. */
async function withBystander(
  use: (port: number, check: () => Promise<void>) => Promise<void>,
): Promise<void> {
  await withServer("echo_server.ts", async (port) => {
    const bystander = await Client.open(port);
    const check = async () => {
      const data = "still served?";
      assertEquals(await bystander.ask(data), { type: "text", data });
    };
    await check();
    await use(port, check);
    await check();
    bystander.connection.close(1000);
    bystander.flush();
    assertEquals((await bystander.next()).type, "close");
  });
}

describe("echo_server", () => {
  it("survives a reset in every state", () =>
    withBystander(async (port, check) => {
      const big = frame(2, new Uint8Array(1 << 20));
      const states: Record<string, Uint8Array> = {
        "after the handshake": new Uint8Array(0),
        "in a header": big.subarray(0, 5),
        "in a payload": big.subarray(0, 70_000),
        "in a fragmented message": writeFrame(
          { opcode: 1, payload: "frag", fin: false },
          { role: "client" },
        ),
        "before the echo": big,
        "before the pong": frame(9, "ping"),
        "after a Close": frame(8, new Uint8Array([3, 232])),
        "after a fault": new Uint8Array([0xff, 0xff]),
      };
      for (const bytes of [new Uint8Array(0), REQUEST.subarray(0, 20)]) {
        const raw = new Raw(port);
        await raw.write(bytes);
        raw.reset();
        await check();
      }
      for (const bytes of Object.values(states)) {
        for (const wait of [false, true]) {
          const raw = await Raw.open(port);
          await raw.write(bytes);
          if (wait) await check();
          raw.reset();
          await check();
        }
      }
    }));

  it("answers garbage, and hangs up", () =>
    withBystander(async (port, check) => {
      const handshake = new Raw(port);
      await handshake.write(pattern(100_000));
      await handshake.ended;
      assertMatch(handshake.received.toString(), /^HTTP\/1\.1 400 Bad Request/);
      handshake.socket.end();
      await check();

      const frames = await Raw.open(port);
      await frames.write(frame(1, "hello"));
      await frames.write(pattern(100_000));
      await frames.ended;
      const echo = [0x81, 5, ...encoder.encode("hello")];
      // Close 1002, and nothing behind it.
      assertEquals([...frames.received], [...echo, 0x88, 2, 3, 234]);
      frames.socket.end();
      await check();
    }));

  it("refuses what is no handshake for it", () =>
    withBystander(async (port, check) => {
      const head = REQUEST.length - 2;
      const request = Buffer.from(REQUEST).toString().slice(0, head);
      const refused: [string, string][] = [
        ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "426"],
        [request.replace("GET", "POST") + "\r\n", "405"],
        [request.replace("HTTP/1.1", "HTTP/1.0") + "\r\n", "505"],
        [request.replace("Version: 13", "Version: 12") + "\r\n", "426"],
        [`${request}X: ${"a".repeat(10_000_000)}\r\n\r\n`, "431"],
        [request + "a: b\r\n".repeat(100_000) + "\r\n", "431"],
      ];
      for (const [bytes, status] of refused) {
        const raw = new Raw(port);
        raw.socket.write(bytes);
        await raw.ended;
        assertEquals(
          raw.received.toString().slice(0, 12),
          `HTTP/1.1 ${status}`,
        );
        raw.socket.end();
        await check();
      }
    }));

  it("serves a peer that sends byte by byte", () =>
    withBystander(async (port, check) => {
      const raw = new Raw(port);
      const bytes = Buffer.concat([
        REQUEST,
        frame(1, "slow"),
        frame(8, new Uint8Array([3, 232])),
      ]);
      for (const [i, byte] of bytes.entries()) {
        await raw.write(new Uint8Array([byte]));
        if (i % 50 === 0) await check();
      }
      await raw.ended;
      const echo = Buffer.concat([
        Buffer.from("\r\n\r\n"),
        new Uint8Array([0x81, 4]),
        Buffer.from("slow"),
        new Uint8Array([0x88, 2, 3, 232]),
      ]);
      assertEquals([...raw.received.subarray(-echo.length)], [...echo]);
      raw.socket.end();
    }));

  it("takes frames that came with the handshake", () =>
    withBystander(async (port) => {
      const raw = new Raw(port);
      await raw.write(Buffer.concat([REQUEST, frame(1, "early")]));
      await raw.until(() => raw.received.includes("early"));
      assertStringIncludes(
        raw.received.toString("latin1"),
        "\r\n\r\n\x81\x05early",
      );
      raw.reset();
    }));

  it("answers a peer that has ended its side", () =>
    withBystander(async (port, check) => {
      const raw = await Raw.open(port);
      raw.socket.end(frame(1, "last words"));
      await raw.ended;
      // The echo; no Close, since the peer sent none.
      assertEquals(raw.received.subarray(2).toString(), "last words");

      const during = new Raw(port);
      during.socket.end(REQUEST.subarray(0, 30));
      await during.ended;
      assertEquals(during.received.length, 0);
      await check();
    }));

  it("takes no more from a peer that does not read", () =>
    withBystander(async (port, check) => {
      const count = 64;
      const length = 1 << 20;
      const raw = await Raw.open(port);
      raw.socket.pause();
      const message = frame(2, new Uint8Array(length));
      let taken = 0;
      for (let i = 0; i < count; i++) {
        raw.socket.write(message, () => taken++);
      }
      for (let before = -1; before < taken && taken < count;) {
        before = taken;
        for (let i = 0; i < 10; i++) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          await check();
        }
      }
      // What the system buffers on the way is a few MiB.
      assertLess(taken, count);
      let bytes = 0;
      raw.socket.removeAllListeners("data");
      await new Promise<void>((resolve) => {
        raw.socket.on("data", (chunk: Uint8Array) => {
          bytes += chunk.length;
          if (bytes === count * (length + 10)) resolve();
        });
        raw.socket.on("close", () => resolve());
        raw.socket.resume();
      });
      assertEquals(bytes, count * (length + 10));
      raw.reset();
    }));

  it("hangs up on a peer that says nothing, not on one that reads late", () =>
    withBystander(async (port, check) => {
      const length = 20 << 20;
      const late = await Raw.open(port);
      late.socket.pause();
      late.write(frame(2, new Uint8Array(length)));
      late.write(frame(8, ""));
      const raw = new Raw(port);
      await raw.ended;
      assertEquals(raw.received.length, 0);
      raw.socket.end();
      await check();
      let bytes = 0;
      late.socket.removeAllListeners("data").on("data", (chunk: Uint8Array) => {
        bytes += chunk.length;
      });
      late.socket.resume();
      await late.ended;
      assertEquals(bytes, 10 + length + 2);
      late.socket.end();
    }));

  it("serves one while many misbehave at once", () =>
    withBystander(async (port, check) => {
      let seed = 1;
      const random = (below: number) => {
        seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
        return (seed >>> 16) % below;
      };
      let left = 60;
      const misbehave = async (i: number) => {
        const raw = i % 3 === 0 ? new Raw(port) : await Raw.open(port);
        const bytes = i % 2 === 0
          ? pattern(random(50_000))
          : frame(1, "x".repeat(random(60_000))).subarray(0, random(60_000));
        await raw.write(bytes);
        if (random(2) === 0) raw.reset();
        else raw.socket.end();
        await raw.ended;
        raw.socket.destroy();
      };
      const all = Promise.all(
        Array.from(
          { length: left },
          (_, i) => misbehave(i).finally(() => left--),
        ),
      );
      while (left > 0) await check();
      await all;
    }));
});

describe("echo_client", () => {
  it("sends its arguments and checks the echo", async () => {
    const printed = await withServer("echo_server.ts", async (port) => {
      const messages = ["hello", "grüße 🎉", ""];
      assertEquals(
        await runExample("echo_client.ts", `${port}`, ...messages),
        {
          code: 0,
          stdout: messages.map((text) => `> ${text}\n< ${text}\n`).join(""),
          stderr: "",
        },
      );
    });
    assertMatch(printed, /^Echo server on ws:\/\/127\.0\.0\.1:\d+\/\n$/);
  });

  it("tells what failed", async () => {
    const closed = await closedPort();
    const { code, stderr } = await runExample("echo_client.ts", closed, "x");
    assertEquals(code, 1);
    assertMatch(stderr, /\S/);
    // A broadcast server echoes, too, but refuses what is no WebSocket.
    await withServer("broadcast.ts", async (port) => {
      const raw = new Raw(port);
      await raw.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await raw.ended;
      assertMatch(raw.received.toString(), /^HTTP\/1\.1 426 /);
      raw.socket.end();
    });
  });
});

describe("flood", () => {
  for (
    const [what, ...options] of [
      ["batches", "--connections=3", "--size=200"],
      ["one message at a time", "--one"],
      ["large messages", "--size=200000", "--messages=50"],
      ["compressed text", "--deflate", "--text", "--size=1024"],
    ]
  ) {
    it(`counts ${what}`, async () => {
      await withServer("echo_server.ts", async (port) => {
        const { code, stdout, stderr } = await runExample(
          "flood.ts",
          `${port}`,
          "--json",
          "--messages=1234",
          "--seconds=30",
          ...options,
        );
        assertEquals({ code, stderr }, { code: 0, stderr: "" });
        const result = JSON.parse(stdout);
        assertEquals(result.messages, result.options.messages);
        const { p50, p90, p99, max } = result.latency;
        assert(0 < p50 && p50 <= p90 && p90 <= p99 && p99 <= max, stdout);
      });
    });
  }

  it("prints for people", async () => {
    await withServer("echo_server.ts", async (port) => {
      const { stdout } = await runExample(
        "flood.ts",
        `${port}`,
        "--seconds=0.2",
        "--warmup=0",
      );
      assertMatch(
        stdout,
        /^1 x 4 x 500 messages of 125 bytes\n[\d,]+ messages\/s, [\d.]+ MB\/s each way, \d+ messages in 0\.\d+ s\nlatency of a batch: p50 [\d.]+ ms, p90 [\d.]+ ms, p99 [\d.]+ ms, max [\d.]+ ms\nthis program used \d+ % of a core\n$/,
      );
    });
  });

  it("tells what is wrong", async () => {
    const unknown = await runExample("flood.ts", "--sizes=1");
    assertEquals(unknown.code, 1);
    assertMatch(unknown.stderr, /"--sizes"/);
    const refused = await runExample("flood.ts", await closedPort());
    assertEquals(refused.code, 1);
    assertMatch(refused.stderr, /\S/);
  });

  it("speaks IPv6", async () => {
    const server = new Program(example("echo_server.ts", "0", "::1"));
    try {
      const [, port] = await server.printed(/ on ws:\/\/\[::1\]:(\d+)\/\n/);
      const { code, stderr } = await runExample(
        "flood.ts",
        port,
        "--host=::1",
        "--messages=10",
      );
      assertEquals({ code, stderr }, { code: 0, stderr: "" });
    } finally {
      await server.stop();
    }
  });

  it("can be stopped before it has begun", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => {
      sockets.push(socket.on("error", () => {}).resume());
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const connected = new Promise((resolve) =>
      silent.once("connection", resolve)
    );
    const { port } = silent.address() as AddressInfo;
    const program = new Program(
      example("flood.ts", `${port}`, "--connections=300"),
    );
    try {
      await connected;
      program.signal("SIGINT");
      const { code, stderr } = await program.ended;
      assertEquals({ code, stderr }, {
        code: 1,
        stderr: "Stopped before all connections were open\n",
      });
      assertLess(sockets.length, 300);
    } finally {
      await program.stop();
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });
});

it("servers refuse what is no port", async () => {
  for (
    const [file, ...args] of [
      ["echo_server.ts", "abc"],
      ["proxy.ts", "0", "70000"],
      ["broadcast.ts", "1.5"],
    ]
  ) {
    assertEquals(await runExample(file, ...args), {
      code: 1,
      stdout: "",
      stderr: `Expected a port from 0 to 65535, got "${args.at(-1)}"\n`,
    });
  }
});

/** A port where nobody listens. */
async function closedPort(): Promise<string> {
  let port = 0;
  await withServer("echo_server.ts", (open) => {
    port = open;
    return Promise.resolve();
  });
  return `${port}`;
}

describe("proxy", () => {
  it("passes every byte, and prints the frames", async () => {
    let printed = "";
    await withServer("echo_server.ts", async (target) => {
      printed = await withServer("proxy.ts", async (port) => {
        const client = await Client.open(port);
        for (const data of ["hello", pattern(1 << 20)]) {
          const type = typeof data === "string" ? "text" : "binary";
          const event = await client.ask(data);
          assert("data" in event);
          assertEquals(event.type, type);
          assertEquals(
            Buffer.compare(
              Buffer.from(event.data),
              Buffer.from(data),
            ),
            0,
          );
        }
        client.connection.close(4001, "bye");
        client.flush();
        assertEquals(await client.next(), {
          type: "close",
          code: 4001,
          reason: "bye",
          clean: true,
        });

        // Frames that break the rules pass, too.
        const raw = await Raw.open(port);
        await raw.write(new Uint8Array([0xb1, 0x80]));
        await raw.ended;
        assertEquals([...raw.received], [0x88, 2, 3, 234]);
        raw.socket.end();

        const plain = new Raw(port);
        await plain.write("GET /\x1b[1m HTTP/1.1\r\n\r\n");
        await plain.ended;
        assertMatch(plain.received.toString(), /^HTTP\/1\.1 400 /);
        plain.socket.end();
      }, `${target}`);
    });
    for (
      const line of [
        "#1 -> GET / HTTP/1.1",
        "#1 <- HTTP/1.1 101 Switching Protocols",
        '#1 -> text         fin      5 bytes "hello"',
        '#1 <- text         fin      5 bytes "hello"',
        `#1 -> binary       fin      1048576 bytes ${
          Buffer.from(pattern(1 << 20).subarray(0, 40)).toString("hex")
        }...`,
        '#1 <- close        fin      5 bytes 4001 "bye"',
        "#1 -> end",
        "#2 -> WS_ERR_UNEXPECTED_RSV_2_3: ",
        '#2 <- close        fin      2 bytes 1002 ""',
        "#3 -> GET /?[1m HTTP/1.1",
      ]
    ) assertStringIncludes(printed, `\n${line}`);
  });

  it("sees past interim responses", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 1");
        socket.write("01 Switching Protocols\r\n\r\n");
        socket.end(writeFrame({ opcode: 1, payload: "hello" }));
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const { port: target } = server.address() as AddressInfo;
    const printed = await withServer("proxy.ts", async (port) => {
      const raw = new Raw(port);
      await raw.write(REQUEST);
      await raw.ended;
      raw.socket.end();
    }, `${target}`);
    server.close();
    for (
      const line of [
        "#1 <- HTTP/1.1 103 Early Hints",
        "#1 <- HTTP/1.1 101 Switching Protocols",
        '#1 <- text         fin      5 bytes "hello"',
      ]
    ) assertStringIncludes(printed, `\n${line}`);
  });

  it("hangs up where nobody listens", async () => {
    const target = await closedPort();
    await withServer("proxy.ts", async (port) => {
      const raw = new Raw(port);
      await raw.ended;
      assertEquals(raw.received.length, 0);
      raw.socket.destroy();
    }, target);
  });
});

describe("broadcast", () => {
  it("sends every message to every peer", async () => {
    await withServer("broadcast.ts", async (port, program) => {
      const clients = await Promise.all(
        Array.from({ length: 5 }, () => Client.open(port)),
      );
      const [first, second, last] = clients;
      for (const data of ["hello, all 📣", "x".repeat(100_000)]) {
        first.connection.send(data);
        first.flush();
        for (const client of clients) {
          assertEquals(await client.next(), { type: "text", data });
        }
      }
      second.connection.send(encoder.encode("bytes"));
      second.flush();
      for (const client of clients) {
        const event = await client.next();
        assert(event.type === "binary");
        assertEquals(new TextDecoder().decode(event.data), "bytes");
      }
      first.destroy();
      last.connection.close(1000);
      last.flush();
      assertEquals((await last.next()).type, "close");
      program.signal("SIGINT");
      assertEquals(await second.next(), {
        type: "close",
        code: 1001,
        reason: "The server goes away",
        clean: true,
      });
      await program.ended;
    });
  });

  it("ends while peers shake hands", async () => {
    await withServer("broadcast.ts", async (port, program) => {
      const peers = Array.from({ length: 200 }, () => new Raw(port));
      await Promise.all(
        peers.map(({ socket }) =>
          new Promise((resolve) => socket.once("connect", resolve))
        ),
      );
      for (const [i, { socket }] of peers.entries()) {
        if (i === 100) program.signal("SIGINT");
        socket.on("end", () => socket.end()).write(REQUEST);
        socket.on("data", (bytes: Buffer) => {
          if (bytes.includes(Buffer.of(3, 233))) socket.destroy(); // code 1001
        });
      }
      await program.ended;
      for (const { socket } of peers) socket.destroy();
    });
  });
});
