/**
 * The library through Node-API (native/node_api.c), which Node opens without a
 * flag, an install script or a warning. A call costs 10 ns, each view in it 12 (15 with
 * its length) and each number 4, so numbers travel in a block of memory that C was given
 * once: 25 ns for a call of `mask` (Node 20 and 26, Sapphire Rapids). Bytes that C was
 * given once as well would bring it to 14 ns, but those to be masked are new in most
 * calls, and asking a view for its buffer, to know, takes the 8 ns that it would save.
 *
 * @module
 */

import type { Backend, Candidate } from "./backend.ts";
import {
  candidateDirectories,
  LIBRARIES,
  loadBackend,
  processOf,
  processSystem,
} from "./load.ts";
import type { Process } from "./load.ts";
import type { Library, MinimumLengths } from "./native.ts";

interface Exports {
  mask(bytes: Uint8Array): void;
  maskInto(target: Uint8Array, source: Uint8Array): void;
  scan(
    source: Uint8Array,
    target: Uint8Array | null,
    table: Uint32Array,
  ): void;
  cpu(): void;
  useKernel(): void;
}

/** Words of the block: up to five arguments, then the result. See native/node_api.c. */
const RESULT = 5;

/**
 * Measured by `benches/crossover.ts`: mask 56 B in Node 20, 33 ns against 36. In Node 26
 * the two are within 6 ns of each other from 48 to 160 B, in a buffer that is kept.
 */
const MINIMUM = { mask: 56, maskInto: 48, scan: 24 };

function open(process: Process, path: string): Library {
  const block = new Float64Array(RESULT + 1);
  const module = { exports: { block } as Exports & { block: Float64Array } };
  process.dlopen(module, path);
  const { mask, maskInto, scan, cpu, useKernel } = module.exports;
  if (useKernel === undefined) {
    throw new Error("the library does not offer its functions");
  }
  return {
    // By an element, which no object can lie about that C takes for a typed array: V8
    // calls the getter of the length, for 5 ns.
    holds: (bytes, end) => bytes[end - 1] !== undefined,
    mask(bytes, start, length, key) {
      block[0] = start;
      block[1] = length;
      block[2] = key;
      mask(bytes);
    },
    maskInto(target, targetStart, source, sourceStart, length, key) {
      block[0] = targetStart;
      block[1] = sourceStart;
      block[2] = length;
      block[3] = key;
      maskInto(target, source);
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
      block[0] = start;
      block[1] = length;
      block[2] = targetStart;
      block[3] = flags;
      block[4] = maxPayloadLength;
      scan(source, target, table);
      return block[RESULT]!;
    },
    cpu() {
      cpu();
      return block[RESULT]!;
    },
    useKernel(kernel) {
      block[0] = kernel;
      useKernel();
      return block[RESULT]!;
    },
  };
}

/** Opens the backend; `minimum` is for tests and benches. */
export function openNodeApi(
  minimum: MinimumLengths = MINIMUM,
): Backend | string {
  const process = processOf("node");
  if (process === undefined) return "this is not Node";
  if (process.platform === "win32") {
    return "the library has no Node-API door on Windows";
  }
  if (process.getBuiltinModule === undefined) {
    return "this needs process.getBuiltinModule: Node 20.16, 22.3 or later";
  }
  // Node 20 says no whatever was allowed; there, opening tells.
  const asks = !process.versions.node?.startsWith("20.");
  if (asks && process.permission?.has("addon") === false) {
    return "not permitted: the permission model asks for --allow-addons";
  }
  const system = processSystem(process);
  return loadBackend(
    "node-api",
    minimum,
    LIBRARIES[`${process.platform}-${process.arch}`],
    system,
    candidateDirectories(system),
    (path) => open(process, path),
  );
}

/** The library, called by Node through Node-API. */
export const nodeApi: Candidate = {
  name: "node-api",
  open: () => openNodeApi(),
};
