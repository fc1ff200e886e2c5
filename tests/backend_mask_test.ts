/**
 * `mask` and `maskInto` of every engine, called as such: the public functions leave what
 * is short to TypeScript. The vectors, and a byte loop for every size, alignment and phase.
 */

import { describe, it } from "node:test";
import { assertEquals, fail } from "@std/assert";
import type { Backend } from "../src/backend/backend.ts";
import { rotateKey } from "../src/backend/portable.ts";
import { engines } from "./engines.ts";
import {
  bytesOf,
  hex,
  inputOf,
  maskCases,
  randomBytes,
  seeded,
  sha256,
} from "./vectors.ts";

const GUARD = 32;
const KEY = 0x3d21fa37;

const LONGEST = 0x10000 + 64;
const source = randomBytes(LONGEST + 32, seeded(1));
const memory = new Uint8Array(GUARD + LONGEST + 32 + GUARD);
const into = new Uint8Array(memory.length);

/** Masks both ways, `align` bytes behind a multiple of 32, between guard bytes. */
function check(backend: Backend, size: number, align: number, phase: number) {
  const start = GUARD + align;
  const key = rotateKey(KEY, phase);
  // Only near the range: all of the memory would take ten times as long.
  memory.fill(0xa5, start - GUARD, start + size + GUARD);
  into.fill(0xa5, start - GUARD, start + size + GUARD);
  for (let i = 0; i < size; i++) memory[start + i] = source[align + i]!;
  backend.mask(memory, start, size, key);
  backend.maskInto(into, start, source, align, size, key);
  for (let i = -GUARD; i < size + GUARD; i++) {
    const expected = i < 0 || i >= size
      ? 0xa5
      : source[align + i]! ^ KEY >>> 8 * (phase + i & 3) & 0xff;
    if (memory[start + i] !== expected || into[start + i] !== expected) {
      fail(`size ${size}, at ${start}, phase ${phase}: byte ${i}`);
    }
  }
}

describe("masking", () => {
  for (const { title, backend } of engines) {
    it(`gives what the vectors say, on ${title}`, () => {
      for (const vector of maskCases) {
        const input = inputOf(vector);
        const view = new DataView(bytesOf(vector.key).buffer);
        const key = rotateKey(view.getInt32(0, true), vector.phase);
        const into = new Uint8Array(input.length);
        backend.maskInto(into, 0, input, 0, input.length, key);
        backend.mask(input, 0, input.length, key);
        for (const bytes of [input, into]) {
          if (vector.output !== undefined) {
            assertEquals(hex(bytes), vector.output, vector.name);
          }
          if (vector.outputSha256 !== undefined) {
            assertEquals(sha256(bytes), vector.outputSha256, vector.name);
          }
        }
      }
    });

    it(`agrees with a byte loop, on ${title}`, () => {
      for (let size = 0; size <= 1024; size++) {
        for (let align = 0; align < 32; align++) {
          for (let phase = 0; phase < 4; phase++) {
            check(backend, size, align, phase);
          }
        }
      }
    });

    it(`agrees with it on long ranges, on ${title}`, () => {
      // Either side of 64 KiB, where words of 64 bits may take over.
      for (let size = 0x10000 - 9; size <= 0x10000 + 24; size++) {
        for (let i = 0; i < 3; i++) check(backend, size, size * 5 + i & 31, i);
      }
    });
  }
});
