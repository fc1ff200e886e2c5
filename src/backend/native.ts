/**
 * What the backends with a compiled library have in common: short work is done in
 * TypeScript, because a call costs more than it saves, and a view that is shorter
 * than its caller believes is left to TypeScript, which cannot leave it.
 *
 * @module
 */

import type { Backend, BackendName } from "./backend.ts";
import * as portable from "./portable.ts";
import type { Library } from "./library.ts";
import { selfTest } from "./verify.ts";

/**
 * The length in bytes from which the library is quicker than TypeScript, per function.
 * At least 1: what a detached view is for a library is not to be found out.
 */
export interface MinimumLengths {
  readonly mask: number;
  readonly maskInto: number;
  readonly scan: number;
}

/** The backend of a library that passed the self-test; throws where it did not. */
export function nativeBackend(
  name: BackendName,
  library: Library,
  minimum: MinimumLengths,
): Backend {
  const isa = selfTest(library);
  return {
    name,
    isa,
    minBytes: minimum.mask,

    mask(bytes, start, length, key) {
      // Turned round, so that no number at all is no length either.
      if (!(start + length <= library.sizeOf(bytes))) {
        portable.mask(bytes, start, length, key);
      } else library.mask(bytes, start, length, key);
    },

    maskInto(target, targetStart, source, sourceStart, length, key) {
      if (
        !(length >= minimum.maskInto &&
          targetStart + length <= library.sizeOf(target) &&
          sourceStart + length <= library.sizeOf(source))
      ) {
        portable.maskInto(
          target,
          targetStart,
          source,
          sourceStart,
          length,
          key,
        );
      } else {
        library.maskInto(target, targetStart, source, sourceStart, length, key);
      }
    },

    scan(
      source,
      start,
      length,
      target,
      targetStart,
      table,
      flags,
      maxPayloadLength,
    ) {
      return !(length >= minimum.scan &&
          start + length <= library.sizeOf(source) &&
          (target === null ||
            targetStart + length <= library.sizeOf(target)))
        ? portable.scan(
          source,
          start,
          length,
          target,
          targetStart,
          table,
          flags,
          maxPayloadLength,
        )
        : library.scan(
          source,
          start,
          length,
          target,
          targetStart,
          table,
          flags,
          maxPayloadLength,
        );
    },
  };
}
