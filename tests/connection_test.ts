/**
 * Connection: messages, control frames, closing (RFC 6455 sections 5 to 8). The shared
 * vectors in every cut, then what they do not hold.
 */

import { describe, it } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  type FrameInit,
  FrameReader,
  writeClosePayload,
  writeFrame,
} from "@wsframe/wsframe";
import {
  Connection,
  type ConnectionEvent,
  type ConnectionOptions,
} from "@wsframe/wsframe/connection";
import {
  bytesOf,
  concat,
  type Cut,
  everyCut,
  hex,
  messageCases,
  randomBytes,
  seeded,
  withTrailing,
} from "./vectors.ts";

/** Frames as a peer of `role` writes them, one behind the other. */
function frames(
  role: "client" | "server",
  ...list: FrameInit[]
): Uint8Array<ArrayBuffer> {
  return concat(list.map((frame) => writeFrame(frame, { role })));
}

/** Everything a connection says about chunks. */
function feed(
  connection: Connection,
  chunks: readonly Uint8Array[],
): ConnectionEvent[] {
  return chunks.flatMap((chunk) => [...connection.receive(chunk)]);
}

/** Of an event, what is fixed: the reason of a fault is free. */
function fixed(event: ConnectionEvent) {
  if (event.type === "close") {
    return { ...event, reason: event.clean ? event.reason : "" };
  }
  return typeof event.data === "string"
    ? event
    : { ...event, data: hex(event.data) };
}

function sent(connection: Connection, role: "client" | "server") {
  const reader = new FrameReader({
    role: role === "client" ? "server" : "client",
  });
  const list = [...reader.push(connection.takeOutput())].map((frame) => ({
    opcode: frame.opcode as number,
    payload: hex(frame.payload),
  }));
  reader.end();
  return list;
}

describe("the shared vectors", () => {
  for (const { name, source, options, ...expected } of messageCases) {
    it(`${name} (${source})`, () => {
      const input = concat(expected.chunks.map(bytesOf));
      const cuts = [
        { name: "as given", chunks: expected.chunks.map(bytesOf) },
        ...cutsOf(input),
        // The first byte of a Ping changes nothing, wherever it comes.
        ...withTrailing(input, bytesOf("89")),
      ];
      for (const cut of cuts) {
        const connection = new Connection(options);
        const events = feed(connection, cut.chunks).map(fixed);
        assertEquals<unknown>(events, expected.events, cut.name);
        if (expected.output !== undefined) {
          assertEquals(hex(connection.takeOutput()), expected.output, cut.name);
        } else {
          assertEquals(
            sent(connection, "client"),
            expected.outputFrames ?? [],
            cut.name,
          );
        }
        const closed = events.at(-1)?.type === "close";
        assertEquals(connection.state, closed ? "closed" : "open");
      }
    });
  }

  it("give the same in pieces, put together again", () => {
    for (const { name, options, chunks, events } of messageCases) {
      const input = concat(chunks.map(bytesOf));
      let whole: unknown[] | undefined;
      for (const cut of cutsOf(input)) {
        const connection = new Connection({ ...options, partial: true });
        const joined = join(feed(connection, cut.chunks)).map(fixed);
        whole ??= joined;
        assertEquals(joined, whole, `${name}, ${cut.name}`);
      }
      const isWhole = (event: object) => !("last" in event) || event.last;
      assertEquals(
        whole!.filter((event) => isWhole(event as object))
          .map((event) => ({ ...event as object, last: undefined })),
        events.map((event) => ({ ...event, last: undefined })),
        name,
      );
    }
  });
});

/**
 * Joins pieces of messages. A message stands where its last piece came; one that did
 * not end stands last, with `last: false`.
 */
function join(events: ConnectionEvent[]): ConnectionEvent[] {
  const joined: ConnectionEvent[] = [];
  let open: ConnectionEvent | null = null;
  for (const event of events) {
    if (event.type !== "text" && event.type !== "binary") {
      joined.push(event);
      continue;
    }
    if (open === null) {
      open = { ...event };
    } else if (open.type === "text" && event.type === "text") {
      open.data += event.data;
    } else if (open.type === "binary" && event.type === "binary") {
      open.data = concat([open.data, event.data]);
    } else {
      throw new Error("A piece of another kind");
    }
    open.last = event.last;
    if (!event.last) continue;
    joined.push(open);
    open = null;
  }
  if (open !== null) joined.push(open);
  return joined;
}

/** More cuts of one input than this are not tried: those of thousands of fragments. */
const MAX_CUTS = 1200;

/** `everyCut`, or as many of its cuts, evenly chosen. */
function* cutsOf(input: Uint8Array): Generator<Cut> {
  const step = Math.ceil(input.length / MAX_CUTS);
  let i = 0;
  for (const cut of everyCut(input)) {
    if (i < 2 || i % step === 0) yield cut;
    i++;
  }
}

describe("Connection", () => {
  it("speaks with another, both ways", () => {
    const client = new Connection({ role: "client" });
    const server = new Connection({ role: "server" });
    client.send("Grüße, 世界");
    client.send(new Uint8Array([1, 2, 3]));
    client.send("");
    client.ping(new Uint8Array([7]));
    assertEquals(feed(server, [client.takeOutput()]), [
      { type: "text", data: "Grüße, 世界" },
      { type: "binary", data: new Uint8Array([1, 2, 3]) },
      { type: "text", data: "" },
      { type: "ping", data: new Uint8Array([7]) },
    ]);
    server.send("b");
    server.pong();
    assertEquals(feed(client, [server.takeOutput()]), [
      { type: "pong", data: new Uint8Array([7]) },
      { type: "text", data: "b" },
      { type: "pong", data: new Uint8Array(0) },
    ]);
    assertEquals(server.takeOutput().length, 0);
  });

  it("masks with a client's key, none, or the zero key, as the writer is told", () => {
    const write = (options: Partial<ConnectionOptions>) => {
      const client = new Connection({ role: "client", ...options });
      client.send("a");
      return hex(client.takeOutput());
    };
    assertEquals(
      write({ maskKey: new Uint8Array([1, 2, 3, 4]) }),
      "81810102030460",
    );
    assertEquals(write({ disableClientMask: true }), "81810000000061");
    assert(write({}) !== write({}) || write({}) !== write({}));
  });

  it("sends fragments, with control frames between them", () => {
    const server = new Connection({ role: "server" });
    server.send("a", { fin: false });
    server.ping();
    server.send("", { fin: false });
    server.send("b");
    server.send("c", {});
    server.send(new Uint8Array([1]), { fin: false });
    server.send(new Uint8Array(0), { fin: true });
    assertEquals(
      hex(server.takeOutput()),
      "010161" + "8900" + "0000" + "800162" + "810163" + "020101" + "8000",
    );
  });

  it("refuses to change the kind of a message within it", () => {
    const server = new Connection({ role: "server" });
    server.send("a", { fin: false });
    assertThrows(() => server.send(new Uint8Array(1)), TypeError);
    server.send("b");
    server.send(new Uint8Array(1), { fin: false });
    assertThrows(() => server.send("a"), TypeError);
  });

  it("keeps a character together that two fragments share", () => {
    const server = new Connection({ role: "server" });
    const client = new Connection({ role: "client" });
    server.send("a\ud83d", { fin: false });
    server.send("\ude00\ud83d", { fin: false });
    server.send("", { fin: false });
    server.send("\ude00b");
    server.send("c\ud83d", { fin: false });
    server.send("");
    server.send("d😀", { fin: false });
    server.send("e");
    assertEquals(feed(client, [server.takeOutput()]), [
      { type: "text", data: "a😀😀b" },
      { type: "text", data: "c\ufffd" },
      { type: "text", data: "d😀e" },
    ]);
  });

  it("does not answer pings when told so", () => {
    const server = new Connection({ role: "server", autoPong: false });
    const events = feed(server, [frames("client", { opcode: 9 })]);
    assertEquals(events.length, 1);
    assertEquals(server.takeOutput().length, 0);
  });

  it("gives bytes that no later chunk changes", () => {
    const server = new Connection({ role: "server" });
    const client = new Connection({ role: "client" });
    const chunk = frames("server", {
      opcode: 2,
      payload: new Uint8Array(9).fill(1),
    });
    const [first] = feed(client, [chunk]);
    chunk.fill(0xff);
    feed(client, [
      frames("server", { opcode: 2, payload: new Uint8Array(9).fill(2) }),
    ]);
    assertEquals(first, { type: "binary", data: new Uint8Array(9).fill(1) });
    const [one] = feed(server, [
      frames("client", { opcode: 9, payload: "one" }),
    ]);
    feed(server, [frames("client", { opcode: 9, payload: "two" })]);
    assertEquals(one, { type: "ping", data: new TextEncoder().encode("one") });
  });

  it("takes memory that engines refuse to decode: shared, resizable", () => {
    const bytes = frames("server", { opcode: 1, payload: "é".repeat(40) });
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
    shared.set(bytes);
    const client = new Connection({ role: "client" });
    assertEquals(feed(client, [shared]), [{
      type: "text",
      data: "é".repeat(40),
    }]);
  });

  it("refuses wrong options", () => {
    const make = (options: unknown) => () =>
      new Connection(options as ConnectionOptions);
    for (
      const options of [
        undefined,
        null,
        {},
        { role: 1 },
        { role: "server", maxMessageLength: "1" },
        { role: "server", autoPong: 1 },
        { role: "server", partial: "no" },
        { role: "server", deflate: 1 },
        { role: "client", maskKey: new Uint8Array(4), disableClientMask: true },
      ]
    ) {
      assertThrows(make(options), TypeError);
    }
    for (
      const options of [
        { role: "proxy" },
        { role: "server", maxMessageLength: -1 },
        { role: "server", maxFragments: 1.5 },
        { role: "server", maxPayloadLength: 2 ** 53 },
        { role: "server", deflateThreshold: NaN },
        { role: "server", deflate: { serverMaxWindowBits: 7 } },
        { role: "client", maskKey: new Uint8Array(3) },
      ]
    ) {
      assertThrows(make(options), RangeError);
    }
  });

  it("refuses wrong arguments, and sends nothing then", () => {
    const server = new Connection({ role: "server" });
    for (
      const use of [
        () => server.receive("" as never),
        () => server.send(1 as never),
        () => server.send(new ArrayBuffer(1) as never),
        () => server.send("a", { fin: 1 as never }),
        () => server.send("a", { compress: "yes" as never }),
        () => server.ping("a" as never),
        () => server.close("1000" as never),
        () => server.close(1000, 1 as never),
      ]
    ) {
      assertThrows(use, TypeError);
    }
    for (
      const use of [
        () => server.ping(new Uint8Array(126)),
        () => server.pong(new Uint8Array(126)),
        () => server.close(1005),
        () => server.close(999),
        () => server.close(undefined, "why"),
        () => server.close(1000, "x".repeat(124)),
        () => server.close(1000, "é".repeat(62)),
      ]
    ) {
      assertThrows(use, RangeError);
    }
    assertEquals(server.takeOutput().length, 0);
    assertEquals(server.state, "open");
  });
});

describe("reading is lazy", () => {
  const two = () =>
    frames("client", { opcode: 1, payload: "a" }, {
      opcode: 8,
      payload: writeClosePayload(1000),
    });

  it("so that an answer goes out before the echo of a Close in the same chunk", () => {
    const server = new Connection({ role: "server" });
    for (const event of server.receive(two())) {
      if (event.type === "text") server.send("b");
    }
    assertEquals(hex(server.takeOutput()), "810162" + "880203e8");
  });

  it("and nothing is answered before it was iterated over", () => {
    const server = new Connection({ role: "server" });
    server.receive(frames("client", { opcode: 9 }));
    assertEquals(server.takeOutput().length, 0);
    // The next call works it off, and its events are not lost.
    const events = [...server.receive(new Uint8Array(0))];
    assertEquals(events.map(({ type }) => type), ["ping"]);
    assertEquals(hex(server.takeOutput()), "8a00");
  });

  it("and goes on where a loop was left", () => {
    const server = new Connection({ role: "server" });
    for (const event of server.receive(two())) {
      assertEquals(event.type, "text");
      break;
    }
    assertEquals(server.state, "open");
    const rest = [...server.receive(new Uint8Array(0))];
    assertEquals(rest.map(({ type }) => type), ["close"]);
  });

  it("and the events of several chunks come in order", () => {
    const server = new Connection({ role: "server" });
    const chunks = Array.from(
      { length: 5 },
      (_, i) => frames("client", { opcode: 1, payload: `${i}` }),
    );
    for (const chunk of chunks) {
      server.receive(chunk);
      // A chunk is free after the next call.
      chunks[chunks.indexOf(chunk) - 1]?.fill(0);
    }
    const events = [...server.receiveEnd()];
    assertEquals(
      events.map((event) => event.type === "text" ? event.data : event.type),
      ["0", "1", "2", "3", "4", "close"],
    );
  });

  it("also when a chunk is received while another is iterated over", () => {
    const server = new Connection({ role: "server" });
    const texts: string[] = [];
    let more = true;
    const chunk = (text: string) =>
      frames("client", { opcode: 1, payload: text }, {
        opcode: 1,
        payload: text + "'",
      });
    for (const event of server.receive(chunk("a"))) {
      if (event.type === "text") texts.push(event.data);
      if (more) server.receive(chunk("b"));
      more = false;
    }
    assertEquals(texts, ["a", "a'", "b", "b'"]);
  });
});

describe("closing", () => {
  const close = (code?: number, reason?: string) =>
    frames("client", { opcode: 8, payload: writeClosePayload(code, reason) });

  it("begun by us: the peer may send on, its Close ends it", () => {
    const server = new Connection({ role: "server" });
    server.close(1001, "restart");
    assertEquals(server.state, "closing");
    assertEquals(
      hex(server.takeOutput()),
      "880903e9" + hex(new TextEncoder().encode("restart")),
    );
    const events = feed(server, [
      frames("client", { opcode: 1, payload: "late" }, { opcode: 9 }),
      close(1001, "ok"),
    ]);
    assertEquals(events, [
      { type: "text", data: "late" },
      { type: "ping", data: new Uint8Array(0) },
      { type: "close", code: 1001, reason: "ok", clean: true },
    ]);
    assertEquals(server.state, "closed");
    // Nothing after a Close: no Pong, no second Close.
    assertEquals(server.takeOutput().length, 0);
  });

  it("begun by the peer: echoed with code and reason", () => {
    const server = new Connection({ role: "server" });
    assertEquals(feed(server, [close(4000, "bye")]), [
      { type: "close", code: 4000, reason: "bye", clean: true },
    ]);
    assertEquals(hex(server.takeOutput()), "88050fa0627965");
  });

  it("begun by both at once: one Close each", () => {
    const server = new Connection({ role: "server" });
    const client = new Connection({ role: "client" });
    server.close(1000);
    client.close(1001);
    const fromServer = server.takeOutput();
    const fromClient = client.takeOutput();
    assertEquals(feed(server, [fromClient]).map(fixed), [
      { type: "close", code: 1001, reason: "", clean: true },
    ]);
    assertEquals(feed(client, [fromServer]).map(fixed), [
      { type: "close", code: 1000, reason: "", clean: true },
    ]);
    assertEquals(server.takeOutput().length + client.takeOutput().length, 0);
  });

  it("nothing can be sent after it, and a second close does nothing", () => {
    const uses = (connection: Connection) => [
      () => connection.send("a"),
      () => connection.send("a", { fin: false }),
      () => connection.ping(),
      () => connection.pong(),
    ];
    const closing = new Connection({ role: "server" });
    closing.close();
    assertEquals(hex(closing.takeOutput()), "8800");
    for (const use of uses(closing)) assertThrows(use, Error, "closing");
    closing.close(1000);
    assertEquals(closing.takeOutput().length, 0);
    const closed = new Connection({ role: "server" });
    feed(closed, [close()]);
    for (const use of uses(closed)) assertThrows(use, Error, "closed");
    closed.close();
    assertEquals(hex(closed.takeOutput()), "8800");
  });

  it("after a fault: one Close with its code, then nothing is read", () => {
    const server = new Connection({ role: "server" });
    const [event] = feed(server, [bytesOf("8100"), close(1000)]);
    assert(event.type === "close" && !event.clean && event.code === 1002);
    assert(event.reason.includes("not masked"), event.reason);
    assertEquals(hex(server.takeOutput()), "880203ea");
    assertEquals(server.state, "closed");
    assertEquals([...server.receiveEnd()], []);
  });

  it("after a fault while closing: no second Close", () => {
    const server = new Connection({ role: "server" });
    server.close(1000);
    server.takeOutput();
    assertEquals(feed(server, [bytesOf("8100")]).map(fixed), [
      { type: "close", code: 1002, reason: "", clean: false },
    ]);
    assertEquals(server.takeOutput().length, 0);
  });

  it("a Close is judged as its bytes arrive", () => {
    for (
      const [bytes, code] of [["880403ed", 1002], ["880403e8ff", 1007]] as const
    ) {
      const client = new Connection({ role: "client" });
      assertEquals(feed(client, [bytesOf(bytes)]).map(fixed), [
        { type: "close", code, reason: "", clean: false },
      ]);
    }
    const client = new Connection({ role: "client" });
    assertEquals(feed(client, [bytesOf("880503e8e282")]), []);
  });
});

describe("an abrupt end gives one close event with 1006", () => {
  const states: Record<string, (server: Connection) => void> = {
    "at once": () => {},
    "after a message": (server) =>
      feed(server, [frames("client", { opcode: 1 })]),
    "inside a header": (server) => feed(server, [bytesOf("81")]),
    "inside a payload": (server) => feed(server, [bytesOf("818501020304")]),
    "inside a control frame": (server) =>
      feed(server, [bytesOf("898501020304aa")]),
    "inside a Close": (server) => feed(server, [bytesOf("888400000000")]),
    "inside a message": (server) =>
      feed(server, [frames("client", { opcode: 1, fin: false })]),
    "while closing": (server) => server.close(1000),
    "with output that was not taken": (server) => server.send("a"),
  };
  for (const [name, prepare] of Object.entries(states)) {
    it(name, () => {
      const server = new Connection({ role: "server" });
      prepare(server);
      assertEquals([...server.receiveEnd()].map(fixed), [
        { type: "close", code: 1006, reason: "", clean: false },
      ]);
      assertEquals(server.state, "closed");
      assertEquals([...server.receiveEnd()], []);
      assertEquals([...server.receive(bytesOf("8100"))], []);
      assertThrows(() => server.send("a"), Error, "closed");
    });
  }

  it("and none after a Close", () => {
    const server = new Connection({ role: "server" });
    feed(server, [frames("client", { opcode: 8 })]);
    assertEquals([...server.receiveEnd()], []);
  });
});

describe("limits", () => {
  it("speak on the header, before the payload", () => {
    const client = new Connection({
      role: "client",
      maxMessageLength: 100_000,
      maxPayloadLength: 1_000_000,
    });
    // 100 001 bytes announced, none there.
    const [event] = feed(client, [bytesOf("827f00000000000186a1")]);
    assert(event.type === "close" && event.code === 1009);
  });

  it("count lengths without overflow", () => {
    const most = Number.MAX_SAFE_INTEGER;
    const client = new Connection({
      role: "client",
      maxMessageLength: most,
      maxPayloadLength: most,
    });
    const chunks = ["020161", "007f001fffffffffffff"].map(bytesOf);
    const [event] = feed(client, chunks);
    assert(event.type === "close" && event.code === 1009);
    const whole = new Connection({
      role: "client",
      maxMessageLength: most,
      maxPayloadLength: most,
    });
    assertEquals(feed(whole, [bytesOf("827f001fffffffffffff00")]), []);
  });

  it("of 0 allow empty messages alone", () => {
    const client = new Connection({ role: "client", maxMessageLength: 0 });
    const types = feed(client, [
      bytesOf("8100" + "02008000" + "890161" + "810161"),
    ])
      .map(({ type }) => type);
    assertEquals(types, ["text", "binary", "ping", "close"]);
    const none = new Connection({ role: "client", maxFragments: 0 });
    const [event] = feed(none, [bytesOf("8100")]);
    assert(event.type === "close" && event.code === 1008);
  });

  it("let 16384 fragments of nothing pass quickly, and 16384 of one byte become one message", () => {
    const server = new Connection({ role: "client" });
    const one = bytesOf({ repeat: "000161", times: 16382 });
    const [event] = feed(server, [bytesOf("020161"), one, bytesOf("800161")]);
    assert(event.type === "binary");
    assertEquals(event.data, new Uint8Array(16384).fill(0x61));
    assertEquals(event.data.buffer.byteLength <= 4 * 16384, true);
  });
});

describe("properties", () => {
  const seed = Number(process.env.WSFRAME_SEED ?? 20261130);

  /** A stream of messages, fragmented and interleaved at random, and what it holds. */
  function traffic(
    random: (below: number) => number,
    role: "client" | "server",
  ) {
    const list: FrameInit[] = [];
    const events: ReturnType<typeof fixed>[] = [];
    const control = () => {
      const payload = randomBytes(random(126), random);
      const ping = random(2) === 0;
      list.push({ opcode: ping ? 9 : 10, payload });
      events.push({ type: ping ? "ping" : "pong", data: hex(payload) });
    };
    for (let message = 0; message < 20; message++) {
      const text = random(2) === 0;
      const size = [0, 1, 30, 125, 126, 300, 70_000][random(7)];
      const string = Array.from(
        { length: size },
        () => ["a", "é", "€", "😀", "\0", "\ufeff"][random(6)],
      ).join("");
      const bytes = text
        ? new TextEncoder().encode(string)
        : randomBytes(size, random);
      const cuts = Array.from(
        { length: random(4) },
        () => random(bytes.length + 1),
      )
        .sort((a, b) => a - b);
      const ends = [...cuts, bytes.length];
      ends.forEach((end, i) => {
        list.push({
          opcode: i === 0 ? (text ? 1 : 2) : 0,
          fin: i === ends.length - 1,
          payload: bytes.subarray(i === 0 ? 0 : ends[i - 1], end),
        });
        while (i < ends.length - 1 && random(3) === 0) control();
      });
      events.push(
        text
          ? { type: "text", data: string }
          : { type: "binary", data: hex(bytes) },
      );
      if (random(3) === 0) control();
    }
    return { bytes: frames(role, ...list), events };
  }

  function chunksOf(
    bytes: Uint8Array,
    random: (below: number) => number,
  ): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      const length = 1 + random([3, 100, 5000, 200_000][random(4)]);
      chunks.push(bytes.slice(at, at + length));
      at += length;
    }
    return chunks;
  }

  for (const role of ["client", "server"] as const) {
    it(`of any traffic from a ${role}, however it is cut (seed ${seed})`, () => {
      for (let run = 0; run < 15; run++) {
        const random = seeded(seed + run);
        const { bytes, events } = traffic(random, role);
        const peer = role === "client" ? "server" : "client";
        for (const partial of [false, true]) {
          const connection = new Connection({ role: peer, partial });
          const got = feed(connection, chunksOf(bytes, random));
          const joined = (partial ? join(got) : got).map((event) => {
            if ("last" in event) delete event.last;
            return fixed(event);
          });
          assertEquals(joined, events, `run ${run}`);
          assertEquals(connection.state, "open");
        }
      }
    });
  }

  it("of any bytes: never an exception, one close event at most, the same for every cut", () => {
    const byte = fc.oneof(
      fc.constantFrom(
        0x81,
        0x82,
        0x01,
        0x00,
        0x80,
        0x88,
        0x89,
        0xc1,
        0x7e,
        0x7f,
        0xff,
        0xc3,
        0xa9,
      ),
      fc.integer({ min: 0, max: 255 }),
    );
    const input = fc.array(byte, { maxLength: 40 }).map((list) =>
      Uint8Array.from(list)
    );
    const options = fc.record({
      role: fc.constantFrom("client" as const, "server" as const),
      deflate: fc.boolean(),
      maxMessageLength: fc.constantFrom(3, 1000),
      maxFragments: fc.constantFrom(2, 100),
    });
    fc.assert(
      fc.property(input, options, (bytes, options) => {
        const judge = (chunks: Uint8Array[]) => {
          const connection = new Connection({
            ...options,
            maskKey: options.role === "client" ? new Uint8Array(4) : undefined,
          });
          const events = feed(connection, chunks).concat([
            ...connection.receiveEnd(),
          ]);
          const closes = events.filter(({ type }) => type === "close");
          assertEquals(closes.length, 1);
          assertEquals(events.at(-1), closes[0]);
          return { events, output: hex(connection.takeOutput()) };
        };
        assertEquals(
          judge(Array.from(bytes, (byte) => Uint8Array.of(byte))),
          judge([bytes]),
        );
      }),
      { seed, numRuns: 2000 },
    );
  });

  it("tells the end even when a chunk was taken away before it was read", () => {
    const connection = new Connection({ role: "client" });
    const chunk = bytesOf("810161".repeat(3));
    const events = connection.receive(chunk);
    structuredClone(chunk, { transfer: [chunk.buffer] });
    assertThrows(() => [...events], TypeError, "shorter");
    assertEquals<unknown>(
      [...connection.receiveEnd()].map(({ type }) => type),
      ["close"],
    );
    assertEquals(connection.state, "closed");
  });

  it("ends when it lost a piece of a message, and hands out no rest of it", () => {
    const server = new Connection({ role: "server", inPlace: true });
    const client = new Connection({ role: "client" });
    const frames = [1, 2, 3].map((byte) => {
      if (byte === 2) client.ping();
      client.send(new Uint8Array([byte, byte]), { fin: byte === 3 });
      return client.takeOutput();
    });
    assertEquals([...server.receive(frames[0])], []);
    const events = server.receive(frames[1])[Symbol.iterator]();
    assertEquals(events.next().value?.type, "ping");
    structuredClone(0, { transfer: [frames[1].buffer] });
    assertThrows(() => events.next(), TypeError, "shorter");
    assertEquals(server.state, "closed");
    const [close, ...more] = server.receive(frames[2]);
    assert(close.type === "close" && !close.clean);
    assertEquals(close.code, 1011);
    assertEquals(more, []);
    assertThrows(() => server.send("x"), Error, "closed");
    for (const event of client.receive(server.takeOutput())) {
      if (event.type === "close") assertEquals(event.code, 1011);
    }
    assertEquals(client.state, "closed");
  });

  it("ends when a fragment cannot be sent, since the peer would miss it", () => {
    const client = new Connection({ role: "client" });
    const server = new Connection({ role: "server" });
    client.send("a", { fin: false });
    class Broken extends Uint8Array {
      override get length(): number {
        throw new RangeError("no memory");
      }
    }
    client.send("b");
    client.send(new Uint8Array(1), { fin: false });
    const broken = new Broken(1);
    assertThrows(() => client.send(broken), RangeError, "no memory");
    assertEquals(client.state, "closed");
    const codes = [client.receive(new Uint8Array(0)), [
      ...server.receive(client.takeOutput()),
    ]].map((events) =>
      [...events].flatMap((event) => event.type === "close" ? event.code : [])
    );
    assertEquals(codes, [[1011], [1011]]);
  });

  it("keeps many events that nobody asked for, in order", () => {
    const connection = new Connection({ role: "client" });
    const pings = Array.from({ length: 100_000 }, () => "8a00").join("");
    connection.receive(bytesOf("810161" + pings));
    const types = Array.from(
      connection.receive(bytesOf("810162")),
      (event) => event.type === "text" ? event.data : event.type,
    );
    assertEquals(types.length, 100_002);
    assertEquals([types[0], types[1], types.at(-1)], ["a", "pong", "b"]);
  });
});
