/**
 * A checksum that tells a damaged library from a good one before it is opened: the
 * loader of the operating system would crash on one. It is no protection from an
 * attacker, who could change it as well.
 *
 * @module
 */

/**
 * A hash of 32 bits. Each step is one-to-one in each word (odd factors), so that any
 * change of one word shows. The loop runs once in a process, so it is made for
 * interpreters: eight words a round take 0.1 ms for 10 KB, one word a round 0.3 ms
 * and a compilation of up to 2 ms.
 */
export function checksum(bytes: Uint8Array): number {
  const padded = new Uint8Array(bytes.length + 31 & ~31);
  padded.set(bytes);
  const w = new Int32Array(padded.buffer);
  let hash = bytes.length;
  for (let i = 0; i < w.length; i += 8) {
    const sum = hash ^ w[i]! ^ w[i + 1]! * 3 ^ w[i + 2]! * 5 ^ w[i + 3]! * 7 ^
      w[i + 4]! * 9 ^ w[i + 5]! * 11 ^ w[i + 6]! * 13 ^ w[i + 7]! * 15;
    hash = (sum * 5 | 0) + 1;
  }
  return hash >>> 0;
}
