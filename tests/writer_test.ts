import process from "node:process";
import { describe, it } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import fc from "fast-check";
import {
  frameByteLength,
  FrameReader,
  FrameWriter,
  readFrame,
  writeClosePayload,
  writeFrame,
  writeFrameHeader,
  writeFrameInto,
} from "@wsframe/wsframe";
import type { FrameInit, Opcode, WriteOptions } from "@wsframe/wsframe";
import { itOnEachBackend } from "./backends.ts";
import {
  bytesOf,
  concat,
  hex,
  randomBytes,
  seeded,
  sha256,
  type VectorBytes,
  writeCases,
} from "./vectors.ts";

const KEY = bytesOf("37fa213d");

type WriteVector = typeof writeCases[number];

function optionsOf({ options }: WriteVector): WriteOptions {
  const { maskKey, ...rest } = options;
  return maskKey === undefined
    ? rest
    : { ...rest, maskKey: maskKey === null ? null : bytesOf(maskKey) };
}

/** The frame of a vector; may throw, when it is the close payload that is refused. */
function frameOf({ frame }: WriteVector): FrameInit {
  const { payload, opcode, ...flags } = frame;
  const init: FrameInit = { ...flags, opcode: opcode as Opcode };
  if (payload === undefined) return init;
  if (typeof payload === "object" && "text" in payload) {
    return { ...init, payload: payload.text };
  }
  if (typeof payload === "object" && "close" in payload) {
    const { code, reason } = payload.close;
    return { ...init, payload: writeClosePayload(code, reason) };
  }
  return { ...init, payload: bytesOf(payload as VectorBytes) };
}

/** Every way to write one frame. */
const WRITERS: Record<
  string,
  (frame: FrameInit, options?: WriteOptions) => Uint8Array
> = {
  writeFrame,
  writeFrameInto(frame, options) {
    const target = new Uint8Array(100_000).fill(0xa5);
    const length = writeFrameInto(target.subarray(7), frame, options);
    assert(target.subarray(0, 7).every((byte) => byte === 0xa5));
    assert(target.subarray(7 + length).every((byte) => byte === 0xa5));
    return target.subarray(7, 7 + length);
  },
  FrameWriter(frame, options) {
    const writer = new FrameWriter(options);
    writer.write(frame);
    return writer.take();
  },
  "FrameWriter, behind another frame"(frame, options) {
    const writer = new FrameWriter(options);
    writer.ping();
    const before = writer.bufferedBytes;
    writer.write(frame);
    return writer.take().subarray(before);
  },
  "header and payload apart"(frame, options) {
    const payload = typeof frame.payload === "string"
      ? new TextEncoder().encode(frame.payload)
      : frame.payload ?? new Uint8Array(0);
    const init = { ...frame, payloadLength: payload.length };
    // The rule about the code inside a close payload needs the payload.
    if (frame.opcode === 8) return writeFrame(frame, options);
    const header = writeFrameHeader(init, options);
    const masked = (header[1] & 0x80) !== 0;
    const key = header.subarray(header.length - 4);
    return concat([
      header,
      masked ? payload.map((byte, i) => byte ^ key[i & 3]) : payload,
    ]);
  },
};

describe("every way to write", () => {
  for (const [name, write] of Object.entries(WRITERS)) {
    itOnEachBackend(`gives what the vectors say: ${name}`, () => {
      for (const vector of writeCases) {
        const options = optionsOf(vector);
        if (vector.error !== null) {
          const type = vector.error === "RangeError" ? RangeError : TypeError;
          assertThrows(() => write(frameOf(vector), options), type);
          continue;
        }
        const frame = frameOf(vector);
        const { payload } = frame;
        const before = payload instanceof Uint8Array ? payload.slice() : null;
        const bytes = write(frame, options);
        if (before !== null) assertEquals(payload, before, vector.name);
        const { output } = vector;
        if (typeof output === "string") {
          assertEquals(hex(bytes), output, vector.name);
        } else {
          assertEquals(bytes.length, output!.length);
          assert(hex(bytes).startsWith(output!.head), vector.name);
          assertEquals(sha256(bytes), output!.sha256, vector.name);
        }
      }
    });

    itOnEachBackend(`is read back: ${name}`, () => {
      const random = seeded(30);
      const sizes = [
        0,
        1,
        47,
        48,
        49,
        125,
        126,
        127,
        4000,
        65535,
        65536,
        70_000,
      ];
      for (const size of sizes) {
        for (
          const options of [
            {},
            { role: "client" },
            { role: "client", disableClientMask: true },
            { role: "server", maskKey: KEY },
          ] as WriteOptions[]
        ) {
          const payload = randomBytes(size, random);
          const bytes = write({ opcode: 2, payload }, options);
          const masked = options.role === "client" || options.maskKey != null;
          assertEquals(bytes.length, frameByteLength(size, masked));
          const { frame, bytesRead } = readFrame(bytes, {
            role: masked ? "server" : "client",
          })!;
          assertEquals(bytesRead, bytes.length);
          assertEquals(sha256(frame.payload), sha256(payload));
          if (options.disableClientMask) {
            assertEquals(hex(frame.maskKey!), "00000000");
          }
        }
      }
    });

    it(`writes text of every script as UTF-8: ${name}`, () => {
      const seed = Date.now();
      fc.assert(
        fc.property(
          fc.oneof(
            fc.string({ unit: "binary", maxLength: 300 }),
            fc.string({ unit: "grapheme", maxLength: 200 }),
          ),
          fc.constantFrom<WriteOptions>({}, { role: "client" }),
          (payload, options) => {
            const bytes = write({ opcode: 1, payload }, options);
            assertEquals(
              hex(readFrame(bytes)!.frame.payload),
              hex(new TextEncoder().encode(payload)),
            );
          },
        ),
        { seed, numRuns: 150 },
      );
      // Where the length in bytes needs another header than the length in units.
      for (const unit of ["a", "é", "€", "😀", "\ud800"]) {
        for (const count of [41, 42, 48, 49, 62, 63, 100, 125, 126, 21845]) {
          const payload = unit.repeat(count);
          const bytes = write({ opcode: 1, payload }, { role: "client" });
          assertEquals(
            sha256(readFrame(bytes)!.frame.payload),
            sha256(new TextEncoder().encode(payload)),
            `${count} of ${unit}`,
          );
        }
      }
    });
  }
});

describe("keys", () => {
  it("are fresh for every frame of a client", () => {
    const writer = new FrameWriter({ role: "client" });
    for (let i = 0; i < 3000; i++) writer.binary(new Uint8Array(1));
    const keys = [...new FrameReader().push(writer.take())]
      .map(({ maskKey }) => hex(maskKey!));
    assertEquals(keys.length, 3000);
    assert(new Set(keys).size > 2998);
    assert(
      hex(writeFrame({ opcode: 2 }, { role: "client" })) !==
        hex(writeFrame({ opcode: 2 }, { role: "client" })),
    );
  });

  it("are drawn from nothing when they are given or not needed", () => {
    const random = stub(crypto, "getRandomValues", () => {
      throw new Error("No randomness is needed here");
    });
    try {
      for (
        const options of [
          {},
          { maskKey: KEY },
          { role: "client", maskKey: KEY },
          { role: "client", maskKey: null },
          { role: "client", disableClientMask: true },
        ] as WriteOptions[]
      ) {
        for (let i = 0; i < 1100; i++) writeFrame({ opcode: 9 }, options);
      }
    } finally {
      random.restore();
    }
  });

  it("of the caller may change after the writer was made", () => {
    const maskKey = KEY.slice();
    const writer = new FrameWriter({ maskKey });
    maskKey.fill(0);
    writer.ping();
    assertEquals(hex(writer.take()), "898037fa213d");
  });
});

describe("writeFrameInto", () => {
  it("writes nothing when it refuses", () => {
    for (
      const frame of [
        { opcode: 2, payload: new Uint8Array(64) },
        { opcode: 1, payload: "é".repeat(32) },
        { opcode: 9, payload: new Uint8Array(126) },
        { opcode: 3 },
      ] as FrameInit[]
    ) {
      const target = new Uint8Array(65);
      assertThrows(() => writeFrameInto(target, frame), RangeError);
      assertEquals(target, new Uint8Array(65));
    }
    assertThrows(
      () => writeFrameInto(new Uint8Array(3), { opcode: 1, payload: "ab" }),
      RangeError,
      "Expected 'target' to hold 4 bytes, got 3 bytes",
    );
  });

  itOnEachBackend("takes a payload that stands in the target", () => {
    for (const size of [3, 60, 200, 3000]) {
      for (const from of [0, 1, 4, 8, 14, 20]) {
        const memory = randomBytes(size + 40, seeded(31));
        const payload = memory.subarray(from, from + size);
        const expected = hex(
          writeFrame({ opcode: 2, payload }, { maskKey: KEY }),
        );
        const length = writeFrameInto(memory, { opcode: 2, payload }, {
          maskKey: KEY,
        });
        assertEquals(hex(memory.subarray(0, length)), expected);
      }
    }
  });
});

describe("FrameWriter", () => {
  it("has a method for every kind of frame", () => {
    const writer = new FrameWriter();
    writer.text("hé");
    writer.binary(bytesOf("0102"));
    writer.ping();
    writer.ping(bytesOf("61"));
    writer.pong();
    writer.pong(bytesOf("62"));
    writer.close();
    writer.close(1000);
    writer.close(1001, "x");
    assertEquals(writer.bufferedBytes, 30);
    assertEquals(
      hex(writer.take()),
      "810368c3a9" + "82020102" + "8900" + "890161" + "8a00" + "8a0162" +
        "8800" + "880203e8" + "880303e978",
    );
    assertEquals(writer.bufferedBytes, 0);
    assertEquals(writer.take(), new Uint8Array(0));
  });

  itOnEachBackend("keeps what was taken as it was", () => {
    const random = seeded(32);
    const writer = new FrameWriter({ maskKey: KEY });
    const others = [new FrameWriter(), new FrameWriter()];
    const taken: Uint8Array[] = [];
    const expected: string[] = [];
    for (let round = 0; round < 200; round++) {
      const parts: Uint8Array[] = [];
      for (let i = random(6); i >= 0; i--) {
        const payload = randomBytes(
          random(random(8) === 0 ? 90_000 : 300),
          random,
        );
        writer.binary(payload);
        parts.push(writeFrame({ opcode: 2, payload }, { maskKey: KEY }));
        // Others write meanwhile, and take at their own times.
        others[i & 1].text("x".repeat(random(2000)));
        if (random(3) === 0) others[i & 1].take();
      }
      taken.push(writer.take());
      expected.push(sha256(concat(parts)));
    }
    assertEquals(taken.map(sha256), expected);
  });

  it("takes thousands of small frames between two takes", () => {
    const writer = new FrameWriter({ role: "client" });
    for (let i = 0; i < 100_000; i++) writer.text(String(i));
    let count = 0;
    const reader = new FrameReader({ role: "server" }).push(writer.take());
    for (; reader.advance(); count++) {
      if (count % 9973 === 0) {
        assertEquals(new TextDecoder().decode(reader.payload), String(count));
      }
    }
    assertEquals(count, 100_000);
  });

  it("writes text of any length and script, whatever room there is", () => {
    const random = seeded(33);
    const writer = new FrameWriter({ maskKey: KEY });
    const scripts = ["a", "é", "中", "😀", "aé中😀"];
    for (let round = 0; round < 300; round++) {
      const parts: Uint8Array[] = [];
      for (let i = random(4); i >= 0; i--) {
        const payload = scripts[random(scripts.length)].repeat(random(700));
        writer.text(payload);
        parts.push(writeFrame({ opcode: 1, payload }, { maskKey: KEY }));
      }
      assertEquals(sha256(writer.take()), sha256(concat(parts)));
    }
  });

  it("holds little memory for little output, whatever it wrote before", () => {
    const held = () => {
      const { external, arrayBuffers } = process.memoryUsage();
      return Math.max(external, arrayBuffers);
    };
    const big = new Uint8Array(1_000_000);
    const writers = Array.from({ length: 1000 }, (_, i) => {
      const writer = new FrameWriter();
      if (i % 50 === 0) {
        writer.binary(big);
        writer.take();
      }
      return writer;
    });
    const before = held();
    for (const writer of writers) writer.ping();
    const grown = held() - before;
    assert(grown < 4_000_000, `${grown} bytes for ${writers.length} writers`);
    for (const writer of writers) assertEquals(hex(writer.take()), "8900");
  });

  it("gives away what can be transferred without loss to anyone", () => {
    const writer = new FrameWriter();
    const other = new FrameWriter();
    for (const size of [1, 100, 5000, 40_000, 65_000, 200_000]) {
      writer.binary(new Uint8Array(size));
      other.ping();
      const taken = writer.take();
      writer.ping();
      structuredClone(taken, { transfer: [taken.buffer] });
      assertEquals(taken.length, 0);
      assertEquals(hex(writer.take()), "8900");
      assertEquals(hex(other.take()), "8900");
    }
  });

  it("writes nothing when it refuses", () => {
    const writer = new FrameWriter();
    const long = new Uint8Array(126);
    assertThrows(() => writer.ping(long), RangeError, "got 126 bytes");
    assertThrows(() => writer.pong(long), RangeError);
    assertThrows(() => writer.close(1005), RangeError);
    assertThrows(() => writer.close(undefined, "why"), RangeError);
    assertThrows(() => writer.write({ opcode: 8, payload: "a" }), RangeError);
    assertThrows(
      () => writer.text(7 as unknown as string),
      TypeError,
      "'text'",
    );
    for (const value of ["x", null, undefined, [1]]) {
      const bad = value as unknown as Uint8Array;
      assertThrows(() => writer.binary(bad), TypeError, "'payload'");
      if (value !== undefined) assertThrows(() => writer.ping(bad), TypeError);
      assertThrows(() => writer.write(bad as unknown as FrameInit));
    }
    assertEquals(writer.take(), new Uint8Array(0));
  });
});

describe("FrameWriter.close", () => {
  it("writes what it is told without checks", () => {
    const writer = new FrameWriter({ checks: "none" });
    writer.close(1005, "x".repeat(200));
    assertEquals(
      hex(writer.take()),
      "887e00ca03ed" + "78".repeat(200),
    );
    for (const code of [-1, 65536, 1.5, NaN]) {
      assertThrows(() => writer.close(code), RangeError, "'code'");
    }
    assertThrows(() => writer.close(undefined, "why"), RangeError, "code");
  });
});

describe("what must not be written", () => {
  const refused: FrameInit[] = [
    { opcode: 3 },
    { opcode: 7 },
    { opcode: 11 },
    { opcode: 15 },
    { opcode: 2, rsv2: true },
    { opcode: 2, rsv3: true },
    { opcode: 0, rsv1: true },
    { opcode: 8, rsv1: true },
    { opcode: 9, rsv1: true },
    { opcode: 8, fin: false },
    { opcode: 10, fin: false },
    { opcode: 9, payload: new Uint8Array(126) },
    { opcode: 9, payload: "é".repeat(63) },
    { opcode: 8, payload: new Uint8Array(1) },
    { opcode: 8, payload: bytesOf("03ed") },
    { opcode: 8, payload: bytesOf("03e7") },
  ];

  for (const [name, write] of Object.entries(WRITERS)) {
    it(`is refused, and written with checks: "none": ${name}`, () => {
      for (const frame of refused) {
        assertThrows(() => write(frame), RangeError);
        const bytes = write(frame, { checks: "none" });
        const { frame: read } = readFrame(bytes, { checks: "none" })!;
        assertEquals(
          [read.opcode, read.fin, read.rsv1, read.rsv2, read.rsv3],
          [
            frame.opcode,
            frame.fin ?? true,
            frame.rsv1 ?? false,
            frame.rsv2 ?? false,
            frame.rsv3 ?? false,
          ],
        );
      }
    });

    it(`is refused with what is no frame at all: ${name}`, () => {
      const wrong: [string, unknown, typeof TypeError | typeof RangeError][] = [
        ["opcode", undefined, TypeError],
        ["opcode", "1", TypeError],
        ["opcode", 16, RangeError],
        ["opcode", -1, RangeError],
        ["opcode", 1.5, RangeError],
        ["opcode", NaN, RangeError],
        ["fin", 1, TypeError],
        ["rsv1", "yes", TypeError],
        ["rsv2", null, TypeError],
        ["rsv3", 0, TypeError],
      ];
      for (const checks of ["strict", "none"] as const) {
        for (const [key, value, type] of wrong) {
          const frame = { opcode: 2, [key]: value } as unknown as FrameInit;
          assertThrows(() => write(frame, { checks }), type, `'${key}'`);
        }
      }
      if (name === "header and payload apart") return;
      for (const payload of [7, null, [1], new ArrayBuffer(2), {}]) {
        const frame = { opcode: 2, payload } as unknown as FrameInit;
        assertThrows(() => write(frame), TypeError, "'payload'");
      }
      for (const frame of [null, undefined, 7, "x"]) {
        assertThrows(() => write(frame as unknown as FrameInit), TypeError);
      }
    });

    it(`includes options of the wrong type or range: ${name}`, () => {
      const wrong: [unknown, typeof TypeError | typeof RangeError, string][] = [
        [{ role: "both" }, RangeError, "'role'"],
        [{ role: 1 }, TypeError, "'role'"],
        [{ maskKey: new Uint8Array(3) }, RangeError, "got 3 bytes"],
        [{ maskKey: [1, 2, 3, 4] }, TypeError, "'maskKey'"],
        [{ maskKey: "1234" }, TypeError, "'maskKey'"],
        [{ disableClientMask: 1 }, TypeError, "'disableClientMask'"],
        [{ disableClientMask: true, maskKey: KEY }, TypeError, "together"],
        [{ disableClientMask: true, maskKey: null }, TypeError, "together"],
        [{ checks: "all" }, RangeError, "'checks'"],
        [{ checks: false }, TypeError, "'checks'"],
        [null, TypeError, "'options'"],
        ["client", TypeError, "'options'"],
      ];
      for (const [options, type, message] of wrong) {
        assertThrows(
          () => write({ opcode: 9 }, options as WriteOptions),
          type,
          message,
        );
      }
    });
  }
});

describe("writeFrameHeader", () => {
  it("takes any safe length, in the shortest form", () => {
    const cases: [number, string][] = [
      [0, "8200"],
      [125, "827d"],
      [126, "827e007e"],
      [65535, "827effff"],
      [65536, "827f0000000000010000"],
      [2 ** 31, "827f0000000080000000"],
      [2 ** 32 + 5, "827f0000000100000005"],
      [Number.MAX_SAFE_INTEGER, "827f001fffffffffffff"],
    ];
    for (const [payloadLength, expected] of cases) {
      assertEquals(
        hex(writeFrameHeader({ opcode: 2, payloadLength })),
        expected,
      );
    }
  });

  it("refuses lengths that are none", () => {
    for (const payloadLength of [-1, 1.5, NaN, 2 ** 53, Infinity]) {
      assertThrows(
        () => writeFrameHeader({ opcode: 2, payloadLength }),
        RangeError,
        "'payloadLength'",
      );
      assertThrows(() => frameByteLength(payloadLength, false), RangeError);
    }
    for (const length of [undefined, null, "1", 1n]) {
      const payloadLength = length as unknown as number;
      assertThrows(
        () => writeFrameHeader({ opcode: 2, payloadLength }),
        TypeError,
      );
      assertThrows(() => frameByteLength(payloadLength, true), TypeError);
    }
    assertThrows(
      () => frameByteLength(1, "yes" as unknown as boolean),
      TypeError,
    );
    assertThrows(
      () => writeFrameHeader({ opcode: 9, payloadLength: 126 }),
      RangeError,
    );
  });
});
