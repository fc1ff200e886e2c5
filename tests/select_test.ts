import { describe, it } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { backend, backends, mask, useBackend } from "@wsframe/wsframe";
import type { BackendName } from "@wsframe/wsframe";
import { available, withBackend } from "./backends.ts";

const ORDER = ["bun-ffi", "deno-ffi", "node-api", "wasm", "portable"];

describe("backends", () => {
  it("lists every engine in order, with a reason", () => {
    const list = backends();
    assertEquals<string[]>(list.map(({ name }) => name), ORDER);
    for (const { name, available, reason } of list) {
      assert(reason.length > 0, name);
      assertEquals(reason === "available", available, `${name}: ${reason}`);
    }
  });

  it("has the native engine of this runtime, wasm and portable", () => {
    const native = "Bun" in globalThis
      ? "bun-ffi"
      : "Deno" in globalThis
      ? "deno-ffi"
      : "node-api";
    assertEquals<string[]>(available, [native, "wasm", "portable"]);
  });
});

describe("portable", () => {
  it("computes in the words that this engine is quick at", () => {
    const { isa } = withBackend("portable", backend);
    assertEquals(isa, "Bun" in globalThis ? "u32" : "u64");
  });
});

describe("useBackend", () => {
  it("switches to every engine there is, and all give the same", () => {
    const results = available.map((name) =>
      withBackend(name, () => {
        assertEquals(backend().name, name);
        assert(backend().isa.length > 0);
        const bytes = new Uint8Array(5000).fill(3);
        mask(bytes, new Uint8Array([1, 2, 3, 4]), 1);
        return bytes.join();
      })
    );
    assertEquals(new Set(results).size, 1);
  });

  it("throws with the reason, and keeps the engine in use", () => {
    const before = backend();
    for (const { name, available, reason } of backends()) {
      if (!available) assertThrows(() => useBackend(name), RangeError, reason);
    }
    assertThrows(
      () => useBackend("turbo" as BackendName),
      RangeError,
      "Expected 'name' to be one of \"bun-ffi\"",
    );
    assertThrows(() => useBackend(7 as unknown as BackendName), RangeError);
    assertEquals(backend(), before);
  });
});
