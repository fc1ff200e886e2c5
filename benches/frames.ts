/**
 * The seed's table of frames: readFrame and writeFrame, portable against native.
 *
 * @module
 */

import type { Context, Library, Table } from "./context.ts";
import { each, size } from "./context.ts";
import { fresh } from "./fresh.ts";
import { decodeFrame, encodeFrame, same, testBytes } from "./loops.ts";
import type { Contender, Race } from "./measure.ts";

const KiB = 2 ** 10, MiB = 2 ** 20;

/** The seed's own figures after its change, in nanoseconds. */
const SEED: Record<string, number> = {
  [`ReadFrame ${KiB}`]: 576,
  [`ReadFrame ${MiB}`]: 331e3,
  [`WriteFrame ${KiB}`]: 676,
  [`WriteFrame ${MiB}`]: 336e3,
};

function reading(lib: Library, payload: Uint8Array): Omit<Contender, "name"> {
  const bytes = encodeFrame(payload);
  return {
    run: fresh((readFrame: Library["readFrame"], bytes: Uint8Array) => () =>
      readFrame(bytes, { role: "server" })
    )(lib.readFrame, bytes),
    verify: (result) => {
      const { frame, bytesRead } = result as NonNullable<
        ReturnType<Library["readFrame"]>
      >;
      return bytesRead === bytes.length && same(frame.payload, payload);
    },
  };
}

function writing(lib: Library, payload: Uint8Array): Omit<Contender, "name"> {
  return {
    run: fresh((writeFrame: Library["writeFrame"], payload: Uint8Array) => () =>
      writeFrame({ opcode: 2, payload }, { role: "client" })
    )(lib.writeFrame, payload),
    verify: (frame) => {
      const decoded = decodeFrame(frame as Uint8Array, payload.length);
      return decoded !== null && same(decoded, payload);
    },
  };
}

function* rows({ portable, native, wasm }: Context): Generator<Race> {
  for (
    const [name, make] of [["ReadFrame", reading], [
      "WriteFrame",
      writing,
    ]] as const
  ) {
    for (const bytes of [KiB, MiB]) {
      const payload = testBytes(bytes);
      const after = native ?? wasm;
      yield {
        row: `${name} ${size(bytes)}`,
        bytes,
        allocations: true,
        contenders: () =>
          each([portable, after], "", (lib) => make(lib, payload)),
        limits: after
          ? [{
            of: after.name,
            ns: SEED[`${name} ${bytes}`],
            source: "the seed's after",
          }]
          : [],
      };
    }
  }
}

/** The seed's table of frames. */
export const frameTables: Table[] = [{
  name: "frame-seed",
  title: "ReadFrame and WriteFrame, portable against native",
  style: "change",
  rows,
}];
