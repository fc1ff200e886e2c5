/** The helpers that feed the shared vectors to the library. */

import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertThrows,
} from "@std/assert";
import {
  bytesOf,
  concat,
  everyCut,
  frameCases,
  hex,
  maskCases,
  messageCases,
  randomBytes,
  seeded,
  withTrailing,
  writeCases,
} from "./vectors.ts";

describe("vectors", () => {
  it("are all there, and each name once", () => {
    for (const cases of [maskCases, frameCases, writeCases, messageCases]) {
      assert(cases.length > 50);
      assertEquals(new Set(cases.map(({ name }) => name)).size, cases.length);
    }
  });
  it("mean bytes", () => {
    assertEquals(bytesOf("00ff"), Uint8Array.of(0, 255));
    assertEquals(bytesOf({ repeat: "0102", times: 2 }), bytesOf("01020102"));
    assertEquals(
      bytesOf(["01", { repeat: "02", times: 2 }]),
      bytesOf("010202"),
    );
    assertEquals(hex(bytesOf("00ff7e")), "00ff7e");
    assertThrows(() => bytesOf("0"), TypeError);
    assertThrows(() => bytesOf("0g"), TypeError);
  });
});

describe("everyCut", () => {
  it("cuts short input at every byte", () => {
    const bytes = bytesOf("810548656c6c6f");
    const cuts = [...everyCut(bytes)];
    assertEquals(cuts.map(({ chunks }) => chunks.map((c) => c.length)), [
      [7],
      [1, 1, 1, 1, 1, 1, 1],
      ...[1, 2, 3, 4, 5, 6].map((at) => [at, 7 - at]),
    ]);
    for (const { chunks } of cuts) assertEquals(concat(chunks), bytes);
  });
  it("cuts long input near every header", () => {
    const first = concat([bytesOf("827e07d0"), new Uint8Array(2000)]);
    const bytes = concat([first, bytesOf("8900"), first]);
    const cuts = [...everyCut(bytes)];
    const places = cuts.slice(2).map(({ chunks }) => chunks[0].length);
    for (let near = 0; near < 16; near++) {
      assert(places.includes(1 + near));
      assert(places.includes(first.length + near));
      assert(places.includes(first.length + 2 + near));
      assert(places.includes(bytes.length - 1 - near));
    }
    assert(places.length < 300);
    for (const { chunks } of cuts) assertEquals(concat(chunks), bytes);
  });
  it("gives chunks that share no memory with the input", () => {
    const bytes = bytesOf("8100");
    for (const { chunks } of everyCut(bytes)) chunks[0].fill(0);
    for (const { chunks } of withTrailing(bytes, bytes)) chunks[0].fill(0);
    assertEquals(bytes, bytesOf("8100"));
  });
  it("gives nothing to cut in an empty input", () => {
    assertEquals([...everyCut(new Uint8Array())].length, 2);
  });
});

describe("seeded", () => {
  it("repeats itself for one seed and not for another", () => {
    const bytes = randomBytes(1000, seeded(7));
    assertEquals(randomBytes(1000, seeded(7)), bytes);
    assertNotEquals(randomBytes(1000, seeded(8)), bytes);
    assert(new Set(bytes).size > 200);
  });
});
