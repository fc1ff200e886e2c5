/**
 * Memory that grows with the bytes that arrive.
 *
 * @module
 */

import { allocate } from "../memory.ts";
import { maskRangeInto } from "../mask.ts";

const NOTHING: Uint8Array = new Uint8Array(0);

/** Bytes put together from pieces. The memory follows what arrived, not what was announced. */
export class Gather {
  readonly #limit: number;
  #bytes: Uint8Array = NOTHING;
  #length = 0;

  /** @param limit The most bytes there will be; memory does not grow beyond that */
  constructor(limit: number = Number.MAX_SAFE_INTEGER) {
    this.#limit = limit;
  }

  /** How many bytes there are. */
  get length(): number {
    return this.#length;
  }

  /** The memory that holds them; good until the next {@linkcode append}. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /**
   * Appends `source[start .. end)`, unmasked with `key`. `expected` is how long the whole
   * is known to become, or 0: memory grows by doubling; towards a known end it grows
   * fourfold, and not beyond.
   */
  append(
    source: Uint8Array,
    start: number,
    end: number,
    key: number,
    expected: number,
  ): void {
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      const grown = allocate(
        expected >= length
          ? Math.min(4 * length, expected)
          : Math.min(Math.max(2 * length, 64), Math.max(length, this.#limit)),
      );
      maskRangeInto(grown, 0, this.#bytes, 0, this.#length, 0);
      this.#bytes = grown;
    }
    // Also without a key: `set` is slow at some alignments, and needs two more views.
    maskRangeInto(this.#bytes, this.#length, source, start, end - start, key);
    this.#length = length;
  }

  /** Keeps the first `length` bytes. */
  cut(length: number): void {
    this.#length = length;
  }

  /** All of it, as memory of its own, and none of it is left here. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    const length = this.#length;
    this.#bytes = NOTHING;
    this.#length = 0;
    if (length === bytes.length) return bytes;
    const exact = allocate(length);
    maskRangeInto(exact, 0, bytes, 0, length, 0);
    return exact;
  }

  /** Forgets all of it. */
  clear(): void {
    this.#bytes = NOTHING;
    this.#length = 0;
  }
}
