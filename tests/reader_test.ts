import { Buffer } from "node:buffer";
import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import {
  FrameError,
  FrameReader,
  FrameWriter,
  readFrame,
  readFrameHeader,
  writeFrame,
} from "@wsframe/wsframe";
import type { Frame, FrameInit, ReadOptions } from "@wsframe/wsframe";
import { itOnEachBackend } from "./backends.ts";
import { type Outcome, readAll, type Way, WAYS } from "./read.ts";
import {
  bytesOf,
  concat,
  everyCut,
  frameCases,
  hex,
  randomBytes,
  seeded,
  withTrailing,
} from "./vectors.ts";

const ways = Object.keys(WAYS) as Way[];

/** The ways in which long inputs are read byte by byte. */
const BYTE_WAYS: Way[] = ["iterator", "cursor", "partial iterator"];

/** What a vector of frames.json expects. */
function expectedOf(vector: typeof frameCases[number]): Outcome {
  let byteOffset = 0;
  const frames = vector.frames.map((frame) => {
    const payload = hex(bytesOf(frame.payload));
    const first = +frame.fin << 7 | +frame.rsv1 << 6 | +frame.rsv2 << 5 |
      +frame.rsv3 << 4 | frame.opcode;
    const read = { first, payload, maskKey: frame.maskKey, byteOffset };
    byteOffset += headerLengthAt(bytesOf(vector.chunks), byteOffset) +
      payload.length / 2;
    return read;
  });
  const { error } = vector;
  return {
    frames,
    error: error && `${error.code} ${error.closeCode} at ${byteOffset}`,
    pendingBytes: vector.pendingBytes ?? 0,
  };
}

function headerLengthAt(bytes: Uint8Array, at: number): number {
  const length = bytes[at + 1] & 0x7f;
  return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) +
    (bytes[at + 1] >= 0x80 ? 4 : 0);
}

/** A stream of frames of many sizes, as a client sends them. */
function session(seed: number, count: number, largest: number): {
  bytes: Uint8Array;
  payloads: Uint8Array[];
} {
  const random = seeded(seed);
  const writer = new FrameWriter({ role: "client" });
  const payloads = Array.from(
    { length: count },
    () => randomBytes(random(random(4) === 0 ? largest : 200), random),
  );
  for (const payload of payloads) writer.binary(payload);
  return { bytes: writer.take().slice(), payloads };
}

describe("FrameReader", () => {
  for (const way of ways) {
    itOnEachBackend(`reads the vectors under every cut: ${way}`, () => {
      for (const vector of frameCases) {
        const bytes = bytesOf(vector.chunks);
        const expected = expectedOf(vector);
        for (const cut of everyCut(bytes)) {
          // 65536 chunks in every way take minutes, and three ways show the same.
          const many = cut.chunks.length > 1024;
          if (many && !BYTE_WAYS.includes(way)) continue;
          assertEquals(
            readAll(way, vector.options, cut.chunks),
            expected,
            `${vector.name}, ${cut.name}`,
          );
        }
        assertEquals(
          readAll(way, vector.options, vector.chunks.map(bytesOf)),
          expected,
          `${vector.name}, as it stands`,
        );
      }
    });
  }

  itOnEachBackend("reads what follows a vector", () => {
    const ping = { server: "898137fa213d56", client: "890161" };
    for (const vector of frameCases) {
      const bytes = bytesOf(vector.chunks);
      const expected = expectedOf(vector);
      if (expected.error === null && expected.pendingBytes > 0) continue;
      const trailing = bytesOf(ping[vector.options.role ?? "client"]);
      for (const cut of withTrailing(bytes, trailing)) {
        const { frames, error } = readAll(
          "iterator",
          vector.options,
          cut.chunks,
        );
        assertEquals(error, expected.error, vector.name);
        assertEquals(
          frames.slice(0, expected.frames.length),
          expected.frames,
          vector.name,
        );
        const more = frames.slice(expected.frames.length);
        if (error !== null) assertEquals(more, []);
        else {
          assertEquals(more.map(({ first, payload }) => [first, payload]), [
            [0x89, "61"],
          ]);
          assertEquals(more[0].byteOffset, bytes.length);
        }
      }
    }
  });

  itOnEachBackend("gives the same for every cut of random frames", () => {
    const { bytes, payloads } = session(7, 60, 9000);
    const expected = payloads.map(hex);
    for (const way of ways) {
      for (const size of [1, 2, 7, 100, 1000, 5001, 65536, bytes.length]) {
        const chunks = [];
        for (let at = 0; at < bytes.length; at += size) {
          chunks.push(bytes.slice(at, at + size));
        }
        const outcome = readAll(way, { role: "server" }, chunks);
        assertEquals(outcome.error, null);
        assertEquals(outcome.pendingBytes, 0);
        assertEquals(
          outcome.frames.map(({ payload }) => payload),
          expected,
          `${way}, chunks of ${size}`,
        );
      }
    }
  });

  itOnEachBackend("reads frames larger than any window", () => {
    const { bytes, payloads } = session(8, 12, 400_000);
    const expected = payloads.map(hex);
    for (const way of ways) {
      for (const size of [65536, 100_001, bytes.length]) {
        const chunks = [];
        for (let at = 0; at < bytes.length; at += size) {
          chunks.push(bytes.slice(at, at + size));
        }
        const { frames } = readAll(way, { role: "server" }, chunks);
        assertEquals(
          frames.map(({ payload }) => payload).join() === expected.join(),
          true,
          `${way}, chunks of ${size}`,
        );
      }
    }
  });

  itOnEachBackend("reads frames about as large as a window", () => {
    const random = seeded(10);
    const writer = new FrameWriter({ role: "client" });
    const frames: { payload: string; byteOffset: number }[] = [];
    // What one scan covers is 64 KiB, or 16.5 where frames are longer than 125 bytes.
    for (const window of [0x4200, 0x10000]) {
      for (let over = -16; over <= 0; over++) {
        for (const length of [window + over, random(300)]) {
          const payload = randomBytes(length, random);
          frames.push({
            payload: hex(payload),
            byteOffset: writer.bufferedBytes,
          });
          writer.binary(payload);
        }
      }
    }
    const bytes = writer.take();
    for (const way of ways) {
      const outcome = readAll(way, { role: "server" }, [bytes.slice()]);
      assertEquals(outcome.error, null);
      assertEquals(
        outcome.frames.map(({ payload, byteOffset }) => ({
          payload,
          byteOffset,
        })),
        frames,
        way,
      );
    }
  });

  itOnEachBackend("reads unmasked frames, and both kinds mixed", () => {
    const random = seeded(9);
    for (const role of ["client", undefined] as const) {
      const parts: Uint8Array[] = [];
      const expected: string[] = [];
      for (let i = 0; i < 300; i++) {
        const payload = randomBytes(random(300), random);
        expected.push(hex(payload));
        const masked = role === undefined && random(2) === 1;
        parts.push(
          writeFrame({ opcode: 2, payload }, {
            role: masked ? "client" : "server",
          }),
        );
      }
      const bytes = concat(parts);
      for (const way of ways) {
        for (const size of [50, 3000, bytes.length]) {
          const chunks = [];
          for (let at = 0; at < bytes.length; at += size) {
            chunks.push(bytes.slice(at, at + size));
          }
          const { frames } = readAll(way, { role }, chunks);
          assertEquals(frames.map(({ payload }) => payload), expected, way);
        }
      }
    }
  });

  itOnEachBackend("agrees on random bytes, whatever they are", (name) => {
    const seed = Date.now();
    const options: ReadOptions[] = [
      {},
      { role: "server" },
      { role: "client", allowRsv1: true },
      { checks: "none", maxPayloadLength: 300 },
      { maxPayloadLength: 0 },
    ];
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.array(fc.constantFrom(0x81, 0x82, 0x02, 0x80, 0x89, 0xc1, 0x88), {
          maxLength: 6,
        }),
        fc.nat(3),
        fc.integer({ min: 1, max: 40 }),
        (noise, firsts, kind, size) => {
          // Mutated frames go deeper than noise, which fails at its first byte.
          const parts = firsts.map((first, i) => {
            const frame = writeFrame({
              opcode: 2,
              payload: noise.subarray(0, 5 * i),
            }, { role: kind & 1 ? "client" : "server" });
            frame[0] = first;
            if (kind & 2 && i === 2) frame[1] ^= noise[0] ?? 0;
            return frame;
          });
          const bytes = concat([...parts, noise]);
          for (const option of options) {
            const whole = readAll("iterator", option, [bytes.slice()]);
            for (const way of ways) {
              const chunks = [];
              for (let at = 0; at < bytes.length; at += size) {
                chunks.push(bytes.slice(at, at + size));
              }
              assertEquals(
                readAll(way, option, chunks),
                whole,
                `${name} ${way}`,
              );
            }
          }
        },
      ),
      { seed, numRuns: 150 },
    );
  });

  itOnEachBackend("decides each rule at the byte that shows it", () => {
    const cases: [string, ReadOptions, string][] = [
      ["91", {}, "WS_ERR_UNEXPECTED_RSV_2_3"],
      ["c1", {}, "WS_ERR_UNEXPECTED_RSV_1"],
      ["f3", {}, "WS_ERR_UNEXPECTED_RSV_1"],
      ["c0", { allowRsv1: true }, "WS_ERR_UNEXPECTED_RSV_1"],
      ["83", {}, "WS_ERR_INVALID_OPCODE"],
      ["0b", {}, "WS_ERR_INVALID_OPCODE"],
      ["09", {}, "WS_ERR_EXPECTED_FIN"],
      ["897e", { role: "server" }, "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH"],
      ["8801", { role: "server" }, "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH"],
      ["8100", { role: "server" }, "WS_ERR_EXPECTED_MASK"],
      ["81ff", { role: "client" }, "WS_ERR_UNEXPECTED_MASK"],
      ["8185", { maxPayloadLength: 4 }, "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"],
      ["8985", { maxPayloadLength: 4 }, "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"],
      ["827e007d", {}, "WS_ERR_LENGTH_NOT_MINIMAL"],
      ["827f000000000000ffff", {}, "WS_ERR_LENGTH_NOT_MINIMAL"],
      ["827f8000000000000000", {}, "WS_ERR_INVALID_LENGTH"],
      [
        "827f0020000000000000",
        { maxPayloadLength: Number.MAX_SAFE_INTEGER },
        "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH",
      ],
      [
        "827f001fffffffffffff",
        { maxPayloadLength: Number.MAX_SAFE_INTEGER - 1 },
        "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH",
      ],
      [
        "fbfff000000000000000",
        { checks: "none" },
        "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH",
      ],
    ];
    const good = bytesOf("8100");
    for (const [header, options, code] of cases) {
      const before = options.role === "server"
        ? bytesOf("818000000000")
        : options.maxPayloadLength === 4 || options.role === "client"
        ? good
        : bytesOf("810161");
      const bytes = concat([before, bytesOf(header)]);
      for (const way of ways) {
        const early = readAll(way, options, [bytes.slice(0, -1)]);
        assertEquals(early.error, null, `${header} ${way}, one byte short`);
        for (
          const chunks of [
            [bytes.slice()],
            Array.from(bytes, (b) => Uint8Array.of(b)),
          ]
        ) {
          const outcome = readAll(way, options, chunks);
          assertEquals(outcome.frames.length, 1, header);
          assertEquals(
            outcome.error?.split(" ").filter((_, i) => i !== 1).join(" "),
            `${code} at ${before.length}`,
            `${header} ${way}`,
          );
        }
      }
      for (const read of [readFrame, readFrameHeader]) {
        assertEquals(
          assertThrows(() => read(bytesOf(header), options), FrameError).code,
          code,
        );
        assertEquals(read(bytesOf(header.slice(0, -2)), options), undefined);
      }
    }
  });

  itOnEachBackend("never changes its input, unless told to", () => {
    const { bytes } = session(10, 100, 2000);
    for (const way of ways) {
      const chunk = bytes.slice();
      readAll(way, {}, [chunk]);
      assertEquals(
        hex(chunk) === hex(bytes),
        !way.includes("in place"),
        way,
      );
    }
  });

  itOnEachBackend("gives frames that own their bytes", () => {
    const { bytes, payloads } = session(11, 200, 3000);
    const reader = new FrameReader({ role: "server" });
    const chunk = new Uint8Array(5000);
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += chunk.length) {
      const part = bytes.subarray(at, at + chunk.length);
      chunk.set(part);
      frames.push(...reader.push(chunk.subarray(0, part.length)));
      chunk.fill(0xee);
    }
    assertEquals(frames.map(({ payload }) => hex(payload)), payloads.map(hex));
  });

  itOnEachBackend(
    "needs a chunk no longer than until its frames were read",
    () => {
      const { bytes, payloads } = session(21, 60, 3000);
      const reader = new FrameReader({ role: "server" });
      const got: string[] = [];
      for (let at = 0; at < bytes.length; at += 4000) {
        const chunk = bytes.slice(at, at + 4000);
        // Just as many steps as there are frames, so that none tells that there is no more.
        let frames = 0;
        const counter = new FrameReader().push(
          bytes.slice(0, at + chunk.length),
        );
        while (counter.advance()) frames++;
        reader.push(chunk);
        while (got.length < frames) {
          assert(reader.advance());
          got.push(hex(reader.payload));
        }
        chunk.fill(0xee);
      }
      assertEquals(got, payloads.map(hex));
    },
  );

  it("gives views into the chunk in place", () => {
    const chunk = writeFrame({ opcode: 2, payload: new Uint8Array(100) }, {
      role: "client",
    });
    const [frame] = new FrameReader({ inPlace: true }).push(chunk);
    assertStrictEquals(frame.payload.buffer, chunk.buffer);
    assertEquals(frame.payload.byteOffset, chunk.byteOffset + 6);
    assertEquals(chunk.subarray(6), new Uint8Array(100));
  });

  itOnEachBackend("keeps what was pushed and not read", () => {
    for (const way of ways) {
      if (way.startsWith("partial")) continue;
      const { bytes, payloads } = session(12, 80, 3000);
      const { options } = WAYS[way];
      const reader = new FrameReader(options);
      let chunk = new Uint8Array(0);
      const got: string[] = [];
      let pushes = 0;
      let start = 0;
      for (let at = 0; at < bytes.length; at += 700) {
        const before = chunk;
        reader.push(chunk = bytes.slice(at, at + 700));
        before.fill(0xee);
        pushes++;
        // One frame in between, so that scanned and unscanned bytes are both kept.
        if (pushes % 4 === 0) {
          if (way.startsWith("cursor")) {
            if (reader.advance()) got.push(hex(reader.payload));
          } else {
            const { value, done } = reader[Symbol.iterator]().next();
            if (!done) got.push(hex(value.payload));
          }
        }
        const end = Math.min(at + 700, bytes.length);
        start = frameStart(bytes, start, end);
        assertEquals(reader.bufferedBytes, end - start);
      }
      for (const frame of reader) got.push(hex(frame.payload));
      assertEquals(got, payloads.map(hex), way);
      assertEquals(reader.bufferedBytes, 0);
    }
  });

  itOnEachBackend("reads Buffers as it reads any bytes", () => {
    for (const role of ["client", "server"] as const) {
      const { bytes, payloads } = session(22, 40, 3000);
      const plain = role === "server" ? bytes : concat(
        payloads.map((payload) => writeFrame({ opcode: 2, payload })),
      );
      for (const way of ways) {
        for (const size of [100, 5000]) {
          const chunks = [];
          for (let at = 0; at < plain.length; at += size) {
            chunks.push(Buffer.from(plain.slice(at, at + size)));
          }
          assertEquals(
            readAll(way, { role }, chunks).frames.map(({ payload }) => payload),
            payloads.map(hex),
          );
        }
      }
      // Several wait, each in memory that is used again.
      const reader = new FrameReader({ role });
      let before = Buffer.alloc(0);
      for (let at = 0; at < plain.length; at += 500) {
        const chunk = Buffer.from(plain.slice(at, at + 500));
        reader.push(chunk);
        before.fill(0xee);
        before = chunk;
      }
      assertEquals(
        [...reader].map(({ payload }) => hex(payload)),
        payloads.map(hex),
      );
    }
  });

  it("takes chunks pushed from inside an iteration", () => {
    const reader = new FrameReader();
    const got: string[] = [];
    for (const frame of reader.push(bytesOf("810161810162810163"))) {
      got.push(hex(frame.payload));
      if (got.length === 1) reader.push(bytesOf("8101648101"));
      if (got.length === 2) reader.push(bytesOf("65"));
    }
    assertEquals(got, ["61", "62", "63", "64", "65"]);
  });

  it("keeps the order of chunks that wait", () => {
    const reader = new FrameReader();
    reader.push(bytesOf("810161810162")).push(bytesOf("810163"));
    assert(reader.advance() && reader.advance());
    // All of the first chunk was read, the second was not looked at yet.
    reader.push(bytesOf("810164"));
    assertEquals(
      [...reader].map(({ payload }) => hex(payload)),
      ["63", "64"],
    );
  });

  it("goes on where an iteration stopped", () => {
    const reader = new FrameReader().push(bytesOf("810161810162810163"));
    for (const frame of reader) {
      assertEquals(hex(frame.payload), "61");
      break;
    }
    const iterator = reader[Symbol.iterator]();
    assertStrictEquals(iterator[Symbol.iterator](), iterator);
    assertEquals(hex(iterator.next().value!.payload), "62");
    assertEquals([...reader].map(({ payload }) => hex(payload)), ["63"]);
    assertEquals([...reader], []);
    assertEquals(iterator.next(), { done: true, value: undefined });
  });

  it("shows nothing under the cursor before and after", () => {
    const reader = new FrameReader();
    for (let i = 0; i < 2; i++) {
      assertEquals(reader.payload, new Uint8Array(0));
      assertEquals(reader.payloadLength, 0);
      assertEquals(reader.maskKey, null);
      assertEquals(reader.opcode, 0);
      assertEquals(reader.fin, false);
      assertEquals(reader.last, true);
      assertEquals(reader.payloadOffset, 0);
      assertEquals(reader.byteOffset, 3 * i);
      reader.push(bytesOf("c10161").subarray(0, 3 * (1 - i)));
      if (i === 0) {
        assertThrows(() => reader.advance(), FrameError);
        reader.reset();
        reader.push(bytesOf("890161"));
        assertEquals(reader.advance(), true);
        assertEquals([reader.opcode, reader.fin], [9, true]);
        assertStrictEquals(reader.payload, reader.payload);
        assertEquals(reader.advance(), false);
      }
    }
  });

  itOnEachBackend("hands out pieces as they arrive", () => {
    const payload = randomBytes(1000, seeded(13));
    const bytes = writeFrame({ opcode: 2, payload, fin: false }, {
      role: "client",
    });
    const reader = new FrameReader({ partial: true });
    assertEquals([...reader.push(bytes.slice(0, 8))], []);
    assertEquals(reader.bufferedBytes, 8);
    const [first] = reader.push(bytes.slice(8, 108));
    assertEquals(
      [first.payloadLength, first.payloadOffset, first.last, first.fin],
      [1000, 0, false, false],
    );
    assertEquals(reader.bufferedBytes, 108);
    const [second] = reader.push(bytes.slice(108));
    assertEquals(
      [second.payloadLength, second.payloadOffset, second.last],
      [1000, 100, true],
    );
    assertEquals(concat([first.payload, second.payload]), payload);
    assertEquals(reader.bufferedBytes, 0);
    const [empty] = reader.push(bytesOf("8200"));
    assertEquals(
      [empty.payloadLength, empty.payloadOffset, empty.last],
      [0, 0, true],
    );
  });

  it("throws the same error again, and frames before it come first", () => {
    const reader = new FrameReader().push(bytesOf("8101618301628101"));
    const got: string[] = [];
    const read = () => {
      for (const frame of reader) got.push(hex(frame.payload));
    };
    const error = assertThrows(read, FrameError);
    assertEquals(got, ["61"]);
    assertEquals(error.byteOffset, 3);
    assertEquals(error.name, "FrameError");
    for (
      const again of [
        read,
        () => reader.advance(),
        () => reader.push(bytesOf("810161")).advance(),
        () => reader.end(),
      ]
    ) assertStrictEquals(assertThrows(again, FrameError), error);
    assertEquals(reader.bufferedBytes, 0);
    assertEquals(got, ["61"]);
  });

  it("says at the end whether the stream ended inside a frame", () => {
    const cases: [string, number][] = [
      ["", -1],
      ["810161", -1],
      ["81", 0],
      ["8101", 0],
      ["810161827e01", 3],
      ["810161818537fa213d7f9f", 3],
    ];
    for (const [input, offset] of cases) {
      for (const cut of everyCut(bytesOf(input))) {
        for (const read of [false, true]) {
          const reader = new FrameReader();
          for (const chunk of cut.chunks) {
            reader.push(chunk);
            if (read) { while (reader.advance()); }
          }
          if (offset < 0) reader.end();
          else {
            const error = assertThrows(() => reader.end(), FrameError);
            assertEquals(error.code, "WS_ERR_UNEXPECTED_END");
            assertEquals(error.closeCode, 1006);
            assertEquals(error.byteOffset, offset, `${input} ${cut.name}`);
          }
          // What was not read can still be read; then the end shows again.
          let frames = 0;
          const rest = () => {
            while (reader.advance()) frames++;
          };
          if (offset < 0) rest();
          else {
            assertEquals(assertThrows(rest, FrameError).byteOffset, offset);
          }
          assertEquals(frames, !read && input.startsWith("810161") ? 1 : 0);
          if (offset < 0) {
            assertThrows(
              () => reader.push(new Uint8Array(1)),
              TypeError,
              "ended",
            );
          }
        }
      }
    }
  });

  it("leaves a fault behind unread frames to reading", () => {
    const reader = new FrameReader().push(bytesOf("810161ff"));
    reader.end();
    assertEquals(reader.advance(), true);
    assertEquals(
      assertThrows(() => reader.advance(), FrameError).code,
      "WS_ERR_UNEXPECTED_RSV_1",
    );
  });

  it("is as new after reset", () => {
    const reader = new FrameReader({ role: "server" });
    for (const before of ["ff", "81", "818537fa213d7f9f", "818037fa213d8180"]) {
      reader.push(bytesOf(before));
      try {
        reader.advance();
      } catch { /* the fault that reset forgets */ }
      reader.reset();
      assertEquals(reader.bufferedBytes, 0);
      const [frame] = reader.push(bytesOf("818537fa213d7f9f4d5158"));
      assertEquals(hex(frame.payload), hex(new TextEncoder().encode("Hello")));
      assertEquals(frame.byteOffset, 0);
      reader.end();
      reader.reset();
    }
  });

  it("counts the bytes of the incomplete frame", () => {
    const bytes = bytesOf("810161818537fa213d7f9f");
    const reader = new FrameReader();
    let before = 0;
    for (let at = 0; at < bytes.length; at++) {
      for (const _ of reader.push(bytes.slice(at, at + 1))) before = at + 1;
      assertEquals(reader.bufferedBytes, at + 1 - before);
    }
    assertEquals(reader.bufferedBytes, 8);
  });

  it("counts them however many chunks and frames wait to be read", () => {
    const reader = new FrameReader();
    for (let i = 0; i < 200_000; i++) {
      reader.push(bytesOf("8100"));
      assertEquals(reader.bufferedBytes, 0);
    }
    reader.push(bytesOf("8101"));
    let frames = 0;
    for (const _ of reader) {
      frames++;
      assertEquals(reader.bufferedBytes, 2);
    }
    assertEquals(frames, 200_000);
    assertThrows(() => reader.end(), FrameError);
  });

  it("notices a chunk that became shorter before it was read", () => {
    const chunk = writeFrame({ opcode: 2, payload: new Uint8Array(70_000) });
    const copy = chunk.slice();
    const reader = new FrameReader().push(copy);
    structuredClone(copy, { transfer: [copy.buffer] });
    assertThrows(() => reader.advance(), TypeError, "became shorter");
    assertThrows(() => reader.end(), TypeError, "became shorter");
    reader.reset();
    assertEquals([...reader.push(chunk)].length, 1);
  });

  itOnEachBackend("notices it between two frames", () => {
    for (const inPlace of [false, true]) {
      for (const role of ["server", "client"] as const) {
        const frame = writeFrame({ opcode: 1, payload: "abc" }, { role });
        const chunk = concat([frame, frame, frame]);
        const reader = new FrameReader({ inPlace }).push(chunk);
        assert(reader.advance());
        assertEquals(hex(reader.payload), "616263");
        structuredClone(chunk, { transfer: [chunk.buffer] });
        const read = () => reader.advance() && hex(reader.payload);
        // Without `inPlace`, masked payloads are in the reader's own memory by then.
        if (role === "client" && !inPlace) assertEquals(read(), "616263");
        else {
          // What follows is lost, too.
          for (let i = 0; i < 3; i++) {
            assertThrows(read, TypeError, "became shorter");
          }
          assertThrows(() => reader.end(), TypeError, "became shorter");
          reader.reset();
          assertEquals(hex([...reader.push(frame)][0].payload), "616263");
        }
      }
    }
  });

  itOnEachBackend("gives empty frames of a chunk that is gone", () => {
    for (const inPlace of [false, true]) {
      const empty = writeFrame({ opcode: 2 });
      const buffer = new ArrayBuffer(4, { maxByteLength: 8 });
      const chunk = new Uint8Array(buffer);
      chunk.set(empty);
      chunk.set(empty, 2);
      const reader = new FrameReader({ inPlace }).push(chunk);
      assert(reader.advance());
      buffer.resize(0);
      assertEquals(reader.payload.length, 0);
      assertEquals(Array.from(reader, ({ payload }) => payload.length), [0]);
    }
  });

  itOnEachBackend("is done with a chunk when its frames were read", () => {
    const frame = (length: number, value: number) =>
      writeFrame(
        { opcode: 2, payload: new Uint8Array(length).fill(value) },
        { role: "client" },
      );
    const open = frame(60_000, 9);
    const begun = open.subarray(0, 30_000);
    // What comes before the incomplete frame, and how many bytes of the first are in the
    // chunk before.
    const cases: [string, Uint8Array[], number][] = [
      ["a frame", [frame(20, 1)], 0],
      ["the end of one", [frame(20, 1)], 10],
      ["the end of one, and another", [frame(20, 1), frame(20, 2)], 10],
      ["one of many bytes", [frame(100_000, 1)], 0],
      ["one of many bytes, cut", [frame(100_000, 1)], 50_000],
      ["a table full", Array.from({ length: 1024 }, () => frame(1, 1)), 0],
      ["a window full", Array.from({ length: 65 }, () => frame(1000, 1)), 0],
    ];
    for (const [title, frames, cut] of cases) {
      for (const cursor of [false, true]) {
        const stream = concat([...frames, begun]);
        const reader = new FrameReader();
        const iterator = reader[Symbol.iterator]();
        const read = () =>
          cursor
            ? reader.advance() && reader.payload
            : iterator.next().value?.payload;
        reader.push(stream.slice(0, cut));
        if (cut > 0) assert(!read());
        const chunk = stream.slice(cut);
        reader.push(chunk);
        for (const written of frames) {
          const { payload } = readFrame(written)!.frame;
          assertEquals(read(), payload, title);
        }
        const last = reader.payload;
        chunk.fill(0xee);
        if (cursor) {
          assertEquals(last, readFrame(frames.at(-1)!)!.frame.payload);
        }
        reader.push(open.slice(begun.length));
        assertEquals(read(), new Uint8Array(60_000).fill(9), title);
      }
    }
  });

  itOnEachBackend("keeps a fault when the chunk is reused", () => {
    for (const [length, cut] of [[20, 0], [20, 10], [20_000, 0], [20_000, 9]]) {
      const frame = writeFrame(
        { opcode: 2, payload: new Uint8Array(length) },
        { role: "client" },
      );
      for (const cursor of [false, true]) {
        const reader = new FrameReader();
        const iterator = reader[Symbol.iterator]();
        const read = () => cursor ? reader.advance() : !iterator.next().done;
        reader.push(frame.slice(0, cut));
        assertEquals(read(), false);
        const chunk = concat([frame.subarray(cut), bytesOf("8300")]);
        reader.push(chunk);
        assert(read());
        assertEquals(reader.bufferedBytes, 0);
        structuredClone(chunk, { transfer: [chunk.buffer] });
        assertEquals(reader.bufferedBytes, 0);
        const error = assertThrows(read, FrameError, "opcode");
        assertEquals(error.byteOffset, frame.length);
      }
    }
  });

  it("does not ask for a chunk of which everything was read", () => {
    for (const length of [20, 20_000]) {
      const chunk = writeFrame({ opcode: 2, payload: new Uint8Array(length) })
        .slice();
      const reader = new FrameReader().push(chunk);
      assert(reader.advance());
      structuredClone(chunk, { transfer: [chunk.buffer] });
      assertEquals(reader.bufferedBytes, 0);
      reader.end();
      assertEquals(reader.advance(), false);
    }
  });

  it("gives the pieces that came before the end of the stream", () => {
    for (const whole of [0, 1]) {
      const frame = bytesOf("8203010203");
      const bytes = concat([...Array(whole).fill(frame), frame.slice(0, 4)]);
      const reader = new FrameReader({ partial: true }).push(bytes);
      assertThrows(() => reader.end(), FrameError, "inside a frame");
      const pieces: string[] = [];
      const error = assertThrows(() => {
        for (const { payload } of reader) pieces.push(hex(payload));
      }, FrameError);
      assertEquals(error.byteOffset, 5 * whole);
      assertEquals(pieces.join(""), "010203".repeat(whole) + "0102");
      assertThrows(() => reader.advance(), FrameError);
    }
  });

  it("notices it in a chunk pushed ahead, and copies that one at once", () => {
    const frame = bytesOf("8203010203");
    const reader = new FrameReader().push(frame.slice(0, 3));
    const ahead = new Uint8Array(new ArrayBuffer(2, { maxByteLength: 8 }));
    ahead.set(frame.subarray(3));
    reader.push(ahead);
    ahead.buffer.resize(1);
    reader.push(frame);
    assertEquals(reader.bufferedBytes, 0);
    assertEquals(Array.from(reader, ({ payload }) => hex(payload)), [
      "010203",
      "010203",
    ]);

    const first = frame.slice();
    reader.push(first);
    structuredClone(first, { transfer: [first.buffer] });
    reader.push(frame);
    assertThrows(() => [...reader], TypeError, "became shorter");
  });

  it("lets go of a chunk at the next push, an empty one too", () => {
    const chunk = bytesOf("8203010203");
    const reader = new FrameReader().push(chunk);
    reader.push(new Uint8Array(0));
    chunk.fill(0xee);
    const [frame] = reader;
    assertEquals(hex(frame.payload), "010203");
  });

  it("shares nothing between readers that read in turn", () => {
    const sessions = [14, 15, 16, 17, 18, 19].map((seed) =>
      session(seed, 50, 500)
    );
    const readers = sessions.map(({ bytes }) => new FrameReader().push(bytes));
    const got: string[][] = sessions.map(() => []);
    for (let open = readers.length; open > 0;) {
      open = 0;
      readers.forEach((reader, i) => {
        if (!reader.advance()) return;
        open++;
        // Read late, when the others have read too.
        queueRead(() => got[i].push(hex(reader.payload)));
      });
      runReads();
    }
    sessions.forEach(({ payloads }, i) =>
      assertEquals(got[i], payloads.map(hex))
    );
  });

  it("refuses options of the wrong type or range", () => {
    const wrong: [string, unknown, typeof TypeError | typeof RangeError][] = [
      ["role", "peer", RangeError],
      ["role", 7, TypeError],
      ["role", null, TypeError],
      ["maxPayloadLength", -1, RangeError],
      ["maxPayloadLength", 1.5, RangeError],
      ["maxPayloadLength", NaN, RangeError],
      ["maxPayloadLength", 2 ** 53, RangeError],
      ["maxPayloadLength", "1", TypeError],
      ["maxPayloadLength", null, TypeError],
      ["allowRsv1", 1, TypeError],
      ["checks", "some", RangeError],
      ["checks", true, TypeError],
      ["inPlace", "yes", TypeError],
      ["partial", 0, TypeError],
    ];
    for (const [name, value, type] of wrong) {
      const options = { [name]: value } as ReadOptions;
      assertThrows(() => new FrameReader(options), type, `'${name}'`);
      assertThrows(() => readFrame(new Uint8Array(2), options), type, name);
      assertThrows(
        () => readFrameHeader(new Uint8Array(2), options),
        type,
        name,
      );
    }
    for (const value of [null, 7, "x"]) {
      const options = value as unknown as ReadOptions;
      assertThrows(() => new FrameReader(options), TypeError, "'options'");
      const bytes = value as unknown as Uint8Array;
      assertThrows(() => new FrameReader().push(bytes), TypeError, "'chunk'");
      assertThrows(() => readFrame(bytes), TypeError, "'bytes'");
      assertThrows(() => readFrameHeader(bytes), TypeError, "'bytes'");
    }
  });
});

/** Where the frame starts in which the first `end` bytes end, or `end`; from a frame's start on. */
function frameStart(bytes: Uint8Array, start: number, end: number): number {
  for (;;) {
    const result = readFrameHeader(bytes.subarray(start, end));
    const next = start + (result?.headerLength ?? 0) +
      (result?.header.payloadLength ?? 0);
    if (result === undefined || next > end) return start;
    start = next;
  }
}

const reads: (() => void)[] = [];

function queueRead(read: () => void): void {
  reads.push(read);
}

function runReads(): void {
  for (const read of reads.splice(0)) read();
}

describe("readFrame", () => {
  itOnEachBackend("reads what writeFrame wrote", () => {
    const random = seeded(20);
    for (const size of [0, 1, 125, 126, 1000, 65535, 65536, 70_000]) {
      for (const role of ["client", "server"] as const) {
        const payload = randomBytes(size, random);
        const init: FrameInit = { opcode: 2, payload, fin: false };
        const bytes = writeFrame(init, { role });
        const before = hex(bytes);
        for (let cut = 0; cut < bytes.length; cut += 1 + (cut >> 1)) {
          assertEquals(readFrame(bytes.subarray(0, cut)), undefined);
        }
        const result = readFrame(concat([bytes, bytesOf("8100")]))!;
        assertEquals(result.bytesRead, bytes.length);
        const { frame } = result;
        assertEquals([frame.fin, frame.opcode, frame.byteOffset], [
          false,
          2,
          0,
        ]);
        assertEquals(hex(frame.payload) === hex(payload), true);
        assertEquals(frame.maskKey === null, role === "server");
        assertEquals(
          hex(readFrame(bytes)!.frame.payload) === hex(payload),
          true,
        );
        assertEquals(hex(bytes) === before, true);
        const inPlace = readFrame(bytes, { inPlace: true })!;
        assertStrictEquals(inPlace.frame.payload.buffer, bytes.buffer);
        assertEquals(hex(inPlace.frame.payload) === hex(payload), true);
      }
    }
  });

  it("gives each frame a key of its own", () => {
    const bytes = bytesOf("818537fa213d7f9f4d5158");
    const { frame } = readFrame(bytes)!;
    assertEquals(hex(frame.maskKey!), "37fa213d");
    frame.maskKey![0] = 0;
    assertEquals(hex(frame.maskKey!), "37fa213d");
    assertNotStrictEquals(frame.payload.buffer, bytes.buffer);
  });
});

describe("readFrameHeader", () => {
  it("reads the vectors' headers at every length", () => {
    for (const vector of frameCases) {
      const bytes = bytesOf(vector.chunks);
      const [frame] = vector.frames;
      if (frame === undefined || vector.error !== null) continue;
      const headerLength = headerLengthAt(bytes, 0);
      for (let cut = 0; cut < headerLength; cut++) {
        assertEquals(
          readFrameHeader(bytes.subarray(0, cut), vector.options),
          undefined,
        );
      }
      const result = readFrameHeader(bytes, vector.options)!;
      const { payload, maskKey, ...flags } = frame;
      assertEquals(result.headerLength, headerLength);
      assertEquals<unknown>(result.header, {
        ...flags,
        payloadLength: bytesOf(payload).length,
        maskKey: maskKey === null ? null : bytesOf(maskKey),
      });
    }
  });

  it("reads lengths beyond 32 bits", () => {
    const bytes = bytesOf("827f001fffffffffffff");
    const options = { maxPayloadLength: Number.MAX_SAFE_INTEGER };
    assertEquals(
      readFrameHeader(bytes, options)?.header.payloadLength,
      Number.MAX_SAFE_INTEGER,
    );
    assert(new FrameReader(options).push(bytes).advance() === false);
  });
});
