/**
 * What the generated modules hold, as bytes again.
 *
 * @module
 */

import { checksum } from "./checksum.ts";

/** A module that native/build.ts generated. */
export interface EmbeddedLibrary {
  /** The library in base64. */
  readonly LIBRARY: string;
  /** The {@linkcode checksum} of the library. */
  readonly CHECKSUM: number;
}

/** The bytes of an embedded library; throws where they are not those that were built. */
export function decode(library: EmbeddedLibrary): Uint8Array {
  let bytes: Uint8Array | undefined;
  try {
    bytes = decodeBase64(library.LIBRARY);
  } catch {
    // not even base64
  }
  if (bytes === undefined || checksum(bytes) !== library.CHECKSUM) {
    throw new Error("the embedded library is damaged: its checksum differs");
  }
  return bytes;
}

function decodeBase64(text: string): Uint8Array {
  // 0.05 ms instead of 0.5 where it exists: not in Node before 25
  const { fromBase64 } = Uint8Array as { fromBase64?(s: string): Uint8Array };
  if (fromBase64 !== undefined) return fromBase64.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The message of something thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
