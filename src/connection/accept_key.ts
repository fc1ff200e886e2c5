/**
 * The key of the opening handshake (RFC 6455 section 1.3).
 *
 * @module
 */

import { shown } from "../check.ts";

/** What the server appends to the key before hashing it (RFC 6455 section 1.3). */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Computes the `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key`: the SHA-1 of
 * the key and a fixed GUID, in base64 (RFC 6455 section 4.2.2).
 *
 * @param key The value of `Sec-WebSocket-Key`, as received
 * @returns The value of `Sec-WebSocket-Accept`
 * @throws {TypeError} When `key` is not a string
 *
 * @example
 * ```ts
 * import { acceptKey } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(await acceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
 * ```
 */
export async function acceptKey(key: string): Promise<string> {
  if (typeof key !== "string") {
    throw new TypeError(`Expected 'key' to be a string, got ${shown(key)}`);
  }
  const bytes = new TextEncoder().encode(key + GUID);
  return base64(new Uint8Array(await crypto.subtle.digest("SHA-1", bytes)));
}

/** A fresh key: 16 random bytes in base64. */
export function generateKey(): string {
  return base64(crypto.getRandomValues(new Uint8Array(16)));
}

/** Whether a key is the base64 of 16 bytes. */
export function isKey(key: string): boolean {
  return /^[A-Za-z0-9+/]{22}==$/.test(key);
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
