/**
 * Masking keys: the only randomness in the library.
 *
 * @module
 */

/**
 * Random words, drawn 4096 at a time: `crypto.getRandomValues` costs 0.5 to 1.5 us a
 * call besides what it fills. An index past the end means that the pool is spent.
 */
const pool: Int32Array<ArrayBuffer> = new Int32Array(4096);
let next: number = pool.length;

function refill(): void {
  crypto.getRandomValues(pool);
  next = 0;
}

/** A fresh key as one 32-bit number, unpredictable as RFC 6455 section 10.3 asks. */
export function nextMaskKey(): number {
  if (next === pool.length) refill();
  const key = pool[next]!;
  pool[next++] = 0; // no key is kept after its use
  return key;
}

/**
 * Makes a masking key from a strong source of randomness, as RFC 6455 section 5.3
 * requires for every frame of a client. The writers do it by themselves.
 *
 * @returns Four fresh random bytes
 *
 * @example
 * ```ts
 * import { generateMaskKey, writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const maskKey = generateMaskKey();
 * const bytes = writeFrame({ opcode: 1, payload: "hi" }, { maskKey });
 * assertEquals(bytes.subarray(2, 6), maskKey);
 * ```
 */
export function generateMaskKey(): Uint8Array<ArrayBuffer> {
  return keyBytes(nextMaskKey());
}

/** The four bytes of a key that travels as a number. */
export function keyBytes(key: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4);
  bytes[0] = key;
  bytes[1] = key >>> 8;
  bytes[2] = key >>> 16;
  bytes[3] = key >>> 24;
  return bytes;
}
