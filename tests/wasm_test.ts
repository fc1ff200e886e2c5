/** The wasm backend where WebAssembly is not to be had, and how much memory it keeps. */

import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Backend } from "../src/backend/backend.ts";
import { openWasm } from "../src/backend/wasm.ts";

const scope = globalThis as { WebAssembly: unknown };

/** Runs with another `WebAssembly`. */
function withWebAssembly<T>(replacement: unknown, run: () => T): T {
  const { WebAssembly } = scope;
  scope.WebAssembly = replacement;
  try {
    return run();
  } finally {
    scope.WebAssembly = WebAssembly;
  }
}

describe("openWasm()", () => {
  it("tells why there is no WebAssembly", () => {
    assertEquals(
      withWebAssembly(undefined, openWasm),
      "this engine runs without WebAssembly",
    );
    const refusing = {
      Module: class {
        constructor() {
          throw new Error("refused by the content security policy");
        }
      },
    };
    assertEquals(
      withWebAssembly(refusing, openWasm),
      "refused by the content security policy",
    );
  });

  it("refuses an engine that computes wrongly", () => {
    const real = WebAssembly;
    const wrong = {
      Module: real.Module,
      Instance: class {
        readonly exports: object;
        constructor(module: WebAssembly.Module) {
          const { exports } = new real.Instance(module);
          this.exports = { ...exports, wsframe_mask() {} };
        }
      },
    };
    assertEquals(
      withWebAssembly(wrong, openWasm),
      "the self-test failed: kernel simd128 masks wrongly",
    );
  });

  it("needs no more memory for larger work", () => {
    const real = WebAssembly;
    let memory: WebAssembly.Memory | undefined;
    const watched = {
      Module: real.Module,
      Instance: class {
        readonly exports: WebAssembly.Exports;
        constructor(module: WebAssembly.Module) {
          this.exports = new real.Instance(module).exports;
          memory = this.exports.memory as WebAssembly.Memory;
        }
      },
    };
    const backend = withWebAssembly(watched, openWasm) as Backend;
    const before = memory!.buffer.byteLength;
    assert(before <= 4 << 16, `${before} bytes`);

    const bytes = new Uint8Array(5_000_000);
    bytes.set([0x82, 0xff, 0, 0, 0, 0, 0, 0x4c, 0x4b, 0x32, 1, 2, 3, 4]);
    backend.mask(bytes, 20, 4_000_000, -1);
    const table = new Uint32Array(1 << 20);
    const { length } = bytes;
    const rows = backend.scan(bytes, 0, length, bytes, 0, table, 1, length);
    assertEquals([rows, table[0], table[6]], [1, length, length - 14]);
    assertEquals(memory!.buffer.byteLength, before);
  });
});
