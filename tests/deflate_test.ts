/**
 * permessage-deflate (RFC 7692) over Connection. This file imports `./connection` alone,
 * which must do without the main export.
 */

import { describe, it } from "node:test";
import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  Connection,
  type ConnectionEvent,
  type ConnectionOptions,
  type DeflateParameters,
} from "@wsframe/wsframe/connection";
import { bytesOf, concat, hex, randomBytes, seeded } from "./vectors.ts";

const SEED = Number(process.env.WSFRAME_SEED ?? 20261130);

function feed(
  connection: Connection,
  ...chunks: Uint8Array[]
): ConnectionEvent[] {
  return chunks.flatMap((chunk) => [...connection.receive(chunk)]);
}

/** Client and server with the same parameters, everything compressed. */
function pair(
  deflate: Partial<DeflateParameters>,
  options: Partial<ConnectionOptions> = {},
): { client: Connection; server: Connection } {
  const common = { deflate, deflateThreshold: 0, ...options };
  return {
    client: new Connection({ ...common, role: "client" }),
    server: new Connection({ ...common, role: "server" }),
  };
}

/** A frame of a server, its payload given. */
function frame(first: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  const header = length < 126
    ? [first, length]
    : length < 65536
    ? [first, 126, length >> 8, length & 255]
    : [first, 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((n) => length >> n & 255)];
  return concat([Uint8Array.from(header), payload]);
}

/** What a server sends: the frames' first bytes and payloads. */
function sentBy(server: Connection): { first: number; payload: Uint8Array }[] {
  const bytes = server.takeOutput();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const frames = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at];
    let length = bytes[at + 1];
    at += 2;
    if (length === 126) {
      length = view.getUint16(at);
      at += 2;
    } else if (length === 127) {
      length = Number(view.getBigUint64(at));
      at += 8;
    }
    frames.push({ first, payload: bytes.slice(at, at + length) });
    at += length;
  }
  return frames;
}

/** Compressed by another zlib, as one message. */
function compressed(data: Uint8Array, windowBits = 15): Uint8Array {
  const bytes = deflateRawSync(data, {
    windowBits,
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  return bytes.subarray(0, bytes.length - 4);
}

/** Of 1 to 4 bytes. */
const CHARACTERS = ["a", "é", "€", "😀"];

/** Texts of several sizes that compress well, and that share much with each other. */
function texts(random: (below: number) => number): string[] {
  return [0, 1, 2, 30, 1000, 5000, 70_000, 200_000].map((size) => {
    let text = "";
    while (text.length < size) {
      text += `{"id":${random(1000)},"name":"${CHARACTERS[random(4)]}"}`;
    }
    return text.slice(0, size).replace(/[\ud800-\udbff]$/, "");
  });
}

describe("permessage-deflate", () => {
  for (const serverMaxWindowBits of [8, 9, 12, 15]) {
    for (const noContextTakeover of [false, true]) {
      const name = `${serverMaxWindowBits} window bits, ` +
        `${noContextTakeover ? "no " : ""}context takeover`;
      it(`passes messages both ways with ${name}`, () => {
        const random = seeded(SEED);
        const { client, server } = pair({
          serverMaxWindowBits,
          clientMaxWindowBits: serverMaxWindowBits,
          serverNoContextTakeover: noContextTakeover,
          clientNoContextTakeover: noContextTakeover,
        });
        for (const [from, to] of [[client, server], [server, client]]) {
          for (const text of [...texts(random), ...texts(random)]) {
            from.send(text);
            assertEquals(feed(to, from.takeOutput()), [{
              type: "text",
              data: text,
            }]);
          }
          const bytes = randomBytes(100_000, random);
          from.send(bytes);
          assertEquals(feed(to, from.takeOutput()), [{
            type: "binary",
            data: bytes,
          }]);
        }
      });
    }
  }

  it("keeps the window between messages, or does not", () => {
    const lengths = (serverNoContextTakeover: boolean) => {
      const { server } = pair({ serverNoContextTakeover });
      const text = texts(seeded(SEED))[4];
      server.send(text);
      server.send(text);
      return sentBy(server).map(({ payload }) => payload.length);
    };
    const [first, second] = lengths(false);
    assert(second < first / 5, `${second} of ${first} bytes`);
    const [alone, again] = lengths(true);
    assertEquals(alone, again);
  });

  it("never reaches back farther than the window", () => {
    // Inflated in small steps, so that zlib has nothing but its own window.
    for (const bits of [8, 9, 10]) {
      const { server } = pair({ serverMaxWindowBits: bits });
      const text = texts(seeded(SEED))[5];
      server.send(text);
      const [{ payload }] = sentBy(server);
      assert(maxDistance(payload) <= 2 ** bits, `${maxDistance(payload)}`);
      assert(
        maxDistance(payload) > 2 ** (bits - 1) - 262,
        "It does reach back",
      );
    }
  });

  it("marks the first fragment only, and ends the last without the tail", () => {
    const { client, server } = pair({});
    server.send("Hel", { fin: false });
    server.send("", { fin: false });
    server.ping();
    server.send("lo", { fin: false });
    server.send("");
    server.send("");
    const frames = sentBy(server);
    assertEquals(frames.map(({ first }) => first), [
      0x41,
      0,
      0x89,
      0,
      0x80,
      0xc1,
    ]);
    assertEquals(hex(frames[0].payload.slice(-4)), "0000ffff");
    assertEquals(hex(frames[1].payload), "");
    // RFC 7692 section 7.2.3.6: an empty message is one byte of 0.
    assertEquals(hex(frames[4].payload), "00");
    assertEquals(hex(frames[5].payload), "00");
    const bytes = concat(
      frames.map(({ first, payload }) => frame(first, payload)),
    );
    assertEquals(feed(client, bytes), [
      { type: "ping", data: new Uint8Array(0) },
      { type: "text", data: "Hello" },
      { type: "text", data: "" },
    ]);
  });

  it("leaves short messages as they are, unless told", () => {
    const first = (
      send: (server: Connection) => void,
      options: Partial<ConnectionOptions> = {},
    ) => {
      const { server } = pair({}, { deflateThreshold: undefined, ...options });
      send(server);
      return sentBy(server)[0].first;
    };
    assertEquals(first((server) => server.send("x".repeat(1023))), 0x81);
    assertEquals(first((server) => server.send("x".repeat(1024))), 0xc1);
    assertEquals(first((server) => server.send(new Uint8Array(1023))), 0x82);
    assertEquals(first((server) => server.send(new Uint8Array(1024))), 0xc2);
    // Bytes count, not UTF-16 units.
    assertEquals(first((server) => server.send("€".repeat(341))), 0x81);
    assertEquals(first((server) => server.send("€".repeat(342))), 0xc1);
    assertEquals(first((server) => server.send("x", { compress: true })), 0xc1);
    assertEquals(first((server) => server.send("x", { fin: false })), 0x41);
    assertEquals(
      first((server) => server.send("x", { fin: false, compress: false })),
      0x01,
    );
    assertEquals(
      first((server) => server.send("x".repeat(2000), { compress: false })),
      0x81,
    );
    assertEquals(
      first((server) => server.send("xy"), { deflateThreshold: 2 }),
      0xc1,
    );
    const plain = new Connection({ role: "server" });
    plain.send("x".repeat(2000), { compress: true });
    assertEquals(sentBy(plain)[0].first, 0x81);
  });

  it("reads what another zlib wrote, with context takeover", () => {
    const client = new Connection({ role: "client", deflate: {} });
    const text = texts(seeded(SEED))[4];
    const data = new TextEncoder().encode(text);
    const first = compressed(data);
    const second = deflateRawSync(data, {
      dictionary: data,
      finishFlush: constants.Z_SYNC_FLUSH,
    }).subarray(0, -4);
    assertEquals(feed(client, frame(0xc1, first), frame(0xc1, second)), [
      { type: "text", data: text },
      { type: "text", data: text },
    ]);
  });

  it("writes what another zlib reads", () => {
    const { server } = pair({ serverNoContextTakeover: true });
    for (const text of texts(seeded(SEED))) {
      server.send(text);
      const [{ payload }] = sentBy(server);
      const bytes = inflateRawSync(concat([payload, bytesOf("0000ffff")]), {
        finishFlush: constants.Z_SYNC_FLUSH,
      });
      assertEquals(new TextDecoder().decode(bytes), text);
    }
  });

  it("forgets the window of a peer that does not keep it", () => {
    const client = new Connection({
      role: "client",
      deflate: { serverNoContextTakeover: true },
    });
    // RFC 7692 section 7.2.3.2: the second "Hello" points into the first.
    const [one, two] = feed(
      client,
      bytesOf("c107f248cdc9c90700" + "c105f200110000"),
    );
    assertEquals(one, { type: "text", data: "Hello" });
    assert(two.type === "close" && two.code === 1007);
  });

  it("shares no window between connections", () => {
    const options = {
      role: "client",
      deflate: { serverNoContextTakeover: true },
    } as const;
    const [one, two, three] = Array.from(
      { length: 3 },
      () => new Connection(options),
    );
    const hello = bytesOf("c107f248cdc9c90700");
    const half = bytesOf("4103f248cd");
    assertEquals(feed(one, hello).length, 1);
    // Two messages under way at a time, and one that is never ended.
    assertEquals(feed(two, half), []);
    assertEquals(feed(three, half), []);
    assertEquals(feed(one, hello).length, 1);
    assertEquals(feed(two, bytesOf("8004c9c90700")), [
      { type: "text", data: "Hello" },
    ]);
    const [event] = feed(one, bytesOf("c105f200110000"));
    assert(event.type === "close" && event.code === 1007);
    assertEquals(feed(two, hello).length, 1);
  });

  it("goes on after final blocks, with and without the byte behind them", () => {
    const client = new Connection({ role: "client", deflate: {} });
    const hello: ConnectionEvent = { type: "text", data: "Hello" };
    const final = "f348cdc9c90700";
    assertEquals(
      feed(
        client,
        bytesOf(`c108${final}00` + `c107${final}`),
        // A final block inside a message, then another one.
        bytesOf(`c10e${final}${final}`),
        // And the window is still there.
        bytesOf("c105f200110000"),
        // The final block ends the first fragment.
        bytesOf(`4107${final}` + "8000" + `4107${final}` + "800100"),
      ),
      [hello, hello, { type: "text", data: "HelloHello" }, hello, hello, hello],
    );
  });

  it("goes on after a final block that ends a fragment", () => {
    const client = new Connection({ role: "client", deflate: {} });
    const a = bytesOf("4b0400"); // "a" in a final block
    // "a" in a block that is not, and the start of an empty one
    const rest = bytesOf("4a0400");
    const parts = [frame(0x42, a), frame(0x80, rest)];
    const both: ConnectionEvent = { type: "binary", data: bytesOf("6161") };
    assertEquals(feed(client, ...parts, ...parts), [both, both]);
    // Without that start, the message ends inside of a block.
    const [event] = feed(client, parts[0], frame(0x80, rest.subarray(0, 2)));
    assert(event.type === "close" && event.code === 1007);
  });

  it("reads streams of all kinds behind each other, however they are cut", () => {
    const random = seeded(SEED);
    const data = new TextEncoder().encode(texts(random)[4].slice(0, 200));
    const streams = [
      { level: 0 },
      { strategy: constants.Z_FIXED },
      { strategy: constants.Z_HUFFMAN_ONLY },
      { level: 9 },
    ].map((options) => deflateRawSync(data, options));
    for (const serverNoContextTakeover of [false, true]) {
      const client = new Connection({
        role: "client",
        deflate: { serverNoContextTakeover },
      });
      const bytes = frame(0xc2, concat([...streams, streams[3]]));
      for (let cut = 0; cut <= bytes.length; cut++) {
        const chunks = [bytes.subarray(0, cut), bytes.subarray(cut)];
        assertEquals(feed(client, ...chunks), [
          { type: "binary", data: concat(new Array(5).fill(data)) },
        ], `cut at ${cut}`);
      }
    }
  });

  it("makes no tables for final blocks, nor for messages", () => {
    const client = new Connection({
      role: "client",
      deflate: { serverNoContextTakeover: true },
    });
    const hello = bytesOf("c107f248cdc9c90700");
    feed(client, hello); // which makes what is kept
    const { Int32Array } = globalThis;
    let made = 0;
    class Counted extends Int32Array {
      constructor(length: number) {
        super(length);
        made++;
      }
    }
    globalThis.Int32Array = Counted as unknown as Int32ArrayConstructor;
    try {
      // Empty final blocks of 2 bytes each.
      const payload = new Uint8Array(1000).map((_, i) => i % 2 === 0 ? 3 : 0);
      const events = feed(client, frame(0xc2, payload), hello, hello);
      assertEquals(events.length, 3);
    } finally {
      globalThis.Int32Array = Int32Array;
    }
    assertEquals(made, 0);
  });

  it("refuses what reaches back farther than the window, however it is cut", () => {
    const random = seeded(SEED);
    for (const bits of [8, 9, 10]) {
      for (const serverNoContextTakeover of [false, true]) {
        const deflate = {
          serverMaxWindowBits: bits,
          serverNoContextTakeover,
        };
        for (const distance of [2 ** bits, 2 ** bits + 1]) {
          const part = randomBytes(distance, random);
          const data = concat([part, part]);
          const bytes = frame(0xc2, compressed(data));
          for (let cut = 0; cut <= bytes.length; cut++) {
            const client = new Connection({ role: "client", deflate });
            // An inflater that is used again keeps the limit.
            feed(client, bytesOf("c107f248cdc9c90700"));
            const chunks = [bytes.subarray(0, cut), bytes.subarray(cut)];
            const [event] = feed(client, ...chunks);
            if (distance <= 2 ** bits) {
              assertEquals(event, { type: "binary", data });
            } else {
              assert(event.type === "close" && event.code === 1007);
            }
          }
        }
      }
    }
  });

  it("refuses that across messages, too", () => {
    for (const size of [512, 513]) {
      const server = new Connection({ role: "server", deflate: true });
      const client = new Connection({
        role: "client",
        deflate: { serverMaxWindowBits: 9 },
      });
      const part = randomBytes(size, seeded(SEED));
      for (let i = 0; i < 2; i++) server.send(part, { compress: true });
      const codes = feed(client, server.takeOutput()).map((event) =>
        event.type === "close" && event.code
      );
      assertEquals(codes, [false, size <= 512 ? false : 1007]);
    }
  });

  for (
    const [name, payload] of [
      ["a block type that is not there", "07"],
      ["a stored block whose lengths differ", "000500faf048656c6c6f00"],
      ["a distance before the start", "f200110000"],
      ["data that stops inside a block", "f248cd"],
      ["data that stops inside a stored block", "000500faff4865"],
      ["no data at all", ""],
    ]
  ) {
    it(`answers ${name} with 1007`, () => {
      for (const partial of [false, true]) {
        const client = new Connection({ role: "client", deflate: {}, partial });
        const events = feed(client, frame(0xc2, bytesOf(payload)));
        const event = events.at(-1)!;
        assert(
          event.type === "close" && event.code === 1007,
          JSON.stringify(event),
        );
        assert(!event.clean);
      }
    });
  }

  it("stops a bomb at the limit", () => {
    const data = new Uint8Array(50_000_000);
    const bomb = compressed(data);
    assert(bomb.length < data.length / 1000);
    const limit = 100_000;
    const options = {
      role: "client",
      deflate: {},
      maxMessageLength: limit,
    } as const;
    const whole = feed(new Connection(options), frame(0xc2, bomb));
    assertEquals(whole.map((event) => event.type === "close" && event.code), [
      1009,
    ]);
    // In pieces: what fits is handed out, and not one byte more.
    const pieces = feed(
      new Connection({ ...options, partial: true }),
      ...Array.from(frame(0xc2, bomb), (byte) => Uint8Array.of(byte)).slice(
        0,
        500,
      ),
    );
    let length = 0;
    for (const event of pieces) {
      if (event.type === "binary") length += event.data.length;
    }
    assertEquals(length, limit);
    assert(pieces.at(-1)!.type === "close");
    // And at the limit itself it passes.
    const fits = { ...options, maxMessageLength: data.length };
    const [event] = feed(new Connection(fits), frame(0xc2, bomb));
    assert(event.type === "binary" && event.data.length === data.length);
  });

  it("judges messages as received and as inflated", () => {
    const judge = (data: Uint8Array, maxMessageLength: number) => {
      const { server } = pair({});
      server.send(data);
      const [{ first, payload }] = sentBy(server);
      const options = {
        role: "client",
        deflate: {},
        maxMessageLength,
      } as const;
      const [event] = feed(new Connection(options), frame(first, payload));
      const result = event.type === "close" ? event.code : event.data;
      return { length: payload.length, result };
    };
    for (const length of [1, 1000, 65536]) {
      const data = randomBytes(length, seeded(SEED));
      const received = judge(data, 100_000).length;
      assert(received > length, "It does not compress");
      assertEquals(judge(data, received).result, data);
      assertEquals(judge(data, received - 1).result, 1009);
    }
    const data = new Uint8Array(1000);
    assertEquals(judge(data, 1000).result, data);
    assertEquals(judge(data, 999).result, 1009);
  });

  it("inflates to every length about 64 KiB", () => {
    for (const length of [65535, 65536, 65537, 131072, 196608]) {
      const random = randomBytes(length, seeded(SEED));
      for (const data of [new Uint8Array(length), random]) {
        for (const payload of [compressed(data), deflateRawSync(data)]) {
          for (const partial of [false, true]) {
            const client = new Connection({
              role: "client",
              deflate: {},
              partial,
            });
            const pieces = feed(client, frame(0xc2, payload)).map((event) => {
              assert(event.type === "binary");
              return event.data;
            });
            assertEquals(concat(pieces), data);
          }
        }
      }
    }
  });

  it("hands out pieces of 64 KiB at most, as they are asked for", () => {
    const text = "€".repeat(1_000_000);
    const bytes = frame(0xc1, compressed(new TextEncoder().encode(text)));
    const client = new Connection({
      role: "client",
      deflate: {},
      partial: true,
    });
    const encoder = new TextEncoder();
    const lasts: (boolean | undefined)[] = [];
    let joined = "";
    const take = (event: ConnectionEvent) => {
      assert(event.type === "text");
      // Of a character 3 bytes may come from the piece before.
      assert(encoder.encode(event.data).length <= 65536 + 3);
      joined += event.data;
      lasts.push(event.last);
    };
    // A loop that is left, one that goes on, and what the next call works off.
    const half = bytes.length >> 1;
    for (const event of client.receive(bytes.subarray(0, half))) {
      take(event);
      break;
    }
    for (const event of client.receive(bytes.subarray(half))) {
      take(event);
      if (lasts.length === 3) break;
    }
    feed(client, bytesOf("8900")).slice(0, -1).forEach(take);
    assertEquals(joined, text);
    assertEquals(lasts.pop(), true);
    assert(!lasts.includes(true));
  });

  it("says so when a chunk is taken away between two pieces", () => {
    const bytes = frame(0xc2, compressed(new Uint8Array(1_000_000)));
    const client = new Connection({
      role: "client",
      deflate: {},
      partial: true,
    });
    const events = client.receive(bytes)[Symbol.iterator]();
    assertEquals(events.next().value?.type, "binary");
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    assertThrows(() => events.next(), TypeError, "became shorter");
    const { value } = events.next();
    assert(value?.type === "close" && value.code === 1011);
  });

  it("hands out pieces that make the message, characters kept whole", () => {
    const { client, server } = pair({}, { partial: true });
    const text = texts(seeded(SEED))[7];
    server.send(text);
    const bytes = server.takeOutput();
    let joined = "";
    for (let at = 0; at < bytes.length; at += 100) {
      for (const event of feed(client, bytes.subarray(at, at + 100))) {
        assert(event.type === "text");
        assert(!/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(event.data));
        joined += event.data;
        assertEquals(event.last, at + 100 >= bytes.length);
      }
    }
    assertEquals(joined, text);
  });

  it("survives any bytes, and says the same for every cut of them", () => {
    const random = seeded(SEED);
    const base = compressed(new TextEncoder().encode(texts(random)[4]));
    for (let run = 0; run < 300; run++) {
      const payload = base.slice(0, 1 + random(base.length));
      for (let i = random(4); i > 0; i--) {
        payload[random(payload.length)] = random(256);
      }
      const bytes = frame(0xc1, payload);
      const deflate = { serverMaxWindowBits: 8 + random(8) };
      const judge = (partial: boolean, ...chunks: Uint8Array[]) => {
        const client = new Connection({
          role: "client",
          deflate,
          partial,
          maxMessageLength: 5000,
        });
        let text = "";
        let code = 0;
        for (const event of feed(client, ...chunks)) {
          if (event.type === "close") code = event.code;
          else if (event.type === "text") text += event.data;
        }
        return { text, code };
      };
      const cut = random(bytes.length);
      const chunks = [bytes.subarray(0, cut), bytes.subarray(cut)];
      for (const partial of [false, true]) {
        const whole = judge(partial, bytes);
        assert([0, 1007, 1009].includes(whole.code));
        assertEquals(judge(partial, ...chunks), whole);
        const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
        assertEquals(judge(partial, ...single), whole);
      }
    }
  });
});

/**
 * The farthest that matches of a message of fixed and dynamic blocks reach back: the
 * smallest window with which zlib inflates it a byte at a time.
 */
function maxDistance(payload: Uint8Array): number {
  return distancesOf(payload).reduce((most, one) => Math.max(most, one), 0);
}

/** A plain inflate (RFC 1951) that keeps the distances instead of the bytes. */
function distancesOf(bytes: Uint8Array): number[] {
  let at = 0;
  const bit = () => bytes[at >> 3] >> (at++ & 7) & 1;
  const bits = (count: number) => {
    let value = 0;
    for (let i = 0; i < count; i++) value |= bit() << i;
    return value;
  };
  /** Canonical codes: [length, code] to symbol. */
  const codesOf = (lengths: number[]) => {
    const codes = new Map<string, number>();
    let code = 0;
    for (let length = 1; length <= 15; length++) {
      lengths.forEach((one, symbol) => {
        if (one === length) codes.set(`${length} ${code++}`, symbol);
      });
      code <<= 1;
    }
    return () => {
      let value = 0;
      for (let length = 1;; length++) {
        value = value << 1 | bit();
        const symbol = codes.get(`${length} ${value}`);
        if (symbol !== undefined) return symbol;
        if (length > 15) throw new Error("No such code");
      }
    };
  };
  const repeat = (times: number, length: number) =>
    new Array<number>(times).fill(length);
  const distances: number[] = [];
  // The tail is not there: the last stored block ends the data.
  while (at + 8 < bytes.length * 8) {
    bits(1);
    const type = bits(2);
    if (type === 0) {
      at = Math.ceil(at / 8) * 8;
      at += 32 + 8 * bits(16);
      continue;
    }
    let symbol = codesOf([
      ...repeat(144, 8),
      ...repeat(112, 9),
      ...repeat(24, 7),
      ...repeat(8, 8),
    ]);
    let distance = codesOf(repeat(30, 5));
    if (type === 2) {
      const literals = 257 + bits(5);
      const count = 1 + bits(5);
      const order = [
        16,
        17,
        18,
        0,
        8,
        7,
        9,
        6,
        10,
        5,
        11,
        4,
        12,
        3,
        13,
        2,
        14,
        1,
        15,
      ];
      const lengths = repeat(19, 0);
      for (let i = 4 + bits(4), k = 0; i > 0; i--) {
        lengths[order[k++]] = bits(3);
      }
      const next = codesOf(lengths);
      const all: number[] = [];
      while (all.length < literals + count) {
        const one = next();
        if (one < 16) all.push(one);
        else if (one === 16) all.push(...repeat(3 + bits(2), all.at(-1)!));
        else all.push(...repeat(one === 17 ? 3 + bits(3) : 11 + bits(7), 0));
      }
      symbol = codesOf(all.slice(0, literals));
      distance = codesOf(all.slice(literals));
    }
    for (;;) {
      const one = symbol();
      if (one === 256) break;
      if (one < 256) continue;
      if (one >= 265 && one < 285) bits((one - 261) >> 2);
      const code = distance();
      const extra = code < 4 ? 0 : (code - 2) >> 1;
      const base = code < 4 ? code + 1 : (2 + (code & 1) << extra) + 1;
      distances.push(base + bits(extra));
    }
  }
  return distances;
}
