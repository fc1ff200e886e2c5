import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { generateMaskKey } from "@wsframe/wsframe";
import { hex } from "./vectors.ts";

describe("generateMaskKey", () => {
  it("gives four bytes of the caller's own, different each time", () => {
    const keys = Array.from({ length: 4000 }, generateMaskKey);
    for (const key of keys) assertEquals(key.length, 4);
    // 4000 keys of 32 random bits meet by chance once in 500 runs; twice, hardly ever.
    assert(new Set(keys.map(hex)).size >= 3998);
    assertEquals(new Set(keys.map((key) => key.buffer)).size, keys.length);
  });

  it("draws from crypto.getRandomValues, many keys at a time", () => {
    let calls = 0;
    const fill = stub(crypto, "getRandomValues", (array) => {
      calls++;
      new Uint8Array(array!.buffer).fill(0x5a);
      return array;
    });
    try {
      for (let i = 0; i < 5000; i++) generateMaskKey();
      assert(calls >= 1 && calls <= 10, `${calls} calls`);
      assertEquals(hex(generateMaskKey()), "5a5a5a5a");
    } finally {
      fill.restore();
    }
    for (let i = 0; i < 5000; i++) generateMaskKey();
    assert(hex(generateMaskKey()) !== "5a5a5a5a");
  });
});
