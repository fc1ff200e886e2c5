/** Reading one header, against the obvious way to read it. */

import process from "node:process";
import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { HEADER_FAULTS } from "../src/check.ts";
import { MAX_HEADER_LENGTH, parsed, parseHeader } from "../src/header.ts";
import { readHeader } from "./reference.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

/** Both ways, with what they find in the same words. */
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
