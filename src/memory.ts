/**
 * Memory for what is handed out, at the lowest price each engine has.
 *
 * @module
 */

import { V8 } from "./engine.ts";

/**
 * The size of a block that small results share, in bytes. A fresh typed array costs
 * 300 to 1000 ns whatever its size, a view into a block 40 to 120 ns.
 */
const BLOCK_LENGTH = 0x10000;

/** Results longer than this get memory of their own, in bytes: keeping one keeps no block. */
const MAX_SHARED_LENGTH = 0x4000;

interface BufferConstructor {
  allocUnsafeSlow(length: number): Uint8Array<ArrayBuffer>;
}

/**
 * Node's and Bun's way to memory that is not cleared first, 4 to 10 times cheaper from
 * 64 KiB on. Deno has the name too, and clears; there, looking at it takes 5 ms.
 */
const unsafe: BufferConstructor | undefined = "Deno" in globalThis
  ? undefined
  : (globalThis as { Buffer?: BufferConstructor }).Buffer;

/** From this length on memory that is not cleared is the cheaper one, in bytes. */
const MIN_UNSAFE_LENGTH = 512;

/** Memory of its own, not cleared where the engine allows that. */
export function allocateBlock(length: number): Uint8Array<ArrayBuffer> {
  if (
    length < MIN_UNSAFE_LENGTH || unsafe === undefined ||
    typeof unsafe.allocUnsafeSlow !== "function"
  ) return new Uint8Array(length);
  return new Uint8Array(unsafe.allocUnsafeSlow(length).buffer, 0, length);
}

let block: ArrayBuffer = new ArrayBuffer(0);
let used = 0;

/** Up to this length JavaScriptCore has typed arrays that cost no more than an object, in bytes. */
export const MAX_SMALL_LENGTH = 1000;

/** Memory for one result; in V8 small ones share blocks of 64 KiB. */
export function allocate(length: number): Uint8Array<ArrayBuffer> {
  if (!V8 && length <= MAX_SMALL_LENGTH) return new Uint8Array(length);
  if (length > MAX_SHARED_LENGTH) return allocateBlock(length);
  // byteLength is 0 after somebody transferred the block away.
  if (used + length > block.byteLength) {
    block = allocateBlock(BLOCK_LENGTH).buffer;
    used = 0;
  }
  const bytes = new Uint8Array(block, used, length);
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

/** Keeps a block that nothing else uses for {@linkcode takeBlock} and {@linkcode issue}. */
export function keep(block: Uint8Array<ArrayBuffer>): void {
  const { length } = block;
  if (length === 0 || 2 * length > MAX_KEPT_LENGTH) return;
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

/** A block to write to, of `length` bytes or somewhat more: kept or new. */
export function takeBlock(length: number): Uint8Array<ArrayBuffer> {
  return unkeep(length, 4 * length) ?? allocateBlock(length);
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
  #view: Uint8Array | null;

  private constructor(buffer: ArrayBuffer, view: Uint8Array) {
    super(buffer);
    this.#view = view;
  }

  /** Remembers that a view is the caller's, and with it all of its buffer. */
  static begin(view: Uint8Array<ArrayBuffer>): void {
    const { buffer } = view;
    if (#view in buffer) (buffer as Issued).#view = view;
    else new Issued(buffer, view);
  }

  /** Whether the caller had just this view of its buffer; it is no longer the caller's. */
  static end(view: Uint8Array): boolean {
    const { buffer } = view;
    if (!(#view in buffer) || buffer.#view !== view) return false;
    buffer.#view = null;
    return true;
  }
}

/** Whether anything was ever given back: nobody else pays for the marks. */
let recycling = false;

/** Gives the first `length` bytes of a block to the caller, with all of the block. */
export function issueBlock(
  block: Uint8Array<ArrayBuffer>,
  length: number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(block.buffer, 0, length);
  if (recycling) Issued.begin(bytes);
  return bytes;
}

/** The most that a short result takes of a kept block, in bytes. */
const MAX_SHORT_LENGTH = 256;

/** Memory for one result that {@linkcode recycle} knows again; nothing shares its buffer. */
export function issue(length: number): Uint8Array<ArrayBuffer> {
  // In JavaScriptCore asking for the buffer of a small one costs more than making another.
  if (!recycling || !V8 && length <= MAX_SMALL_LENGTH) {
    return allocateBlock(length);
  }
  const block = unkeep(length, Math.max(2 * length, MAX_SHORT_LENGTH)) ??
    allocateBlock(length);
  return issueBlock(block, length);
}

/** Keeps what was issued, when it comes back for the first time. */
export function recycle(bytes: Uint8Array): void {
  recycling = true;
  const { length } = bytes;
  // 0 after somebody transferred it away.
  if (length === 0 || !V8 && length <= MAX_SMALL_LENGTH) return;
  if (Issued.end(bytes)) keep(new Uint8Array(bytes.buffer as ArrayBuffer));
}
