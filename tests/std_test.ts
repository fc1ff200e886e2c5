/**
 * What the tests rely on in `@std/assert` and `@std/testing`: the stand-ins
 * and the real packages give the same verdicts.
 */

import { describe, it } from "node:test";
import {
  assert,
  assertAlmostEquals,
  assertArrayIncludes,
  assertEquals,
  assertExists,
  assertFalse,
  assertGreater,
  assertInstanceOf,
  AssertionError,
  assertLess,
  assertMatch,
  assertNotEquals,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  fail,
} from "@std/assert";
import {
  assertSpyCall,
  assertSpyCalls,
  returnsNext,
  spy,
  stub,
} from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";

function refused(fn: () => unknown): AssertionError {
  return assertThrows(fn, AssertionError);
}

describe("assertEquals", () => {
  const circular: unknown[] = [1];
  circular.push(circular);
  const sameCircular: unknown[] = [1];
  sameCircular.push(sameCircular);
  const same: [string, unknown, unknown][] = [
    ["NaN", NaN, NaN],
    ["zeros of either sign", 0, -0],
    ["arrays", [1, [2]], [1, [2]]],
    ["objects in any order", { a: 1, b: 2 }, { b: 2, a: 1 }],
    ["no prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["bytes", Uint8Array.of(1, 2), Uint8Array.of(9, 1, 2).subarray(1)],
    ["maps", new Map([[{ a: 1 }, 2]]), new Map([[{ a: 1 }, 2]])],
    ["sets in any order", new Set([[1], [2]]), new Set([[2], [1]])],
    ["dates", new Date(5), new Date(5)],
    ["circles", circular, sameCircular],
  ];
  for (const [name, a, b] of same) {
    it(`takes ${name} as equal`, () => {
      assertEquals(a, b);
      refused(() => assertNotEquals(a, b));
    });
  }
  const different: [string, unknown, unknown][] = [
    ["types", 1, "1"],
    ["null and undefined", null, undefined],
    ["lengths", [1], [1, undefined]],
    ["a key that is there and undefined", { a: undefined }, {}],
    ["classes", Uint8Array.of(1), Uint16Array.of(1)],
    ["a class and a plain object", new (class A {})(), {}],
    ["bytes", Uint8Array.of(1, 2), Uint8Array.of(1, 3)],
    ["members of sets", new Set([1, 2]), new Set([1, 3])],
    ["values of maps", new Map([[1, 2]]), new Map([[1, 3]])],
  ];
  for (const [name, a, b] of different) {
    it(`tells ${name} apart`, () => {
      assertNotEquals(a, b);
      refused(() => assertEquals(a, b));
    });
  }
  it("adds the caller's words", () => {
    assertStringIncludes(
      refused(() => assertEquals(1, 2, "case 7")).message,
      "case 7",
    );
  });
});

describe("other assertions", () => {
  it("pass and fail where they should", () => {
    assert(1);
    refused(() => assert(0));
    assertFalse(0);
    refused(() => assertFalse(1));
    assertStrictEquals(NaN, NaN);
    refused(() => assertStrictEquals([], []));
    assertExists(0);
    refused(() => assertExists(null));
    assertInstanceOf(new TypeError(), Error);
    refused(() => assertInstanceOf(1, Error));
    assertGreater(2, 1);
    refused(() => assertGreater(1, 1));
    assertLess(1, 2);
    refused(() => assertLess(1, 1));
    assertAlmostEquals(0.1 + 0.2, 0.3);
    assertAlmostEquals(1, 1.5, 0.5);
    refused(() => assertAlmostEquals(1, 1.5, 0.4));
    assertStringIncludes("abc", "b");
    refused(() => assertStringIncludes("abc", "d"));
    assertMatch("abc", /b/);
    refused(() => assertMatch("abc", /d/));
    assertArrayIncludes([[1], [2]], [[2]]);
    refused(() => assertArrayIncludes([1], [2]));
    refused(() => fail("here"));
  });
});

describe("assertThrows and assertRejects", () => {
  const bad = () => {
    throw new RangeError("out of range");
  };
  it("give the error back", async () => {
    assertInstanceOf(assertThrows(bad), RangeError);
    assertEquals(assertThrows(bad, RangeError).message, "out of range");
    const error = await assertRejects(() => Promise.reject(new Error("no")));
    assertInstanceOf(error, Error);
  });
  it("refuse another class, another message and no error", async () => {
    refused(() => assertThrows(bad, TypeError));
    refused(() => assertThrows(bad, RangeError, "in range"));
    refused(() => assertThrows(() => 1));
    refused(() =>
      assertThrows(() => {
        throw "a string";
      }, Error)
    );
    await assertRejects(
      () => assertRejects(() => Promise.resolve()),
      AssertionError,
    );
    await assertRejects(
      () => assertRejects(() => Promise.reject(new Error("no")), TypeError),
      AssertionError,
    );
  });
});

describe("spies", () => {
  it("record calls", () => {
    const double = spy((n: number) => 2 * n);
    assertEquals(double(2), 4);
    assertSpyCalls(double, 1);
    assertSpyCall(double, 0, { args: [2], returned: 4 });
    refused(() => assertSpyCalls(double, 2));
    refused(() => assertSpyCall(double, 0, { args: [3] }));
    refused(() => assertSpyCall(double, 1));
  });
  it("stand in for a method and give it back", () => {
    const target = { roll: () => 1 };
    const { roll } = target;
    const stubbed = stub(target, "roll", returnsNext([4, new Error("worn")]));
    assertEquals(target.roll(), 4);
    assertThrows(() => target.roll(), Error, "worn");
    assertSpyCalls(stubbed, 2);
    stubbed.restore();
    assertStrictEquals(target.roll, roll);
  });
});

describe("FakeTime", () => {
  it("moves clocks and timers when told", async () => {
    const time = new FakeTime(1000);
    try {
      const seen: number[] = [];
      setTimeout(() => seen.push(Date.now()), 20);
      const every = setInterval(() => seen.push(Date.now()), 8);
      time.tick(19);
      assertEquals(seen, [1008, 1016]);
      await time.tickAsync(2);
      assertEquals(seen, [1008, 1016, 1020]);
      assertEquals(Date.now(), 1021);
      clearInterval(every);
      assertFalse(time.next());
    } finally {
      time.restore();
    }
    assertGreater(Date.now(), 1021);
  });
});
