/**
 * Memory for what is handed out, at the lowest price each engine has, and which one it is.
 *
 * @module
 */

import { checkBytes } from "./check.ts";

/**
 * Whether a mistake gets V8's own words. A stack trace tells, too, but takes up to 2 ms to
 * be written; so does, in a large file, any throw under Deno. Under Bun one takes 0.1 ms.
 */
function speaksLikeV8(): boolean {
  try {
    "".repeat(-1);
  } catch (error) {
    return (error as Error).message === "Invalid count value: -1";
  }
  return false;
}

/**
 * Whether this is V8. There BigUint64Array arithmetic becomes machine words, and a view
 * into a block costs less than memory of its own; in JavaScriptCore 64-bit words are
 * heap BigInts, 40 times slower, and a small typed array of its own costs less than a
 * view.
 */
export const V8: boolean = "Deno" in globalThis ||
  !("Bun" in globalThis) && speaksLikeV8();

/**
 * The size of a block that small results share, in bytes. A fresh typed array costs
 * 300 to 1000 ns whatever its size, a view into a block 40 to 120 ns.
 */
const BLOCK_LENGTH = 0x10000;

/** Results from this length on get memory of their own, in bytes: keeping one keeps no block. */
const MIN_OWN_LENGTH = 0x4000;

/**
 * The same where memory is recycled: own memory then costs less than a share of a block.
 * What is shorter is not worth the looking.
 */
const MIN_RECYCLED_LENGTH = 0x800;

interface BufferConstructor {
  allocUnsafeSlow(length: number): Uint8Array<ArrayBuffer>;
}

/**
 * Node's and Bun's way to memory that is not cleared first, 4 to 10 times cheaper from
 * 64 KiB on; null before the first use, because the first look takes Bun 0.15 ms. Deno has
 * the name too, and clears; there, the look takes 5 ms.
 */
let unsafe: BufferConstructor | undefined | null = null;

function findUnsafe(): BufferConstructor | undefined {
  if ("Deno" in globalThis) return undefined;
  const { Buffer } = globalThis as { Buffer?: BufferConstructor };
  return typeof Buffer?.allocUnsafeSlow === "function" ? Buffer : undefined;
}

/** From this length on memory that is not cleared is the cheaper one, in bytes. */
const MIN_UNSAFE_LENGTH = 512;

/** Memory of its own, not cleared where the engine allows that. */
export function allocateBlock(length: number): Uint8Array<ArrayBuffer> {
  if (length < MIN_UNSAFE_LENGTH) return new Uint8Array(length);
  if (unsafe === null) unsafe = findUnsafe();
  if (unsafe === undefined) return new Uint8Array(length);
  return new Uint8Array(unsafe.allocUnsafeSlow(length).buffer, 0, length);
}

/**
 * The block that small results share now, its buffer (asking a view for it costs V8 as
 * much as making one), and how much of it is theirs.
 */
let block: Uint8Array<ArrayBuffer> = new Uint8Array(0);
let { buffer } = block;
let used = 0;

function nextBlock(): void {
  block = allocateBlock(BLOCK_LENGTH);
  buffer = block.buffer;
  used = 0;
}

/** Up to this length JavaScriptCore has typed arrays that cost no more than an object, in bytes. */
export const MAX_SMALL_LENGTH = 1000;

/** Whether memory comes back here once it was used. */
export function isRecycling(): boolean {
  return recycling;
}

/**
 * Short payloads that were given back, the last one of each length, and the one that was
 * handed out last. No other one is known again: to mark one costs more than to make one.
 */
const spares: (Uint8Array<ArrayBuffer> | undefined)[] = [];
let lastShort: Uint8Array<ArrayBuffer> | undefined;

/**
 * Memory of its own for a short payload, which may hold old bytes. Until the next one
 * {@linkcode recycle} takes it back. For JavaScriptCore.
 */
export function issueShort(length: number): Uint8Array<ArrayBuffer> {
  const spare = spares[length];
  // Its length is 0 after somebody transferred it away.
  if (spare?.length !== length) return lastShort = new Uint8Array(length);
  spares[length] = undefined;
  return lastShort = spare;
}

/** Whether a result of that length is alone in its memory, and may so be recycled. */
export function hasOwnMemory(length: number): boolean {
  return length >= (recycling ? MIN_RECYCLED_LENGTH : MIN_OWN_LENGTH);
}

/** Memory for one result. */
export function allocate(length: number): Uint8Array<ArrayBuffer> {
  return hasOwnMemory(length) ? issue(length) : share(length);
}

/**
 * Memory that is never recycled: for several results together, and for a short one,
 * which in V8 shares a block of 64 KiB with others.
 */
export function share(length: number): Uint8Array<ArrayBuffer> {
  if (length === 0 || !V8 && length <= MAX_SMALL_LENGTH) {
    return new Uint8Array(length);
  }
  if (length >= MIN_OWN_LENGTH) return allocateBlock(length);
  // Its length is 0 after somebody transferred it away.
  if (used + length > block.length) nextBlock();
  const bytes = new Uint8Array(buffer, used, length);
  used += (length + 7) & ~7;
  return bytes;
}

/** The most memory that waits for its next use, in bytes and in blocks. */
const MAX_KEPT_LENGTH = 0x400000;
const MAX_KEPT = 32;

/** Blocks, whole buffers each, that nobody uses now, and how long they were when they came. */
const kept: Uint8Array<ArrayBuffer>[] = [];
const keptLengths: number[] = [];
let keptLength = 0;

/**
 * Keeps a block that nothing else uses for {@linkcode takeBlock} and {@linkcode issue}; not
 * one that would be most of what is kept.
 *
 * @param block The block
 * @param used How many of its bytes were written since it was taken (default all)
 */
export function keep(
  block: Uint8Array<ArrayBuffer>,
  used: number = block.length,
): void {
  const { length } = block;
  if (length === 0 || 2 * length > MAX_KEPT_LENGTH) return;
  if (recycling) Issued.use(block, used);
  keptLength += length;
  while (keptLength > MAX_KEPT_LENGTH || kept.length === MAX_KEPT) {
    kept.shift();
    keptLength -= keptLengths.shift()!;
  }
  kept.push(block);
  keptLengths.push(length);
}

/** The block kept last of those with `least` to `most` bytes. */
function unkeep(
  least: number,
  most: number,
): Uint8Array<ArrayBuffer> | undefined {
  for (let i = kept.length - 1; i >= 0; i--) {
    const block = kept[i]!;
    // 0 after somebody transferred it away.
    const { length } = block;
    if (length < least || length > most) continue;
    keptLength -= length;
    const last = kept.pop()!;
    const lastLength = keptLengths.pop()!;
    if (i < kept.length) {
      kept[i] = last;
      keptLengths[i] = lastLength;
    }
    return block;
  }
  return undefined;
}

/** A block to write to, of `length` bytes or up to twice as many, that may hold old bytes. */
export function takeBlock(length: number): Uint8Array<ArrayBuffer> {
  return unkeep(length, 2 * length) ?? allocateBlock(length);
}

/** Makes its argument the object that a class below it puts its private fields on. */
const Given = function (buffer: ArrayBuffer) {
  return buffer;
} as unknown as new (buffer: ArrayBuffer) => object;

/**
 * Marks buffers with a private field: that costs a tenth of adding to a WeakSet, and
 * deleting from one takes V8 microseconds.
 */
class Issued extends Given {
  readonly #block: Uint8Array<ArrayBuffer>;
  #view: Uint8Array | null = null;
  /** Behind so many bytes this module wrote nothing: all are 0, unless the caller did. */
  #used: number;

  private constructor(block: Uint8Array<ArrayBuffer>) {
    super(block.buffer);
    this.#block = block;
    this.#used = block.length;
  }

  /**
   * Remembers that a view of a block's first bytes is the caller's, and with it all of the
   * block, of which the rest is cleared unless it is.
   */
  static begin(block: Uint8Array<ArrayBuffer>, view: Uint8Array): void {
    const { buffer } = block;
    if (!(#view in buffer)) new Issued(block);
    const issued = buffer as unknown as Issued;
    const { length } = view;
    if (length < issued.#used) block.fill(0, length, issued.#used);
    issued.#used = length;
    issued.#view = view;
  }

  /** Remembers that bytes were written to a block that is not the caller's. */
  static use(block: Uint8Array<ArrayBuffer>, length: number): void {
    const { buffer } = block;
    if (#view in buffer && length > buffer.#used) buffer.#used = length;
  }

  /** The block, if the caller had just this view into it; it is no longer the caller's. */
  static end(view: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    const { buffer } = view;
    if (!(#view in buffer) || buffer.#view !== view) return undefined;
    buffer.#view = null;
    return buffer.#block;
  }
}

/** Whether anything was ever given back: nobody else pays for the marks. */
let recycling = false;

/**
 * Gives the first `length` bytes of a block to the caller, with all of the block. What
 * others left behind those is cleared: the caller can reach it.
 */
export function issueBlock(
  block: Uint8Array<ArrayBuffer>,
  length: number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(block.buffer, 0, length);
  if (recycling && length >= MIN_RECYCLED_LENGTH) Issued.begin(block, bytes);
  else if (length < block.length) block.fill(0, length);
  return bytes;
}

/** Memory for one result that {@linkcode recycle} knows again; nothing shares its buffer. */
export function issue(length: number): Uint8Array<ArrayBuffer> {
  if (!recycling || length < MIN_RECYCLED_LENGTH) return allocateBlock(length);
  const block = unkeep(length, 2 * length) ?? allocateBlock(length);
  return issueBlock(block, length);
}

/**
 * Gives back memory that this module handed out, when nobody uses it any more, and only
 * once: what comes later then needs no fresh memory, which costs more than reading or
 * writing the frames. For servers and load generators that move much data; nobody needs to
 * call it. At most 4 MiB are kept, in at most 32 blocks of at most 2 MiB, in each thread.
 *
 * It takes what `take`, `takeOutput` and `writeFrame` returned, once it was written, and
 * payloads of frames of the iterator and data of a Connection's events, each just as it
 * was returned and from 2 KiB on; in JavaScriptCore (Bun) payloads of up to 256 bytes, too,
 * until the next one is handed out. All else is left alone: what is shorter shares memory
 * with others, and a part of the bytes, a view into a pushed chunk (`inPlace`), and what
 * was given back before or transferred are not this module's.
 *
 * @param bytes The bytes, which nobody may use any more
 * @throws {TypeError} When `bytes` is not a Uint8Array
 *
 * @example
 * ```ts
 * import { FrameReader, recycle, writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const reader = new FrameReader();
 * const chunk = writeFrame({ opcode: 2, payload: new Uint8Array(100_000) });
 * let length = 0;
 * for (let i = 0; i < 3; i++) {
 *   for (const { payload } of reader.push(chunk)) {
 *     length += payload.length;
 *     recycle(payload); // the next frame may stand in the same memory
 *   }
 * }
 * assertEquals(length, 300_000);
 * ```
 */
export function recycle(bytes: Uint8Array): void {
  if (!(bytes instanceof Uint8Array)) checkBytes(bytes, "bytes");
  recycling = true;
  const { length } = bytes;
  if (length < MIN_RECYCLED_LENGTH) {
    // 0 after somebody transferred it away.
    if (bytes !== lastShort || length === 0) return;
    spares[length] = lastShort;
    lastShort = undefined;
    return;
  }
  const block = Issued.end(bytes);
  if (block !== undefined) keep(block, length);
}
