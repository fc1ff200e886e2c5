/** Random frames for property tests: mostly right, so that reading comes far. */

import fc from "fast-check";
import { EXPECT_MASK, EXPECT_NO_MASK } from "../src/check.ts";
import { concat, randomBytes, seeded } from "./vectors.ts";

const LENGTHS = [124, 125, 126, 127, 128, 65_535, 65_536];
/** Lengths that are declared, but are not there. */
const HOSTILE = [
  ...[2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n - 1n],
  ...[2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n],
];

interface Shape {
  first: number;
  length: number;
  key: Uint8Array;
  masked: boolean;
  /** Masked where that is a fault, or not masked where that is one. */
  wrongMask: boolean;
  longForm: boolean;
  /** Declares `lie` for its length. */
  lies: boolean;
  lie: bigint;
}

/** What a stream of bytes is made from. */
export interface Stream {
  frames: Shape[];
  /** Bytes that were changed on the way: where, of all, and how. */
  changes: [number, number][];
  noise: Uint8Array;
  /** Bytes that are not there at the end. */
  missing: number;
  /** The seed of the payloads. */
  content: number;
}

// Without the bias of fast-check, for which the least values are as likely as all others.
const rarely = fc.noBias(fc.nat({ max: 59 })).map((dice) => dice === 0);

/** Streams of at most so many frames, each of at most `longest` bytes. */
export function streams(
  longest: number,
  frames: number,
): fc.Arbitrary<Stream> {
  const shape = fc.record({
    first: fc.oneof(
      { weight: 60, arbitrary: fc.constantFrom(0x80, 0x81, 0x82, 0x01, 0x00) },
      { weight: 20, arbitrary: fc.constantFrom(0x88, 0x89, 0x8a) },
      { weight: 2, arbitrary: fc.constantFrom(0xc1, 0x42) },
      { weight: 1, arbitrary: fc.noBias(fc.nat({ max: 255 })) },
    ),
    length: fc.oneof(
      fc.nat({ max: 40 }),
      fc.constantFrom(...LENGTHS.filter((length) => length <= longest)),
      fc.nat({ max: longest }),
    ),
    key: fc.oneof(
      { weight: 5, arbitrary: fc.uint8Array({ minLength: 4, maxLength: 4 }) },
      { weight: 1, arbitrary: fc.constant(new Uint8Array(4)) },
    ),
    masked: fc.boolean(),
    wrongMask: rarely,
    longForm: rarely,
    lies: rarely,
    lie: fc.oneof(
      fc.constantFrom(...HOSTILE),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    ),
  });
  const change = fc.tuple(fc.nat({ max: 2 ** 30 }), fc.nat({ max: 255 }));
  return fc.record({
    frames: fc.noBias(fc.array(shape, { maxLength: frames, size: "max" })),
    changes: fc.oneof(
      { weight: 3, arbitrary: fc.constant<[number, number][]>([]) },
      { weight: 1, arbitrary: fc.array(change, { maxLength: 3 }) },
    ),
    noise: fc.uint8Array({ maxLength: 20 }),
    missing: fc.nat({ max: 20 }),
    content: fc.nat(),
  });
}

/** The bytes of a stream, masked as rules with these `flags` (`check.ts`) want it. */
export function bytesOf(stream: Stream, flags: number): Uint8Array {
  const { frames, changes, noise, missing, content } = stream;
  const random = seeded(content);
  const bytes = concat([
    ...frames.map((shape) => frameBytes(shape, flags, random)),
    noise,
  ]);
  for (const [at, change] of changes) bytes[at % bytes.length] ^= change;
  return bytes.subarray(0, Math.max(0, bytes.length - missing));
}

function frameBytes(
  { first, length, key, masked, wrongMask, longForm, lies, lie }: Shape,
  flags: number,
  random: (below: number) => number,
): Uint8Array {
  const wanted = flags & EXPECT_MASK
    ? true
    : flags & EXPECT_NO_MASK
    ? false
    : masked;
  const mask = wanted !== wrongMask;
  if ((first & 8) !== 0) length %= 126;
  if (first === 0x88 && length === 1) length = 2;
  const declared = lies ? lie : BigInt(length);
  const form = declared > 65535n || longForm ? 8 : declared > 125n ? 2 : 0;
  const head = new DataView(new ArrayBuffer(2 + form));
  const short = form === 8 ? 127 : form === 2 ? 126 : Number(declared);
  head.setUint8(0, first);
  head.setUint8(1, short + (mask ? 0x80 : 0));
  if (form === 2) head.setUint16(2, Number(declared));
  if (form === 8) head.setBigUint64(2, declared);
  return concat([
    new Uint8Array(head.buffer),
    mask ? key : new Uint8Array(0),
    randomBytes(length, random),
  ]);
}
