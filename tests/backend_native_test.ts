/** The backends that call C, against TypeScript, with every length sent to C. */

import { constants } from "node:buffer";
import process from "node:process";
import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import type { Backend } from "../src/backend/backend.ts";
import { openBunFfi } from "../src/backend/bun_ffi.ts";
import { openDenoFfi } from "../src/backend/deno_ffi.ts";
import { openNodeApi } from "../src/backend/node_api.ts";
import * as portable from "../src/backend/portable.ts";
import { engines } from "./engines.ts";
import { RUNTIME } from "./programs/start.ts";

const KEY = 0x3d21fa37;

/** Where long memory is to be masked; no engine has less than 2^32 bytes. */
const FAR: [where: string, offset: number][] = [
  ["beyond 2^31 bytes", 2 ** 31],
  constants.MAX_LENGTH > 2 ** 32
    ? ["beyond 2^32 bytes", 2 ** 32]
    : ["up to 2^32 bytes, the most that this engine has", 2 ** 32 - 2000],
];

const NATIVE: Record<typeof RUNTIME, () => Backend | string> = {
  deno: openDenoFfi,
  bun: openBunFfi,
  node: openNodeApi,
};

/** Made in another way than the arrays it extends, and with another `set`. */
class Packet extends Uint8Array {
  readonly kind: string;

  constructor(kind: string, size: number) {
    super(size);
    this.kind = kind;
  }

  override set(): void {
    throw new Error("Not to be called");
  }
}

function pattern(bytes: Uint8Array): Uint8Array {
  for (let i = 0; i < bytes.length; i++) bytes[i] = i * 167 + (i >> 8);
  return bytes;
}

/** Masked frames with payloads of these lengths, and the first bytes of one more. */
function frames(lengths: readonly number[]): Uint8Array {
  const parts = lengths.map((length, i) => {
    const size = length < 126
      ? [0x80 | length]
      : length < 65536
      ? [0xfe, length >> 8, length & 255]
      : [
        ...[0xff, 0, 0, 0, 0],
        ...[24, 16, 8, 0].map((shift) => length >> shift & 255),
      ];
    const frame = new Uint8Array(1 + size.length + 4 + length);
    frame.set(pattern(frame.subarray(1 + size.length + 4)));
    pattern(frame);
    frame.set([0x82, ...size, i, 2, 3, 255]);
    return frame;
  });
  parts.push(new Uint8Array([0x82, 0x85, 1, 2]));
  const whole = new Uint8Array(
    parts.reduce((sum, { length }) => sum + length, 0),
  );
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** What scanning gives: count, head and rows, and the unmasked payloads. */
function scanned(
  backend: Pick<Backend, "scan">,
  chunk: Uint8Array,
  target: Uint8Array | null,
  words: number,
): unknown {
  const table = new Uint32Array(words);
  const source = target === chunk ? chunk.slice() : chunk;
  const into = target === chunk ? source : target;
  const count = backend.scan(
    source,
    0,
    source.length,
    into,
    0,
    table,
    1,
    2 ** 30,
  );
  const payloads: Uint8Array[] = [];
  for (let row = 4; into !== null && row < 4 + 4 * count; row += 4) {
    const start = table[row + 1]!;
    payloads.push(into.slice(start, start + table[row + 2]!));
  }
  return { count, table, payloads };
}

describe("the memory of this runtime", () => {
  it("ends at 2^32 bytes in Bun and Node 20 alone", () => {
    const small = RUNTIME === "bun" ||
      RUNTIME === "node" && Number.parseInt(process.versions.node) < 22;
    assertEquals(constants.MAX_LENGTH > 2 ** 32, !small);
  });
});

describe("the backend of this runtime", () => {
  it("exists and names the kernel it uses", () => {
    const { name, isa } = engines[0].backend;
    assertStringIncludes(name, RUNTIME);
    assert(["avx2", "sse2", "neon"].includes(isa), `${name} uses ${isa}`);
  });

  it("is the only one", () => {
    for (const [runtime, open] of Object.entries(NATIVE)) {
      if (runtime === RUNTIME) continue;
      const reason = open();
      assert(typeof reason === "string", `${runtime}: opened`);
      assertStringIncludes(reason.toLowerCase(), `this is not ${runtime}`);
    }
  });
});

for (const { title, backend } of engines.filter(({ always }) => always)) {
  describe(`C behind ${title}`, () => {
    function masksLikePortable(make: () => Uint8Array, lengths: number[]) {
      for (const length of lengths) {
        for (const start of [0, 1, 3]) {
          const actual = pattern(make());
          const expected = pattern(make());
          backend.mask(actual, start, length, KEY);
          portable.mask(expected, start, length, KEY);
          assertEquals(
            actual,
            expected,
            `mask of ${length} bytes from ${start}`,
          );

          const source = pattern(make());
          pattern(actual).fill(9);
          pattern(expected).fill(9);
          backend.maskInto(actual, 1, source, start, length, KEY);
          portable.maskInto(expected, 1, source, start, length, KEY);
          assertEquals(
            actual,
            expected,
            `masked copy of ${length} from ${start}`,
          );
        }
      }
    }

    it("masks every length", () => {
      const lengths = Array.from({ length: 280 }, (_, i) => i);
      masksLikePortable(() => new Uint8Array(300), lengths);
      // around the piece that wasm works on
      masksLikePortable(() => new Uint8Array(40_000), [
        17407,
        17408,
        17409,
        34816,
        39000,
      ]);
    });

    it("masks bytes on any kind of memory", () => {
      const kinds: Record<string, () => Uint8Array> = {
        buffer: () => new Uint8Array(new ArrayBuffer(900), 16, 800),
        shared: () => new Uint8Array(new SharedArrayBuffer(900), 16, 800),
        resizable: () =>
          new Uint8Array(
            new ArrayBuffer(900, { maxByteLength: 5000 }),
            16,
            800,
          ),
        "length-tracking": () =>
          new Uint8Array(new ArrayBuffer(900, { maxByteLength: 5000 }), 16),
        "growable shared": () =>
          new Uint8Array(
            new SharedArrayBuffer(900, { maxByteLength: 5000 }),
            16,
          ),
        "wasm memory": () =>
          new Uint8Array(
            new WebAssembly.Memory({ initial: 1 }).buffer,
            16,
            800,
          ),
        "in the engine's own heap": () => new Uint8Array(60),
        "subclass": () => new (class extends Uint8Array {})(800),
        "a subclass with a constructor and a set of its own": () =>
          new Packet("data", 800),
      };
      for (const [kind, make] of Object.entries(kinds)) {
        const bytes = pattern(make());
        const expected = pattern(new Uint8Array(bytes.length));
        // often enough that the call is compiled
        for (let i = 0; i < 20_001; i++) {
          backend.mask(bytes, 2, 50, KEY);
        }
        portable.mask(expected, 2, 50, KEY);
        assertEquals(Array.from(bytes), Array.from(expected), kind);

        const source = pattern(make());
        backend.maskInto(bytes, 1, source, 4, 50, KEY);
        portable.maskInto(expected, 1, Uint8Array.from(source), 4, 50, KEY);
        assertEquals(Array.from(bytes), Array.from(expected), kind);

        for (const length of [200, 780]) {
          if (length > bytes.length - 4) continue;
          for (const { maskInto } of [backend, portable]) {
            maskInto(bytes, 1, source, 4, length, KEY);
            const plain = new Uint8Array(bytes.length);
            maskInto(plain, 1, Uint8Array.from(source), 4, length, KEY);
            for (let i = 1; i <= length; i++) assertEquals(bytes[i], plain[i]);
          }
        }
      }
    });

    it("copies between ranges that overlap", () => {
      for (const length of [5, 100, 3000, 50_000]) {
        for (const distance of [-1000, -33, -4, -1, 0, 1, 3, 32, 100, 1000]) {
          const actual = pattern(new Uint8Array(length + 2000));
          const expected = actual.slice();
          const masked = actual.slice(1000, 1000 + length);
          portable.mask(masked, 0, length, KEY);
          expected.set(masked, 1000 + distance);
          backend.maskInto(actual, 1000 + distance, actual, 1000, length, KEY);
          assertEquals(actual, expected, `${length} bytes by ${distance}`);
        }
      }
    });

    it("leaves views that became shorter", () => {
      const buffer = new ArrayBuffer(4000, { maxByteLength: 8000 });
      const bytes = pattern(new Uint8Array(buffer));
      buffer.resize(100);
      const same = (act: () => void, expect: () => void) => {
        const outcomes = [act, expect].map((run) => {
          try {
            run();
            return "returns";
          } catch (error) {
            return (error as Error).constructor.name;
          }
        });
        assertEquals(outcomes[0], outcomes[1]);
        buffer.resize(4000);
        assertEquals(bytes.subarray(100), new Uint8Array(3900));
        buffer.resize(100);
      };
      const other = new Uint8Array(4000);
      const table = new Uint32Array(400);
      // Not every call of the portable engine makes a view of words.
      for (let i = 0; i < 9; i++) {
        same(
          () => backend.mask(bytes, 0, 4000, KEY),
          () => portable.mask(bytes, 0, 4000, KEY),
        );
      }
      same(
        () => backend.maskInto(bytes, 0, other, 0, 4000, KEY),
        () => portable.maskInto(bytes, 0, other, 0, 4000, KEY),
      );
      same(
        () => backend.maskInto(other, 0, bytes, 0, 4000, KEY),
        () => portable.maskInto(other, 0, bytes, 0, 4000, KEY),
      );
      same(
        () => backend.scan(bytes, 0, 4000, other, 0, table, 0, 5000),
        () => portable.scan(bytes, 0, 4000, other, 0, table, 0, 5000),
      );
      same(
        () => backend.scan(other, 0, 4000, bytes, 0, table, 0, 5000),
        () => portable.scan(other, 0, 4000, bytes, 0, table, 0, 5000),
      );
    });

    it("does not believe a view that lies about its length", () => {
      const bytes = new Uint8Array(1000);
      Object.defineProperty(bytes, "length", { value: 2 ** 31 });
      // Not as long as it says: Bun takes seconds to find nothing in 2^31 bytes.
      for (const length of [2000, 2 ** 24]) {
        for (
          const run of [
            () => backend.mask(bytes, 0, length, KEY),
            () => backend.maskInto(bytes, 0, bytes, 0, length, KEY),
            () =>
              backend.scan(bytes, 0, length, null, 0, new Uint32Array(8), 0, 9),
          ]
        ) {
          try {
            run();
          } catch (error) {
            assert(error instanceof Error); // an error is fine, a crash is not
          }
        }
      }
      for (const limit of [1, 2, 3]) {
        let asked = 0;
        const changing = {
          valueOf: () => asked++ < limit ? 1000 : 2 ** 27,
        } as unknown as number;
        for (
          const run of [
            () => backend.mask(bytes, 0, changing, KEY),
            () => backend.maskInto(bytes, 0, bytes, 0, changing, KEY),
          ]
        ) {
          asked = 0;
          try {
            run();
          } catch (error) {
            assert(error instanceof Error);
          }
        }
      }
    });

    it("refuses what only poses as bytes", () => {
      const buffer = new ArrayBuffer(4000);
      const posing = new DataView(buffer, 100, 8);
      Object.setPrototypeOf(posing, Uint8Array.prototype);
      for (const [name, value] of [["length", 3000], ["1999", 0]]) {
        Object.defineProperty(posing, name, { value });
      }
      const bytes = posing as unknown as Uint8Array;
      const other = new Uint8Array(4000);
      const proxy = new Proxy(other, {});
      const table = new Uint32Array(8);
      for (
        const run of [
          () => backend.mask(bytes, 0, 2000, KEY),
          () => backend.maskInto(bytes, 0, other, 0, 2000, KEY),
          () => backend.maskInto(other, 0, bytes, 0, 2000, KEY),
          () => backend.mask(proxy, 0, 2000, KEY),
          () => backend.maskInto(other, 0, proxy, 0, 2000, KEY),
          () => backend.maskInto(proxy, 0, other, 0, 2000, KEY),
          () => backend.scan(proxy, 0, 2000, null, 0, table, 0, 9),
        ]
      ) assertThrows(run, TypeError);
      assertEquals(new Uint8Array(buffer), new Uint8Array(4000));
      assertEquals(other, new Uint8Array(4000));
    });

    it("takes detached and empty views for nothing", () => {
      const detached = new Uint8Array(100);
      structuredClone(detached.buffer, { transfer: [detached.buffer] });
      const table = new Uint32Array(8).fill(7);
      for (const bytes of [detached, new Uint8Array(0)]) {
        backend.mask(bytes, 0, 0, KEY);
        backend.maskInto(bytes, 0, bytes, 0, 0, KEY);
        assertEquals(backend.scan(bytes, 0, 0, bytes, 0, table, 0, 9), 0);
        assertEquals(Array.from(table.subarray(0, 2)), [0, 0]);
      }
    });

    it("scans frames of every size", () => {
      const chunks = [
        frames([]),
        frames([0, 1, 2, 16, 125, 126, 127, 300]),
        frames(Array.from({ length: 5000 }, (_, i) => i % 40)),
        // longer than what wasm takes at once, alone and among short ones
        frames([20_000]),
        frames([10, 17_394, 17_395, 17_400, 17_401, 65_535, 3, 70_000, 0]),
      ];
      for (const chunk of chunks) {
        for (const words of [4, 7, 8, 20, 4 + 4 * 6000]) {
          for (
            const target of [
              () => null,
              () => chunk,
              () => new Uint8Array(chunk.length),
            ]
          ) {
            assertEquals(
              scanned(backend, chunk, target(), words),
              scanned(portable, chunk, target(), words),
            );
          }
        }
      }
    });

    it("scans up to a fault, and says which", () => {
      const chunk = frames(Array.from({ length: 3000 }, () => 20));
      for (const at of [0, 26 * 10, 26 * 2999]) {
        const broken = chunk.slice();
        broken[at] = 0x83; // a reserved opcode
        const target = () => new Uint8Array(chunk.length);
        assertEquals(
          scanned(backend, broken, target(), 20_000),
          scanned(portable, broken, target(), 20_000),
        );
      }
      const long = frames([30_000]);
      const table = new Uint32Array(8);
      assertEquals(
        backend.scan(long, 0, long.length, long, 0, table, 1, 29_999),
        0,
      );
      assertEquals(Array.from(table.subarray(0, 2)), [0, 11]);
    });
  });
}

for (const { title, backend } of engines) {
  describe(`memory on ${title}`, () => {
    for (const [where, far] of FAR) {
      it(`is masked ${where}`, () => {
        const bytes = new Uint8Array(far + 2000); // only the pages touched become real
        const views = [
          [bytes, far - 500],
          [bytes.subarray(far - 500), 0],
        ] as const;
        for (const [view, start] of views) {
          pattern(bytes.subarray(far - 1000));
          const expected = bytes.slice(far - 1000);
          portable.mask(expected, 500, 1000, KEY);
          portable.maskInto(expected, 1501, expected, 500, 400, KEY);
          backend.mask(view, start, 1000, KEY);
          backend.maskInto(view, start + 1001, view, start, 400, KEY);
          assertEquals(bytes.subarray(far - 1000), expected);

          const chunk = frames([20, 300]);
          view.set(chunk, start);
          const table = new Uint32Array(16);
          const { length } = chunk;
          backend.scan(view, start, length, view, start, table, 1, 1000);
          const unmasked = chunk.slice();
          portable.scan(
            chunk,
            0,
            length,
            unmasked,
            0,
            new Uint32Array(16),
            1,
            1000,
          );
          assertEquals(view.subarray(start, start + length), unmasked);
        }
      });
    }
  });
}
