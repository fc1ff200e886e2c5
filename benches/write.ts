/**
 * The tables of writing: frames of a client, each with a fresh key.
 *
 * @module
 */

import type { Context, Engine, Library, Runtime, Table } from "./context.ts";
import { each, size } from "./context.ts";
import { fresh } from "./fresh.ts";
import { decodeFrame, same, testBytes } from "./loops.ts";
import type { Contender, Race, Target } from "./measure.ts";
import { do_not_optimize } from "mitata";
import type { Driver, Peer } from "./peers.ts";

const KiB = 2 ** 10, MiB = 2 ** 20;

/** Made once, as those that `ws` gets. */
const OPTIONS = { role: "client" } as const;

/** Writes `count` frames; returns the first of them, whole. */
type Writing = (payload: Uint8Array, count: number) => () => Uint8Array;

/** Bytes of a client's frame. */
function frameLength(payloadLength: number): number {
  return payloadLength +
    (payloadLength < 126 ? 6 : payloadLength < 65536 ? 8 : 14);
}

function writeFrame(lib: Library): Writing {
  const write = lib.writeFrame;
  return fresh(
    (
      write: Library["writeFrame"],
      options: typeof OPTIONS,
      keep: (value: unknown) => void,
    ) =>
    (payload: Uint8Array, count: number) => {
      return () => {
        let last!: Uint8Array;
        for (let i = 0; i < count; i++) {
          last = write({ opcode: 2, payload }, options);
          keep(last);
        }
        return last;
      };
    },
  )(write, OPTIONS, do_not_optimize);
}

function writeFrameInto(lib: Library): Writing {
  return (payload, count) => {
    const target = new Uint8Array(frameLength(payload.length));
    return fresh(
      (
        write: Library["writeFrameInto"],
        options: typeof OPTIONS,
        target: Uint8Array,
        payload: Uint8Array,
        count: number,
      ) =>
      () => {
        for (let i = 0; i < count; i++) {
          write(target, { opcode: 2, payload }, options);
        }
        return target;
      },
    )(lib.writeFrameInto, OPTIONS, target, payload, count);
  };
}

function frameWriter(lib: Library): Writing {
  return (payload, count) => {
    const writer = new lib.FrameWriter({ role: "client" });
    return fresh(
      (
        writer: InstanceType<Library["FrameWriter"]>,
        payload: Uint8Array,
        count: number,
      ) =>
      () => {
        for (let i = 0; i < count; i++) writer.binary(payload);
        const block = writer.take();
        return block.subarray(0, block.length / count);
      },
    )(writer, payload, count);
  };
}

/** The same where the transport gives the memory back once it has written it. */
function recycledWriter(lib: Library): Writing {
  return (payload, count) => {
    const writer = new lib.FrameWriter({ role: "client" });
    return fresh(
      (
        writer: InstanceType<Library["FrameWriter"]>,
        recycle: Library["recycle"],
        payload: Uint8Array,
        count: number,
      ) =>
      () => {
        for (let i = 0; i < count; i++) writer.binary(payload);
        const block = writer.take();
        recycle(block);
        return block.subarray(0, block.length / count);
      },
    )(writer, lib.recycle, payload, count);
  };
}

function wsSender(frame: (payload: Uint8Array) => Uint8Array[]): Writing {
  return (payload, count) => () => {
    let last!: Uint8Array;
    for (let i = 0; i < count; i++) {
      last = frame(payload)[0];
      do_not_optimize(last);
    }
    return last;
  };
}

function driverWriting(newDriver: () => Driver): Writing {
  return (payload, count) => {
    const driver = newDriver();
    let last!: Uint8Array;
    driver.io.on("data", (chunk) => {
      last = chunk;
    });
    driver.start();
    return () => {
      for (let i = 0; i < count; i++) driver.binary(payload);
      return last;
    };
  };
}

/** Memory of its own where it costs least. */
function memory(runtime: Runtime): (length: number) => Uint8Array {
  return runtime === "deno"
    ? (length) => new Uint8Array(length)
    : (length) => Buffer.allocUnsafeSlow(length);
}

/**
 * The least that a new frame can cost, without a header, a key or a check: memory
 * (small frames share blocks where that is cheaper) and a copy.
 */
function frameFloor(runtime: Runtime): Writing {
  return (payload, count) => {
    const length = frameLength(payload.length);
    const small = runtime === "bun" && length <= 1000;
    return fresh(
      (
        memory: (length: number) => Uint8Array,
        size: number,
        payload: Uint8Array,
        length: number,
        count: number,
        keep: (value: unknown) => void,
      ) => {
        let block = new ArrayBuffer(0), used = 0;
        return () => {
          let last!: Uint8Array;
          for (let i = 0; i < count; i++) {
            if (size === 0) {
              last = memory(length);
            } else {
              if (used + length > block.byteLength) {
                block = memory(size).buffer as ArrayBuffer;
                used = 0;
              }
              last = new Uint8Array(block, used, length);
              used += length;
            }
            last.set(payload, length - payload.length);
            keep(last);
          }
          return last;
        };
      },
    )(
      small ? (length: number) => new Uint8Array(length) : memory(runtime),
      small || length > 16 * KiB ? 0 : 64 * KiB,
      payload,
      length,
      count,
      do_not_optimize,
    );
  };
}

/** The least that frames in one new block can cost: that block and copies. */
function blockFloor(runtime: Runtime): Writing {
  return (payload, count) => {
    const length = frameLength(payload.length);
    return fresh(
      (
        memory: (length: number) => Uint8Array,
        payload: Uint8Array,
        length: number,
        count: number,
      ) =>
      () => {
        const block = memory(length * count);
        for (let i = 0; i < count; i++) {
          block.set(payload, (i + 1) * length - payload.length);
        }
        return block.subarray(0, length);
      },
    )(memory(runtime), payload, length, count);
  };
}

function writes(
  payload: Uint8Array,
  count: number,
  writing: Writing,
): Omit<Contender, "name"> {
  const run = writing(payload, count);
  const kept = Uint8Array.from(payload);
  return {
    run,
    verify: (frame) => {
      const decoded = decodeFrame(frame as Uint8Array, payload.length);
      return decoded !== null && same(decoded, kept) && same(payload, kept);
    },
  };
}

function* writeRows(
  { engines, native, recycling, peers, runtime }: Context,
): Generator<Race> {
  for (const bytes of [16, 125, KiB, 16 * KiB, 64 * KiB, MiB]) {
    const payload = testBytes(bytes);
    const count = Math.max(1, Math.floor(64 * KiB / frameLength(bytes)));
    const peer = <T>(name: string, peer: Peer<T>, make: (peer: T) => Writing) =>
      typeof peer === "string"
        ? { name, absent: peer }
        : { name, ...writes(payload, count, make(peer)) };
    const targets: Target[] = [];
    if (native) {
      const { name } = native;
      const factor = bytes <= KiB ? 1.5 : 1;
      targets.push(
        { of: `writeFrame ${name}`, over: "ws", atLeast: factor },
        { of: `writeFrameInto ${name}`, over: "ws", atLeast: 2.5 },
        { of: `FrameWriter ${name}`, over: "ws", atLeast: 2.5 },
        { of: `FrameWriter, recycled ${name}`, over: "ws", atLeast: 2.5 },
      );
    }
    const way = (
      of: (Engine | undefined)[],
      name: string,
      make: (lib: Library) => Writing,
    ) => each(of, name, (lib) => writes(payload, count, make(lib)));
    const floor = (name: string, make: (runtime: Runtime) => Writing) => ({
      name,
      run: make(runtime)(payload, count),
      verify: (frame: unknown) =>
        same((frame as Uint8Array).subarray(-bytes), payload),
    });
    yield {
      row: size(bytes),
      bytes,
      items: count,
      contenders: () => [
        ...way(engines, "writeFrame", writeFrame),
        ...way(engines, "writeFrameInto", writeFrameInto),
        ...way(engines, "FrameWriter", frameWriter),
        ...way([recycling], "FrameWriter, recycled", recycledWriter),
        floor("floor of writeFrame: memory, copy", frameFloor),
        floor("floor of FrameWriter: a block, copies", blockFloor),
        peer("ws", peers.senderFrame, wsSender),
        peer(
          "websocket-driver",
          peers.newDriver,
          (open) => driverWriting(open),
        ),
      ],
      targets,
    };
  }
}

/** The table of writing. */
export const writeTables: Table[] = [{
  name: "write",
  title: "Writing a client's frames, a fresh key each, per frame",
  style: "peers",
  base: ["ws"],
  rows: writeRows,
}];

/** The engines alone, for the comparison of two revisions. */
export function* compareWrite(engines: Engine[]): Generator<Race> {
  const ways: [string, (lib: Library) => Writing][] = [
    ["writeFrame", writeFrame],
    ["writeFrameInto", writeFrameInto],
    ["FrameWriter", frameWriter],
  ];
  for (const [name, make] of ways) {
    for (const bytes of [16, KiB, 64 * KiB]) {
      const payload = testBytes(bytes);
      const count = Math.max(1, Math.floor(64 * KiB / frameLength(bytes)));
      yield {
        row: `${name} ${size(bytes)}`,
        bytes,
        items: count,
        contenders: () =>
          each(
            engines,
            "",
            (lib) => writes(payload, count, make(lib)),
          ),
      };
    }
  }
}
