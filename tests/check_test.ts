/**
 * The rules over the parts of a header, its reading against the obvious way to read it,
 * and the checks of arguments.
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { describe, it } from "node:test";
import { runInNewContext } from "node:vm";
import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  ALLOW_RSV1,
  checkBytes,
  checkCount,
  checkFlag,
  checkLength,
  checkOptions,
  checkRole,
  checkStrict,
  EXPECT_MASK,
  EXPECT_NO_MASK,
  HEADER_FAULTS,
  MAX_HEADER_LENGTH,
  NO_CHECKS,
  parsed,
  parseHeader,
  shown,
} from "../src/check.ts";
import { readHeader } from "./reference.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

describe("the numbers of rules and faults", () => {
  const header = readFileSync(
    new URL("../native/wsframe.h", import.meta.url),
    "utf8",
  );
  const numbers = Object.fromEntries(
    Array.from(
      header.matchAll(/^ {2}WSFRAME_(\w+) = (\d+),$/gm),
      ([, name, number]) => [name, Number(number)],
    ),
  );

  it("are the same in native/wsframe.h", () => {
    assertEquals(
      HEADER_FAULTS.slice(1).map((name) =>
        numbers[name.slice("WS_ERR_".length)]
      ),
      HEADER_FAULTS.slice(1).map((_, i) => i + 1),
    );
    assertEquals(
      [
        numbers.EXPECT_MASK,
        numbers.EXPECT_NO_MASK,
        numbers.ALLOW_RSV1,
        numbers.NO_CHECKS,
      ],
      [EXPECT_MASK, EXPECT_NO_MASK, ALLOW_RSV1, NO_CHECKS],
    );
  });
});

describe("shown", () => {
  it("shows short values, and of others what they are", () => {
    class Thing {}
    const cases: [unknown, string][] = [
      [null, "null"],
      [undefined, "undefined"],
      [-0.5, "-0.5"],
      [NaN, "NaN"],
      [true, "true"],
      [12n, "12n"],
      ['a "b"\n', '"a \\"b\\"\\n"'],
      ["x".repeat(32), `"${"x".repeat(32)}"`],
      ["x".repeat(33), "a string of 33 characters"],
      [[1], "an instance of Array"],
      [new Thing(), "an instance of Thing"],
      [Object.create(null), "an object"],
      [{ constructor: 7 }, "an object"],
      [() => 0, "a function"],
      [Symbol("s"), "a symbol"],
    ];
    for (const [value, text] of cases) assertEquals(shown(value), text);
  });
});

describe("checkBytes", () => {
  it("takes every Uint8Array, also a subclass's and another realm's", () => {
    for (
      const bytes of [
        new Uint8Array(1),
        new (class extends Uint8Array {})(1),
        runInNewContext("new Uint8Array(1)"),
      ]
    ) checkBytes(bytes, "bytes");
  });

  it("refuses all else, whatever it calls itself", () => {
    const others = [
      new Uint8ClampedArray(1),
      new Int8Array(1),
      new DataView(new ArrayBuffer(1)),
      new ArrayBuffer(1),
      { [Symbol.toStringTag]: "Uint8Array", length: 1 },
      [1],
      "a",
      null,
      undefined,
    ];
    for (const value of others) {
      assertThrows(
        () => checkBytes(value, "bytes"),
        TypeError,
        `Expected 'bytes' to be a Uint8Array, got ${shown(value)}`,
      );
    }
    assertThrows(
      () => checkBytes(1, "data", "a string or bytes"),
      TypeError,
      "Expected 'data' to be a string or bytes, got 1",
    );
  });
});

describe("the checks of options", () => {
  it("give the value, or what stands for none", () => {
    checkOptions({}, "options");
    assertEquals(checkFlag(undefined, "flag", true), true);
    assertEquals(checkFlag(false, "flag", true), false);
    assertEquals(checkCount(undefined, "count", 7), 7);
    assertEquals(checkCount(0, "count", 7), 0);
    assertEquals(checkLength(2 ** 53 - 1, "length"), 2 ** 53 - 1);
    assertEquals(checkLength(15, "length", 15), 15);
    assertEquals(checkRole(undefined), undefined);
    assertEquals(checkRole("client"), "client");
    assertEquals([undefined, "strict", "none"].map(checkStrict), [
      true,
      true,
      false,
    ]);
  });

  it("throw a TypeError for a wrong type, a RangeError for a wrong value", () => {
    const cases: [
      act: () => unknown,
      error: typeof TypeError | typeof RangeError,
      message: string,
    ][] = [
      [() => checkOptions(null, "o"), TypeError, "'o' to be an object"],
      [() => checkOptions("", "o"), TypeError, "'o' to be an object"],
      [() => checkFlag(1, "f", true), TypeError, "'f' to be a boolean, got 1"],
      [() => checkFlag(null, "f", true), TypeError, "got null"],
      [() => checkLength("1", "n"), TypeError, "'n' to be a number"],
      [() => checkLength(1n, "n"), TypeError, "got 1n"],
      [() => checkLength(-1, "n"), RangeError, "got -1"],
      [() => checkLength(0.5, "n"), RangeError, "got 0.5"],
      [() => checkLength(NaN, "n"), RangeError, "got NaN"],
      [() => checkLength(2 ** 53, "n"), RangeError, "to 9007199254740991"],
      [() => checkLength(16, "n", 15), RangeError, "from 0 to 15, got 16"],
      [() => checkCount(null, "n", 7), TypeError, "got null"],
      [() => checkRole("peer"), RangeError, '"client" or "server", got "peer"'],
      [() => checkRole(0), TypeError, '"client" or "server", got 0'],
      [() => checkStrict("lax"), RangeError, '"strict" or "none", got "lax"'],
      [() => checkStrict(false), TypeError, "got false"],
    ];
    for (const [act, error, message] of cases) {
      const thrown = assertThrows(act, error, message);
      assertEquals((thrown as Error).constructor, error);
    }
  });
});

/** Both ways of reading a header, with what they find in the same words. */
function compare(
  bytes: Uint8Array,
  start: number,
  end: number,
  flags: number,
  limit: number,
): void {
  const found = parseHeader(bytes, start, end, flags, limit);
  const expected = readHeader(bytes, start, end, flags, limit);
  if (expected === null) assertEquals(found, 0);
  else if (typeof expected === "string") {
    assertEquals(HEADER_FAULTS[-found], expected);
  } else {
    const { headerLength, payloadLength, maskKey } = expected;
    const key = maskKey === null
      ? 0
      : new DataView(maskKey.buffer).getInt32(0, true);
    assertEquals(
      [found, parsed.payloadLength, parsed.key],
      [headerLength, payloadLength, key],
    );
  }
}

describe("parseHeader", () => {
  it("judges every pair of first bytes under all rules", () => {
    const bytes = new Uint8Array([0, 0, 0, 126]);
    for (let flags = 0; flags < 16; flags++) {
      for (let pair = 0; pair < 0x10000; pair++) {
        bytes[0] = pair >> 8;
        bytes[1] = pair & 0xff;
        const found = parseHeader(bytes, 0, 2, flags, 100);
        const expected = readHeader(bytes, 0, 2, flags, 100);
        const same = expected === null
          ? found === 0
          : typeof expected === "string"
          ? HEADER_FAULTS[-found] === expected
          : found === expected.headerLength;
        if (!same) compare(bytes, 0, 2, flags, 100);
      }
    }
  });

  it(`reads any bytes, at every length (seed ${seed})`, () => {
    const length64 = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.constantFrom(65_535n, 65_536n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n),
      fc.constantFrom(2n ** 63n - 1n, 2n ** 63n),
    );
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 14, maxLength: 14 }),
        fc.constantFrom(null, 0x81, 0x82, 0x02, 0x80, 0x8a),
        fc.constantFrom(null, 0x7e, 0x7f, 0xfe, 0xff),
        fc.option(length64),
        fc.nat({ max: 15 }),
        fc.oneof(fc.maxSafeNat(), fc.constant(Number.MAX_SAFE_INTEGER)),
        fc.nat({ max: 5 }),
        (header, first, second, length, flags, limit, start) => {
          const bytes = new Uint8Array(start + 20).fill(0xff);
          bytes.set(header, start);
          if (first !== null) bytes[start] = first;
          if (second !== null) bytes[start + 1] = second;
          if (length !== null) {
            new DataView(bytes.buffer).setBigUint64(start + 2, length);
          }
          for (let there = 0; there <= 16; there++) {
            compare(bytes, start, start + there, flags, limit);
          }
        },
      ),
      { seed, numRuns: 2000 },
    );
  });

  it("never needs more than the longest header", () => {
    const bytes = new Uint8Array(20);
    bytes.set([0x82, 0xff, 0, 0, 0, 0, 1]);
    const found = parseHeader(bytes, 0, 20, 0, Number.MAX_SAFE_INTEGER);
    assertEquals(found, MAX_HEADER_LENGTH);
    assert(parseHeader(bytes, 0, found - 1, 0, Number.MAX_SAFE_INTEGER) === 0);
  });
});
