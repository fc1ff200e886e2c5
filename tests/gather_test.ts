/** Memory that grows with the bytes that arrive. */

import process from "node:process";
import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import "../src/backend/list.ts"; // what unmasks
import { Gather } from "../src/connection/gather.ts";
import { concat } from "./vectors.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

function filled(length: number, byte: number): Uint8Array {
  return new Uint8Array(length).fill(byte);
}

describe("Gather", () => {
  it(`puts pieces together, unmasked (seed ${seed})`, () => {
    const piece = fc.record({
      bytes: fc.uint8Array({ maxLength: 300 }),
      start: fc.nat({ max: 3 }),
      key: fc.oneof(fc.constant(0), fc.integer()),
    });
    fc.assert(
      fc.property(fc.array(piece), fc.boolean(), (pieces, known) => {
        const expected = concat(
          pieces.map(({ bytes, key }) =>
            bytes.map((byte, i) => byte ^ key >>> 8 * (i % 4))
          ),
        );
        const gather = new Gather();
        for (const { bytes, start, key } of pieces) {
          const source = new Uint8Array(start + bytes.length + 1);
          source.set(bytes, start);
          gather.append(
            source,
            start,
            start + bytes.length,
            key,
            known ? expected.length : 0,
          );
        }
        assertEquals(gather.length, expected.length);
        assertEquals(gather.bytes.slice(0, gather.length), expected);
        assertEquals(gather.take(), expected);
        assertEquals(gather.length, 0);
      }),
      { seed },
    );
  });

  it("takes no memory for what was only announced", () => {
    const gather = new Gather();
    gather.append(filled(100, 1), 0, 100, 0, 2 ** 50);
    assert(gather.bytes.length <= 400, `${gather.bytes.length} bytes`);
  });

  it("takes just as much as is announced towards the end", () => {
    const gather = new Gather();
    for (let i = 0; i < 10; i++) gather.append(filled(100, i), 0, 100, 0, 1000);
    const { bytes } = gather;
    assertEquals(bytes.length, 1000);
    assert(gather.take() === bytes, "copied once more");
  });

  it("keeps memory near what arrived, and below its limit", () => {
    const gather = new Gather(5000);
    const piece = filled(37, 7);
    let grown = 0;
    for (let length = 37; length <= 5000; length += 37) {
      const before = gather.bytes;
      gather.append(piece, 0, 37, 0, 0);
      if (gather.bytes !== before) grown++;
      const { length: size } = gather.bytes;
      assert(size <= Math.max(64, 2 * length) && size <= 5000);
    }
    assert(grown <= 10, `grown ${grown} times`);
  });

  it("goes on anew after take, cut and clear, and leaves what it gave alone", () => {
    const gather = new Gather();
    gather.append(filled(10, 1), 0, 10, 0, 0);
    const first = gather.take();
    gather.append(filled(20, 2), 0, 20, 0, 0);
    gather.cut(5);
    gather.append(filled(5, 3), 0, 5, 0, 0);
    assertEquals(gather.take(), concat([filled(5, 2), filled(5, 3)]));
    gather.append(filled(20, 4), 0, 20, 0, 0);
    gather.clear();
    assertEquals([gather.length, gather.take().length], [0, 0]);
    assertEquals(first, filled(10, 1));
  });
});
