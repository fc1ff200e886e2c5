/** UTF-8 of messages, against the engines' decoder and the definition of RFC 3629. */

import process from "node:process";
import { describe, it } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { decodeText, Utf8Validator } from "../src/connection/utf8.ts";

const seed = Number(process.env.WSFRAME_SEED ?? Date.now() % 2 ** 31);

/** Whether these bytes are the beginning of some UTF-8, by what may follow them. */
function isBeginning(bytes: Uint8Array): boolean {
  // Of a character of at most 4 bytes up to 3 can be missing: the last ones are its own.
  const rests = [[], [0x80], [0x90], [0xa0], [0x80, 0x80], [0x90, 0x80]]
    .concat([[0xa0, 0x80], [0x80, 0x80, 0x80], [0x90, 0x80, 0x80]]);
  return rests.some((rest) => isUtf8(Uint8Array.of(...bytes, ...rest)));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isUtf8(bytes: Uint8Array): boolean {
  try {
    strict.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Where the first byte is with which `bytes` can be no UTF-8 any more. */
function firstWrong(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length && isBeginning(bytes.subarray(0, at + 1))) at++;
  return at;
}

/** Text, and bytes that nearly are text. */
const almostText = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit: "binary", maxLength: 5 }) },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ minLength: 1, maxLength: 3 }),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        ...[[0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80]],
        ...[[0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80]],
      ).map((bytes) => Uint8Array.from(bytes)),
    },
  ),
  { maxLength: 6 },
).map((parts) => {
  const encoder = new TextEncoder();
  return Uint8Array.from(
    parts.flatMap((part) => [
      ...(typeof part === "string" ? encoder.encode(part) : part),
    ]),
  );
});

describe("Utf8Validator", () => {
  it(`finds the first wrong byte, however the text is cut (seed ${seed})`, () => {
    fc.assert(
      fc.property(almostText, (bytes) => {
        const wrong = firstWrong(bytes);
        const validator = new Utf8Validator();
        for (let cut = 0; cut <= bytes.length; cut++) {
          validator.reset();
          let at = validator.push(bytes, 0, cut);
          if (at === cut) at = validator.push(bytes, cut, bytes.length);
          assertEquals(at, wrong, `cut at ${cut}`);
          if (wrong < bytes.length) continue;
          assertEquals(validator.complete, isUtf8(bytes));
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  it("finds it at every place in long ASCII, at every alignment", () => {
    const memory = new Uint8Array(300).fill(0x61);
    for (let align = 0; align < 4; align++) {
      const bytes = memory.subarray(align, align + 280);
      for (let at = 0; at < bytes.length; at++) {
        bytes[at] = 0xff;
        const validator = new Utf8Validator();
        assertEquals(validator.push(bytes, 0, bytes.length), at);
        // A character under way is looked at, too, before ASCII is skipped.
        bytes[at] = 0xc3;
        validator.reset();
        const last = at === bytes.length - 1;
        assertEquals(
          validator.push(bytes, 0, bytes.length),
          last ? bytes.length : at + 1,
        );
        bytes[at] = 0x61;
      }
    }
  });

  it("knows every character there is", () => {
    const encoder = new TextEncoder();
    const validator = new Utf8Validator();
    for (let code = 0; code <= 0x10ffff; code += code < 0x3000 ? 1 : 97) {
      if (code >= 0xd800 && code < 0xe000) continue;
      const bytes = encoder.encode(String.fromCodePoint(code));
      const end = validator.push(bytes, 0, bytes.length);
      if (end !== bytes.length || !validator.complete) {
        assertEquals(end, bytes.length, `U+${code.toString(16)}`);
      }
    }
  });
});

describe("decodeText", () => {
  it(`decodes what the engine does, and refuses what it refuses (seed ${seed})`, () => {
    fc.assert(
      fc.property(almostText, fc.nat({ max: 3 }), (part, copies) => {
        const bytes = new Uint8Array(part.length * (1 + 10 * copies) + 2);
        bytes.fill(0xff); // which stands outside of the range
        const end = bytes.length - 1;
        for (let at = 1; at < end; at += part.length || 1) bytes.set(part, at);
        const range = bytes.subarray(1, end);
        assertEquals(
          decodeText(bytes, 1, end),
          isUtf8(range) ? strict.decode(range) : null,
        );
      }),
      { seed, numRuns: 1000 },
    );
  });

  it("passes on what an engine throws for other reasons than wrong bytes", () => {
    const { decode } = TextDecoder.prototype;
    const tooLong = new RangeError("A text that no string can hold");
    TextDecoder.prototype.decode = () => {
      throw tooLong;
    };
    try {
      const bytes = new TextEncoder().encode("a".repeat(200) + "\u20ac");
      const end = bytes.length;
      assertEquals(assertThrows(() => decodeText(bytes, 0, end)), tooLong);
      assertEquals(decodeText(bytes, 0, end - 1), null);
      bytes[0] = 0xff;
      assertEquals(decodeText(bytes, 0, end), null);
    } finally {
      TextDecoder.prototype.decode = decode;
    }
  });

  it("decodes ASCII of every short length", () => {
    const bytes = new Uint8Array(300).map((_, i) => i % 128);
    for (let length = 0; length < 200; length++) {
      assertEquals(
        decodeText(bytes, 100, 100 + length),
        strict.decode(bytes.subarray(100, 100 + length)),
      );
    }
  });
});
