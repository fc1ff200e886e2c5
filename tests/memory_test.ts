import { describe, it } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  FrameReader,
  FrameWriter,
  readFrame,
  recycle,
  writeFrame,
} from "@wsframe/wsframe";
import { Connection } from "@wsframe/wsframe/connection";
import fc from "fast-check";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { V8 } from "../src/memory.ts";
import { hex, randomBytes, seeded } from "./vectors.ts";

/** From here on everything asks for memory that came back. */
recycle(new Uint8Array(0));

const frames = new Map<number, Uint8Array>();

/** A frame to read, in memory of its own. */
function frameOf(size: number): Uint8Array {
  let frame = frames.get(size);
  if (frame === undefined) {
    frame = writeFrame({ opcode: 2, payload: new Uint8Array(size) }).slice();
    frames.set(size, frame);
  }
  return frame;
}

const chunks = new Map<number, Uint8Array>();

/** A masked frame behind a short one. */
function chunkOf(size: number): Uint8Array {
  let chunk = chunks.get(size);
  if (chunk === undefined) {
    const writer = new FrameWriter({ role: "client" });
    writer.binary(new Uint8Array(10));
    writer.binary(new Uint8Array(size));
    chunk = writer.take().slice();
    chunks.set(size, chunk);
  }
  return chunk;
}

/** Ways to get memory of this module's, of a payload of `size` bytes. */
const SOURCES: Record<string, (size: number) => Uint8Array> = {
  "FrameWriter.take": (size) => {
    const writer = new FrameWriter();
    writer.binary(new Uint8Array(size));
    return writer.take();
  },
  "Connection.takeOutput": (size) => {
    const connection = new Connection({ role: "client" });
    connection.send(new Uint8Array(size));
    return connection.takeOutput();
  },
  writeFrame: (size) =>
    writeFrame({ opcode: 2, payload: new Uint8Array(size) }),
  readFrame: (size) => readFrame(frameOf(size))!.frame.payload,
  "the iterator": (size) => {
    const [frame] = new FrameReader().push(frameOf(size));
    return frame.payload;
  },
  "the iterator, of a frame in two chunks": (size) => {
    const bytes = frameOf(size);
    const reader = new FrameReader().push(bytes.slice(0, size >> 1));
    assertEquals([...reader], []);
    const [frame] = reader.push(bytes.slice(size >> 1));
    return frame.payload;
  },
  "the iterator, behind a short frame": (size) => {
    const [, frame] = new FrameReader().push(chunkOf(size));
    return frame.payload;
  },
  "an event": (size) => {
    const connection = new Connection({ role: "client" });
    const events = [...connection.receive(frameOf(size))];
    const [event] = events;
    assert(event.type === "binary");
    return event.data;
  },
};

describe("recycle", () => {
  for (const [name, source] of Object.entries(SOURCES)) {
    it(`takes what comes from ${name}`, () => {
      for (const size of [2500, 50_000, 100_000, 1_000_000]) {
        const bytes = source(size);
        recycle(bytes);
        const again = Array.from({ length: 4 }, () => source(size));
        assert(
          again.some(({ buffer }) => buffer === bytes.buffer),
          `${size} bytes`,
        );
        assertEquals(new Set(again.map(({ buffer }) => buffer)).size, 4);
      }
    });

    it(`issues no memory twice at a time, by ${name}`, () => {
      for (const size of [20, 2500, 50_000, 100_000]) {
        const bytes = source(size);
        recycle(bytes);
        recycle(bytes);
        const first = Array.from({ length: 3 }, () => source(size));
        // Its memory has another owner now.
        recycle(bytes);
        // Parts, and other views of what was issued.
        recycle(first[0].subarray(0, 10));
        recycle(first[0].subarray());
        recycle(Buffer.from(first[0].buffer));
        const all = [
          ...first,
          ...Array.from({ length: 3 }, () => source(size)),
        ];
        // What is short may share a buffer, each its own part of it.
        const places = all.map((bytes) => [bytes.buffer, bytes.byteOffset]);
        for (const [i, [buffer, start]] of places.entries()) {
          for (const [other, at] of places.slice(i + 1)) {
            assert(buffer !== other || start !== at && size < 2048);
          }
        }
      }
    });

    it(`ignores what was transferred, before and after, from ${name}`, () => {
      for (const size of [2500, 100_000]) {
        const bytes = source(size);
        const { length } = bytes;
        structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] });
        recycle(bytes);
        const late = source(size);
        recycle(late);
        structuredClone(late, { transfer: [late.buffer as ArrayBuffer] });
        for (let i = 0; i < 3; i++) assertEquals(source(size).length, length);
      }
    });
  }

  it("leaves nothing of others behind what it issues", () => {
    const random = seeded(51);
    const held: Uint8Array[] = [];
    for (let i = 0; i < 600; i++) {
      const size = random(4) ? random(9000) : random(150_000);
      // With bytes that are not 0 up to the end of their memory, for others to come.
      const others = new FrameWriter();
      for (let n = random(5); n >= 0; n--) {
        others.binary(new Uint8Array(random(40_000)).fill(0xee));
      }
      const output = others.take();
      if (random(2)) recycle(output);
      const names = Object.keys(SOURCES);
      const name = names[random(names.length)];
      const bytes = SOURCES[name](size);
      const shared = name !== "FrameWriter.take" &&
        name !== "Connection.takeOutput" && bytes.length < 2048;
      if (shared) continue;
      assertEquals(bytes.byteOffset, 0, name);
      const behind = new Uint8Array(bytes.buffer, bytes.length);
      assert(behind.every((byte) => byte === 0), `${name}, ${size} bytes`);
      assert(behind.length <= Math.max(bytes.length, 512), name);
      held.push(bytes);
      if (held.length > 20) recycle(held.splice(random(20), 1)[0].fill(0xdd));
    }
  });

  it("leaves every frame as it was sent, however the stream is cut", () => {
    const random = seeded(50);
    for (const role of ["server", "client"] as const) {
      const payloads = Array.from(
        { length: 60 },
        () => randomBytes(random(10) ? random(6000) : random(200_000), random),
      );
      const writer = new FrameWriter({
        role: role === "server" ? "client" : "server",
      });
      for (const payload of payloads) writer.binary(payload);
      const bytes = writer.take();
      for (const size of [700, 5000, 65_536, bytes.length]) {
        for (const partial of [false, true]) {
          const reader = new FrameReader({ role, partial });
          const got = createHash("sha256");
          for (let at = 0; at < bytes.length; at += size) {
            const held: Uint8Array[] = [];
            const chunk = bytes.slice(at, at + size);
            for (const { payload } of reader.push(chunk)) {
              held.push(payload);
              if (random(2)) continue;
              for (const payload of held.splice(0)) {
                got.update(payload);
                recycle(payload);
              }
            }
            // The chunk is the caller's again, and only memory of its own is.
            chunk.fill(0xee);
            for (const payload of held) got.update(payload);
          }
          const sent = createHash("sha256");
          for (const payload of payloads) sent.update(payload);
          assertEquals(
            got.digest("hex"),
            sent.digest("hex"),
            `${role} ${size}`,
          );
        }
      }
    }
  });

  it("leaves alone what is not this module's", () => {
    const foreign: Uint8Array[] = [
      new Uint8Array(100_000),
      new Uint8Array(new SharedArrayBuffer(100_000)),
      new Uint8Array(new ArrayBuffer(100_000, { maxByteLength: 200_000 })),
      Buffer.alloc(100_000),
      new Uint8Array(0),
    ];
    const chunk = writeFrame({ opcode: 2, payload: new Uint8Array(90_000) }, {
      role: "client",
    }).slice();
    const [inPlace] = new FrameReader({ inPlace: true }).push(chunk);
    foreign.push(inPlace.payload);
    for (const bytes of foreign) recycle(bytes);
    for (let i = 0; i < 5; i++) {
      const { buffer } = SOURCES["FrameWriter.take"](89_000);
      assert(foreign.every((bytes) => bytes.buffer !== buffer));
    }
  });

  it("leaves alone the memory of the cursor, which frames share", () => {
    for (const role of ["server", "client"] as const) {
      const one = writeFrame({ opcode: 2, payload: new Uint8Array(1100) }, {
        role: role === "server" ? "client" : "server",
      });
      const chunk = new Uint8Array(10 * one.length);
      for (let i = 0; i < 10; i++) chunk.set(one, i * one.length);
      const reader = new FrameReader({ role });
      const held: Uint8Array[] = [];
      for (const { payload } of reader.push(chunk)) {
        held.push(payload);
        recycle(reader.memory);
        writeFrame({ opcode: 2, payload: new Uint8Array(9000).fill(255) });
      }
      assertEquals(held.length, 10);
      for (const payload of held) assert(payload.every((byte) => byte === 0));
    }
  });

  it("takes a Uint8Array", () => {
    for (const value of [null, undefined, "x", [1], new ArrayBuffer(1)]) {
      assertThrows(
        () => recycle(value as unknown as Uint8Array),
        TypeError,
        "'bytes'",
      );
    }
  });

  it("keeps a few MiB at most", () => {
    const source = SOURCES["FrameWriter.take"];
    const outputs = Array.from({ length: 100 }, () => source(500_000));
    const buffers = new Set(outputs.map(({ buffer }) => buffer));
    for (const bytes of outputs) recycle(bytes);
    const reused = Array.from({ length: 100 }, () => source(500_000))
      .filter(({ buffer }) => buffers.has(buffer)).length;
    assert(reused > 0 && reused <= 8, `${reused} blocks`);
  });

  it("changes nothing that is still held, in any sequence", () => {
    const names = Object.keys(SOURCES);
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          source: fc.constantFrom(...names),
          size: fc.oneof(
            fc.nat(200),
            fc.constantFrom(2047, 2048, 16_383, 16_384, 65_536, 100_000),
          ),
        }),
      },
      fc.record({ giveBack: fc.nat(5) }),
    );
    const digest = (bytes: Uint8Array) =>
      createHash("sha256").update(bytes).digest("hex");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40, size: "max" }), (steps) => {
        const random = seeded(33);
        const held: { bytes: Uint8Array; sum: string }[] = [];
        for (const one of steps) {
          if ("giveBack" in one) {
            const [given] = held.splice(one.giveBack, 1);
            if (given === undefined) continue;
            recycle(given.bytes);
            recycle(given.bytes);
            continue;
          }
          const bytes = SOURCES[one.source](one.size);
          bytes.set(randomBytes(bytes.length, random));
          held.push({ bytes, sum: digest(bytes) });
          for (const { bytes, sum } of held) assertEquals(digest(bytes), sum);
        }
      }),
      { seed: Date.now(), numRuns: 50 },
    );
  });
});

describe("recycle of a short payload", () => {
  const SHORT = ["the iterator", "an event"];

  it("takes the one that was handed out last (JavaScriptCore)", () => {
    for (const name of SHORT) {
      const source = SOURCES[name];
      for (const size of [1, 16, 33, 125, 126, 256]) {
        const bytes = source(size);
        recycle(bytes);
        const again = source(size);
        assertEquals(samePlace(again, bytes), !V8, `${name}, ${size} bytes`);
        assertEquals(again, new Uint8Array(size));
        if (!V8) assertEquals(again.buffer.byteLength, size);
        // Another one was handed out since.
        recycle(source(20));
        recycle(again);
        assert(!samePlace(source(size), again));
      }
    }
  });

  it("leaves alone parts, other views, and what it did not hand out", () => {
    for (const name of SHORT) {
      const source = SOURCES[name];
      for (const size of [16, 125, 256, 257, 1000, 2047]) {
        const bytes = source(size);
        const { buffer, byteOffset } = bytes;
        recycle(bytes.subarray(1));
        recycle(bytes.subarray());
        recycle(Buffer.from(buffer, byteOffset, size));
        const foreign = new Uint8Array(size);
        recycle(foreign);
        const next = source(size);
        assert(!samePlace(next, bytes) && next.buffer !== foreign.buffer);
      }
    }
  });

  it("never hands out one that was transferred", () => {
    for (const name of SHORT) {
      const source = SOURCES[name];
      for (const size of [16, 125]) {
        const early = source(size);
        structuredClone(early, { transfer: [early.buffer as ArrayBuffer] });
        recycle(early);
        // Throws for one that was.
        new Uint8Array(source(0).buffer);
        const late = source(size);
        recycle(late);
        structuredClone(late, { transfer: [late.buffer as ArrayBuffer] });
        for (let i = 0; i < 3; i++) {
          assertEquals(source(size), new Uint8Array(size));
        }
      }
    }
  });

  it("changes no message that is still held", () => {
    const random = seeded(52);
    for (const inPlace of [false, true]) {
      const client = new Connection({ role: "client" });
      const server = new Connection({ role: "server", inPlace });
      for (let i = 0; i < 300; i++) {
        const sent = Array.from(
          { length: 1 + random(40) },
          () => randomBytes(random(4) ? random(20) : random(400), random),
        );
        for (const message of sent) {
          if (random(8) === 0) client.ping(new Uint8Array(random(100)));
          if (random(8) === 0) client.send("text");
          client.send(message);
        }
        const chunk = client.takeOutput();
        const held: { data: Uint8Array; expected: string }[] = [];
        for (const event of server.receive(chunk)) {
          if (event.type === "text" || event.type === "close") continue;
          const { data } = event;
          const expected = event.type === "ping"
            ? "00".repeat(data.length)
            : hex(sent.shift()!);
          assertEquals(hex(data), expected);
          if (random(2)) {
            recycle(data);
            recycle(data);
          } else held.push({ data, expected });
        }
        if (!inPlace) chunk.fill(0xee);
        for (const { data, expected } of held) {
          assertEquals(hex(data), expected);
        }
      }
    }
  });
});

/** Whether two views begin at the same byte of the same memory. */
function samePlace(a: Uint8Array, b: Uint8Array): boolean {
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset;
}

describe("an empty payload", () => {
  it("may be transferred like any other", () => {
    const bytes = new Uint8Array([0x81, 0]);
    for (let i = 0; i < 3; i++) {
      const { payload } = readFrame(bytes)!.frame;
      structuredClone(payload, { transfer: [payload.buffer as ArrayBuffer] });
      const [frame] = new FrameReader().push(bytes);
      assertEquals(hex(frame.payload), "");
    }
  });
});
