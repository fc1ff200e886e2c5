/** The rules over the parts of a header, and the checks of arguments. */

import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { runInNewContext } from "node:vm";
import { assertEquals, assertThrows } from "@std/assert";
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
  NO_CHECKS,
  shown,
} from "../src/check.ts";

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
