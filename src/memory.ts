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
 * 64 KiB on. Deno has the name too, and clears.
 */
const unsafe: BufferConstructor | undefined =
  (globalThis as { Buffer?: BufferConstructor }).Buffer;

/** Memory of its own, not cleared where the engine allows that. */
export function allocateBlock(length: number): Uint8Array<ArrayBuffer> {
  if (unsafe === undefined || typeof unsafe.allocUnsafeSlow !== "function") {
    return new Uint8Array(length);
  }
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
