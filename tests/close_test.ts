import { describe, it } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  CloseCode,
  FrameError,
  isValidCloseCode,
  readClosePayload,
  writeClosePayload,
} from "@wsframe/wsframe";
import { bytesOf, hex } from "./vectors.ts";

function failing(payload: Uint8Array): FrameError {
  return assertThrows(() => readClosePayload(payload), FrameError);
}

describe("isValidCloseCode", () => {
  it("follows the ranges of RFC 6455 section 7.4", () => {
    const valid = new Set<number>();
    for (let code = 0; code <= 65536; code++) {
      if (isValidCloseCode(code)) valid.add(code);
    }
    for (const code of [1000, 1001, 1002, 1003, 1007, 1013, 1014, 3000, 4999]) {
      assertEquals(valid.has(code), true, String(code));
    }
    assertEquals(valid.size, 4 + 8 + 2000);
    for (const code of [1000.5, NaN, -1000, "1000" as unknown as number]) {
      assertEquals(isValidCloseCode(code), false);
    }
  });

  it("knows which of the registered codes may be sent", () => {
    const never = Object.entries(CloseCode)
      .filter(([, code]) => !isValidCloseCode(code))
      .map(([name]) => name);
    assertEquals(never, [
      "NoStatusReceived",
      "AbnormalClosure",
      "TlsHandshake",
    ]);
  });
});

describe("readClosePayload", () => {
  it("reads code and reason", () => {
    assertEquals(readClosePayload(bytesOf("")), { code: 1005, reason: "" });
    assertEquals(readClosePayload(bytesOf("03e8")), { code: 1000, reason: "" });
    assertEquals(readClosePayload(bytesOf("0fa0e282ac")), {
      code: 4000,
      reason: "€",
    });
  });

  it("keeps a byte order mark and reads shared memory", () => {
    const payload = new Uint8Array(new SharedArrayBuffer(6));
    payload.set(bytesOf("03e8efbbbf61"));
    assertEquals(readClosePayload(payload).reason, "\ufeffa");
  });

  it("refuses lengths, codes and bytes that must not be", () => {
    for (const length of [1, 126, 1000]) {
      const { code, closeCode } = failing(new Uint8Array(length));
      assertEquals(code, "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH");
      assertEquals(closeCode, 1002);
    }
    for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000]) {
      const payload = new Uint8Array([code >> 8, code]);
      assertEquals(failing(payload).code, "WS_ERR_INVALID_CLOSE_CODE");
      assertEquals(failing(payload).closeCode, 1002);
    }
    for (const reason of ["ff", "c080", "eda080", "f4908080", "e282"]) {
      const error = failing(bytesOf("03e8" + reason));
      assertEquals(error.code, "WS_ERR_INVALID_UTF8");
      assertEquals(error.closeCode, 1007);
      assertEquals(error.byteOffset, 0);
    }
    assertThrows(
      () => readClosePayload("a" as unknown as Uint8Array),
      TypeError,
    );
  });
});

describe("writeClosePayload", () => {
  it("mirrors the reader", () => {
    for (const [code, reason] of [[1000, ""], [1014, "x"], [3000, "żółw"]]) {
      const payload = writeClosePayload(code as number, reason as string);
      assertEquals<unknown>(readClosePayload(payload), { code, reason });
    }
    assertEquals(hex(writeClosePayload()), "");
    assertEquals(hex(writeClosePayload(undefined, "")), "");
  });

  it("refuses codes that must not be sent and reasons that do not fit", () => {
    for (const code of [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 1000.5]) {
      assertThrows(() => writeClosePayload(code), RangeError, `got ${code}`);
    }
    assertEquals(writeClosePayload(1000, "a".repeat(123)).length, 125);
    assertThrows(
      () => writeClosePayload(1000, "a".repeat(124)),
      RangeError,
      "got 124 bytes",
    );
    assertThrows(() => writeClosePayload(1000, "é".repeat(62)), RangeError);
    assertThrows(() => writeClosePayload(undefined, "why"), RangeError);
    assertThrows(
      () => writeClosePayload("1000" as unknown as number),
      TypeError,
    );
    assertThrows(
      () => writeClosePayload(1000, 7 as unknown as string),
      TypeError,
    );
  });
});
