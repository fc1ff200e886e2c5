/**
 * Every engine of this runtime: as it is chosen, and with every length sent to C, which
 * otherwise leaves short work to TypeScript.
 */

import { backends } from "@wsframe/wsframe";
import type { Backend, BackendName } from "../src/backend/backend.ts";
import { openBunFfi } from "../src/backend/bun_ffi.ts";
import { openDenoFfi } from "../src/backend/deno_ffi.ts";
import type { MinimumLengths } from "../src/backend/native.ts";
import { openNodeApi } from "../src/backend/node_api.ts";
import { portable } from "../src/backend/portable.ts";
import { current } from "../src/backend/select.ts";
import { openWasm } from "../src/backend/wasm.ts";

const ALWAYS: MinimumLengths = { mask: 1, maskInto: 1, scan: 1 };

const OPEN: Record<
  BackendName,
  (minimum?: MinimumLengths) => Backend | string
> = {
  "bun-ffi": openBunFfi,
  "deno-ffi": openDenoFfi,
  "node-api": openNodeApi,
  wasm: openWasm,
  portable: portable.open,
};

export interface Engine {
  title: string;
  /** Sends every length to C. */
  always: boolean;
  backend: Backend;
}

function opened(name: BackendName, minimum?: MinimumLengths): Backend {
  const backend = OPEN[name](minimum);
  if (typeof backend === "string") throw new Error(`${name}: ${backend}`);
  return backend;
}

/** The engines in order: each that is available, and the same without lower limits. */
export const engines: readonly Engine[] = backends()
  .filter(({ available }) => available)
  .flatMap(({ name }) => {
    const chosen = { title: name, always: false, backend: opened(name) };
    return name === "portable" ? [chosen] : [chosen, {
      title: `${name}, every length`,
      always: true,
      backend: opened(name, ALWAYS),
    }];
  });

/** Does something with this engine in use, and goes back to the one before. */
export function withEngine<T>({ backend }: Engine, action: () => T): T {
  const { engine, minBytes } = current;
  current.engine = backend;
  current.minBytes = backend.minBytes;
  try {
    return action();
  } finally {
    current.engine = engine;
    current.minBytes = minBytes;
  }
}
