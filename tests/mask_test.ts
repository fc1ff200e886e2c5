import { describe, it } from "node:test";
import { Buffer } from "node:buffer";
import { assert, assertEquals, assertThrows, fail } from "@std/assert";
import fc from "fast-check";
import { mask, maskInto } from "@wsframe/wsframe";
import { available, itOnEachBackend, withBackend } from "./backends.ts";
import {
  bytesOf,
  hex,
  inputOf,
  maskCases,
  randomBytes,
  seeded,
  sha256,
} from "./vectors.ts";

/** The byte loop that is the truth. */
function oracle(
  bytes: Uint8Array,
  key: Uint8Array,
  phase: number,
): Uint8Array {
  return bytes.map((byte, i) => byte ^ key[(phase + i) & 3]);
}

const KEY = new Uint8Array([0x37, 0xfa, 0x21, 0xbd]);
const GUARD = 48;

/** Compares quickly; `assertEquals` on every of many thousand cases takes minutes. */
function same(actual: Uint8Array, expected: Uint8Array, what: string): void {
  if (actual.length === expected.length) {
    let i = 0;
    while (i < actual.length && actual[i] === expected[i]) i++;
    if (i === actual.length) return;
  }
  assertEquals(hex(actual), hex(expected), what);
}

describe("mask", () => {
  itOnEachBackend("gives what the vectors say", () => {
    for (const vector of maskCases) {
      const input = inputOf(vector);
      const key = bytesOf(vector.key);
      const into = new Uint8Array(input.length);
      assertEquals(
        maskInto(into, input, key, vector.phase),
        vector.nextPhase,
        vector.name,
      );
      assertEquals(mask(input, key, vector.phase), vector.nextPhase);
      same(into, input, vector.name);
      if (vector.output !== undefined) {
        assertEquals(hex(input), vector.output, vector.name);
      }
      if (vector.outputSha256 !== undefined) {
        assertEquals(sha256(input), vector.outputSha256, vector.name);
      }
    }
  });

  itOnEachBackend(
    "agrees with the byte loop at every size, alignment, phase",
    () => {
      const source = randomBytes(1024, seeded(1));
      const memory = new Uint8Array(1024 + 32 + 2 * GUARD).fill(0xa5);
      const into = memory.slice();
      for (let size = 0; size <= 1024; size++) {
        for (let align = 0; align < 32; align++) {
          const start = GUARD + align;
          const end = start + size;
          const input = source.subarray(0, size);
          const bytes = memory.subarray(start, end);
          const target = into.subarray(start, end);
          for (let phase = 0; phase < 4; phase++) {
            bytes.set(input);
            const next = mask(bytes, KEY, phase);
            maskInto(target, input, KEY, phase);
            for (let i = 0; i < size; i++) {
              const expected = source[i] ^ KEY[(phase + i) & 3];
              if (bytes[i] !== expected || target[i] !== expected) {
                fail(
                  `size ${size}, alignment ${align}, phase ${phase}, byte ${i}`,
                );
              }
            }
            if (next !== ((phase + size) & 3)) {
              fail(
                `phase after ${size} bytes`,
              );
            }
          }
          // What was inside goes back to the guard's value; all else must still have it.
          bytes.fill(0xa5);
          target.fill(0xa5);
          for (let i = start - GUARD; i < end + GUARD; i++) {
            if (memory[i] !== 0xa5 || into[i] !== 0xa5) {
              fail(`guard at ${i - start}, size ${size}, alignment ${align}`);
            }
          }
        }
      }
    },
  );

  itOnEachBackend("is the same in pieces", () => {
    const seed = Date.now();
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 3000 }),
        fc.uint8Array({ minLength: 4, maxLength: 4 }),
        fc.nat(3),
        fc.array(fc.nat(700), { maxLength: 8 }),
        (bytes, key, phase, sizes) => {
          const whole = bytes.slice();
          const end = mask(whole, key, phase);
          const pieces = bytes.slice();
          const into = new Uint8Array(bytes.length);
          let at = 0;
          for (const size of [...sizes, bytes.length]) {
            const to = Math.min(at + size, bytes.length);
            maskInto(into.subarray(at), bytes.subarray(at, to), key, phase);
            phase = mask(pieces.subarray(at, to), key, phase);
            at = to;
          }
          same(pieces, whole, "in place");
          same(into, whole, "into");
          assertEquals(phase, end);
        },
      ),
      { seed, numRuns: 200 },
    );
  });

  itOnEachBackend("restores what it masked", () => {
    const bytes = randomBytes(100_003, seeded(3));
    const copy = bytes.slice();
    mask(copy, KEY, 2);
    assert(copy.some((byte, i) => byte !== bytes[i]));
    mask(copy, KEY, 2);
    same(copy, bytes, "twice");
  });

  itOnEachBackend("is defined for every overlap", () => {
    const source = randomBytes(2048, seeded(4));
    for (const size of [0, 1, 5, 31, 64, 100, 250, 517, 1000]) {
      for (const from of [0, 1, 16, 64, 300]) {
        for (const to of [0, 1, 2, 8, 17, 63, 64, 299, 300, 301, 700]) {
          const memory = source.slice();
          const expected = source.slice();
          expected.set(oracle(source.subarray(from, from + size), KEY, 1), to);
          maskInto(
            memory.subarray(to),
            memory.subarray(from, from + size),
            KEY,
            1,
          );
          same(memory, expected, `size ${size} from ${from} to ${to}`);
        }
      }
    }
  });

  itOnEachBackend(
    "is defined for overlaps longer than one piece of work",
    () => {
      const source = randomBytes(60_000, seeded(7));
      for (const size of [8193, 20_001, 40_000]) {
        for (const from of [0, 3, 9001]) {
          for (const to of [0, 1, 8, 8192, 9000, 9001, 9002, 19_999]) {
            const memory = source.slice();
            const expected = source.slice();
            expected.set(
              oracle(source.subarray(from, from + size), KEY, 3),
              to,
            );
            const range = memory.subarray(from, from + size);
            maskInto(memory.subarray(to), range, KEY, 3);
            same(memory, expected, `size ${size} from ${from} to ${to}`);
          }
        }
      }
    },
  );

  itOnEachBackend("leaves bytes alone under the zero key, and copies", () => {
    const zero = new Uint8Array(4);
    for (const size of [0, 3, 64, 1000, 100_000]) {
      const bytes = randomBytes(size, seeded(5));
      const copy = bytes.slice();
      assertEquals(mask(copy, zero, 3), (3 + size) & 3);
      same(copy, bytes, "in place");
      const target = new Uint8Array(size + 1);
      assertEquals(maskInto(target, bytes, zero, 1), (1 + size) & 3);
      same(target.subarray(0, size), bytes, "into");
      assertEquals(target[size], 0);
    }
  });

  itOnEachBackend("works on every kind of Uint8Array", () => {
    for (const size of [7, 64, 1000, 70_000]) {
      const input = randomBytes(size, seeded(6));
      const expected = oracle(input, KEY, 0);
      const views: Uint8Array[] = [
        Buffer.from(input),
        new Uint8Array(new SharedArrayBuffer(size + 5), 5, size),
        new Uint8Array(
          new ArrayBuffer(size, { maxByteLength: 2 * size }),
        ),
        new Uint8Array(
          new ArrayBuffer(size, { maxByteLength: 2 * size }),
          0,
          size,
        ),
        new (class extends Uint8Array {})(size),
      ];
      for (const bytes of views) {
        bytes.set(input);
        mask(bytes, KEY);
        same(Uint8Array.from(bytes), expected, "in place");
        const target = new Uint8Array(size);
        bytes.set(input);
        maskInto(target, bytes, KEY);
        same(target, expected, "from");
        maskInto(bytes, input, KEY);
        same(Uint8Array.from(bytes), expected, "to");
      }
    }
  });

  itOnEachBackend("survives views that shrank or were detached", () => {
    const buffer = new ArrayBuffer(4096, { maxByteLength: 8192 });
    const tracking = new Uint8Array(buffer);
    const fixed = new Uint8Array(buffer, 1024, 2048);
    buffer.resize(2000);
    assertEquals(mask(tracking, KEY), 0);
    assertEquals(tracking[1999], KEY[3]);
    assertEquals(fixed.length, 0);
    assertEquals(mask(fixed, KEY, 1), 1);
    assertEquals(maskInto(new Uint8Array(0), fixed, KEY, 2), 2);
    const detached = new Uint8Array(4096);
    structuredClone(detached, { transfer: [detached.buffer] });
    assertEquals(mask(detached, KEY, 3), 3);
    assertThrows(() => maskInto(detached, new Uint8Array(1), KEY), RangeError);
  });

  it("refuses what is no Uint8Array and says what it got", () => {
    const wrong: [unknown, string][] = [
      ["text", 'got "text"'],
      [[1, 2], "got an instance of Array"],
      [new ArrayBuffer(8), "got an instance of ArrayBuffer"],
      [new Int8Array(8), "got an instance of Int8Array"],
      [new Uint8ClampedArray(8), "got an instance of Uint8ClampedArray"],
      [new DataView(new ArrayBuffer(8)), "got an instance of DataView"],
      [{ length: 4 }, "got an instance of Object"],
      [Object.create(null), "got an object"],
      [null, "got null"],
      [undefined, "got undefined"],
      [7, "got 7"],
      [7n, "got 7n"],
      [Symbol("s"), "got a symbol"],
      [() => 1, "got a function"],
    ];
    const bytes = new Uint8Array(8);
    for (const [value, got] of wrong) {
      const bad = value as Uint8Array;
      assertThrows(() => mask(bad, KEY), TypeError, got);
      assertThrows(() => mask(bytes, bad), TypeError, "'key'");
      assertThrows(() => maskInto(bad, bytes, KEY), TypeError, "'target'");
      assertThrows(() => maskInto(bytes, bad, KEY), TypeError, "'source'");
      assertThrows(() => maskInto(bytes, bytes, bad), TypeError, got);
    }
  });

  it("refuses keys that are not 4 bytes, and phases that are none", () => {
    const bytes = new Uint8Array(8).fill(1);
    for (const length of [0, 3, 5, 16]) {
      const key = new Uint8Array(length);
      assertThrows(() => mask(bytes, key), RangeError, `got ${length} bytes`);
      assertThrows(() => maskInto(bytes, bytes, key), RangeError, "'key'");
    }
    for (const phase of [-1, 4, 0.5, NaN, Infinity, 2 ** 32]) {
      assertThrows(() => mask(bytes, KEY, phase), RangeError, `got ${phase}`);
    }
    for (const phase of ["1", null, 1n, {}]) {
      assertThrows(() => mask(bytes, KEY, phase as number), TypeError, "phase");
    }
    assertThrows(
      () => maskInto(new Uint8Array(7), bytes, KEY),
      RangeError,
      "Expected 'target' to hold 8 bytes, got 7 bytes",
    );
    assertEquals(bytes, new Uint8Array(8).fill(1));
  });
});

/** Memory of some kind, and what it should hold. */
interface Model {
  buffer: ArrayBuffer | SharedArrayBuffer;
  expected: Uint8Array;
}

function modelOf(buffer: Model["buffer"], seed: number): Model {
  const expected = randomBytes(buffer.byteLength, seeded(seed));
  new Uint8Array(buffer).set(expected);
  return { buffer, expected };
}

/** Masks a range and what it should become, and compares all of the buffer. */
function maskBoth(
  { buffer, expected }: Model,
  start: number,
  length: number,
  phase: number,
): void {
  mask(new Uint8Array(buffer, start, length), KEY, phase);
  const range = expected.subarray(start, start + length);
  range.set(oracle(range, KEY, phase));
  same(new Uint8Array(buffer), expected, `${length} bytes at ${start}`);
}

/** Resizes to what it was made for; new bytes are 0. */
function resize(model: Model, byteLength: number): void {
  (model.buffer as ArrayBuffer).resize(byteLength);
  const expected = new Uint8Array(byteLength);
  expected.set(model.expected.subarray(0, byteLength));
  model.expected = expected;
}

describe("mask, range after range", () => {
  itOnEachBackend("in buffers of every kind that take turns", () => {
    const seed = Date.now();
    const random = seeded(seed);
    const models = [
      modelOf(new ArrayBuffer(4096), 1),
      modelOf(new ArrayBuffer(3003), 2),
      modelOf(new SharedArrayBuffer(2501), 3),
      modelOf(new ArrayBuffer(1500, { maxByteLength: 9000 }), 4),
      modelOf(new ArrayBuffer(150_001), 5),
    ];
    const resizable = models[3];
    let model = models[0];
    for (let i = 0; i < 4000; i++) {
      // Mostly the buffer of the range before, as in a received chunk.
      if (random(8) === 0) model = models[random(models.length)];
      if (random(40) === 0) resize(resizable, random(9001));
      // Near its end, where words stop, and short: it is compared whole.
      const { byteLength } = model.buffer;
      const from = Math.max(0, byteLength - 5000);
      const start = from + random(byteLength - from + 1);
      const length = Math.min(random(2600), byteLength - start);
      try {
        maskBoth(model, start, length, random(4));
      } catch (error) {
        throw new Error(`seed ${seed}, step ${i}`, { cause: error });
      }
    }
  });

  itOnEachBackend("in a buffer that shrinks, grows and moves", () => {
    const model = modelOf(new ArrayBuffer(4000, { maxByteLength: 9000 }), 6);
    const often = (start: number, length: number) => {
      for (let i = 0; i < 20; i++) maskBoth(model, start, length, i & 3);
    };
    often(100, 300);
    resize(model, 500);
    often(100, 300);
    often(200, 300);
    resize(model, 9000);
    often(8600, 399);
    resize(model, 0);
    often(0, 0);
    resize(model, 4000);
    often(3000, 1000);

    const { buffer } = model;
    const lost = new Uint8Array(buffer, 100, 300);
    model.buffer = structuredClone(buffer, {
      transfer: [buffer as ArrayBuffer],
    });
    assertEquals(mask(lost, KEY, 1), 1);
    often(100, 300);
    assertEquals(buffer.byteLength, 0);
  });

  it("beyond 2^31 and 2^32 bytes, where the engine has such memory", () => {
    for (const far of [2 ** 31, 2 ** 32]) {
      let bytes: Uint8Array;
      try {
        bytes = new Uint8Array(far + 4000); // only the pages touched become real
      } catch {
        continue;
      }
      for (const name of available) {
        withBackend(name, () => {
          for (const length of [60, 100, 1000, 3000]) {
            for (let i = 0; i < 10; i++) {
              const input = randomBytes(length, seeded(i));
              const start = far - 50 + i;
              const range = bytes.subarray(start, start + length);
              const target = bytes.subarray(start + 7, start + 7 + length);
              range.set(input);
              mask(range, KEY, 1);
              same(range, oracle(input, KEY, 1), `${name}, ${far}, ${i}`);
              maskInto(target, range, KEY, 1);
              same(target, input, `${name}, ${far}, ${i}, into`);
            }
          }
        });
      }
    }
  });

  it("without keeping large memory alive", async () => {
    const gc = await garbageCollector();
    for (const name of available) {
      for (
        const buffer of [
          () => new ArrayBuffer(2 ** 22),
          () => new ArrayBuffer(1000, { maxByteLength: 2 ** 22 }),
        ]
      ) {
        // JavaScriptCore may take what is left on the stack for a reference, at times.
        let kept = true;
        for (let i = 0; kept && i < 20; i++) {
          const ref = withBackend(name, () => masked(buffer()));
          await new Promise((resolve) => setTimeout(resolve, 1));
          gc();
          kept = ref.deref() !== undefined;
        }
        assert(!kept, `${name}, ${buffer}`);
      }
    }
  });
});

/** Masks all over a buffer, of which only a weak reference stays. */
function masked(buffer: ArrayBuffer): WeakRef<ArrayBuffer> {
  for (let i = 0; i < 50; i++) {
    for (const length of [20, 90, 150, 900]) {
      mask(new Uint8Array(buffer, i, length), KEY);
    }
  }
  return new WeakRef(buffer);
}

/** Collects garbage now. */
async function garbageCollector(): Promise<() => void> {
  const { Bun } = globalThis as { Bun?: { gc(now: boolean): void } };
  if (Bun) return () => Bun.gc(true);
  const { setFlagsFromString } = await import("node:v8");
  const { runInNewContext } = await import("node:vm");
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
