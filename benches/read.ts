/**
 * The tables of reading: masked binary frames in 64 KiB chunks.
 *
 * @module
 */

import type { Context, Engine, Library, Table } from "./context.ts";
import { each, size } from "./context.ts";
import { fresh } from "./fresh.ts";
import { encodeFrame, same, testBytes } from "./loops.ts";
import type { Contender, Race, Target } from "./measure.ts";
import type { Peers } from "./peers.ts";

const KiB = 2 ** 10, MiB = 2 ** 20, CHUNK = 64 * KiB;

/** A way of reading: gives the payload bytes it saw, or (to be checked) the payloads. */
export interface Reading {
  pass: (chunks: Uint8Array[]) => number;
  collect: (chunks: Uint8Array[]) => Uint8Array[];
}

type Reader = InstanceType<Library["FrameReader"]>;
type Options = ConstructorParameters<Library["FrameReader"]>[0];

function options(more: Options): Options {
  return { role: "server", maxPayloadLength: 2 ** 30, ...more };
}

/** The cursor: header fields of every frame, no view of its payload. */
export function cursor(lib: Library, more: Options = {}): Reading {
  const reader = new lib.FrameReader(options(more));
  return {
    pass: fresh((reader: Reader) => (chunks: Uint8Array[]) => {
      let bytes = 0;
      for (let i = 0; i < chunks.length; i++) {
        reader.push(chunks[i]);
        while (reader.advance()) bytes += reader.payloadLength;
      }
      return bytes;
    })(reader),
    collect(chunks) {
      const payloads: Uint8Array[] = [];
      for (const chunk of chunks) {
        reader.push(chunk);
        while (reader.advance()) payloads.push(reader.payload.slice());
      }
      return payloads;
    },
  };
}

/** The cursor, with a view of every payload. */
function cursorViews(lib: Library): Reading {
  const reader = new lib.FrameReader(options({}));
  return {
    pass: fresh((reader: Reader) => (chunks: Uint8Array[]) => {
      let bytes = 0;
      for (let i = 0; i < chunks.length; i++) {
        reader.push(chunks[i]);
        while (reader.advance()) bytes += reader.payload.length;
      }
      return bytes;
    })(reader),
    collect: cursor(lib).collect,
  };
}

/** The iterator: one object for every frame. */
export function iterator(lib: Library, more: Options = {}): Reading {
  const reader = new lib.FrameReader(options(more));
  return {
    pass: fresh((reader: Reader) => (chunks: Uint8Array[]) => {
      let bytes = 0;
      for (let i = 0; i < chunks.length; i++) {
        for (const frame of reader.push(chunks[i])) {
          bytes += frame.payload.length;
        }
      }
      return bytes;
    })(reader),
    collect(chunks) {
      const payloads: Uint8Array[] = [];
      for (const chunk of chunks) {
        for (const frame of reader.push(chunk)) {
          payloads.push(frame.payload.slice());
        }
      }
      return payloads;
    },
  };
}

/** The iterator where every payload's memory is given back. */
function recycledIterator(lib: Library): Reading {
  const reader = new lib.FrameReader(options({}));
  const { recycle } = lib;
  return {
    pass: fresh((reader: Reader, recycle: Library["recycle"]) =>
    (
      chunks: Uint8Array[],
    ) => {
      let bytes = 0;
      for (let i = 0; i < chunks.length; i++) {
        for (const { payload } of reader.push(chunks[i])) {
          bytes += payload.length;
          recycle(payload);
        }
      }
      return bytes;
    })(reader, recycle),
    collect: iterator(lib).collect,
  };
}

/** `ws` as its own sockets drive it: write, and a message event for every frame. */
function wsReading(
  newReceiver: Exclude<Peers["newReceiver"], string>,
): Reading {
  const receiver = newReceiver();
  let bytes = 0;
  receiver.on("message", (data) => {
    bytes += data.length;
  });
  return {
    pass(chunks) {
      bytes = 0;
      for (let i = 0; i < chunks.length; i++) receiver.write(chunks[i]);
      return bytes;
    },
    collect(chunks) {
      const payloads: Uint8Array[] = [];
      const checked = newReceiver();
      checked.on("message", (data) => {
        payloads.push(Uint8Array.from(data));
      });
      for (const chunk of chunks) checked.write(chunk);
      return payloads;
    },
  };
}

function driverReading(
  newDriver: Exclude<Peers["newDriver"], string>,
): Reading {
  const open = (listener: (data: Uint8Array) => void) => {
    const driver = newDriver();
    driver.on("message", (event) => listener(event.data));
    driver.io.on("data", () => {});
    driver.start();
    return driver;
  };
  let bytes = 0;
  const driver = open((data) => {
    bytes += data.length;
  });
  return {
    pass(chunks) {
      bytes = 0;
      for (let i = 0; i < chunks.length; i++) driver.parse(chunks[i]);
      return bytes;
    },
    collect(chunks) {
      const payloads: Uint8Array[] = [];
      const checked = open((data) => payloads.push(Uint8Array.from(data)));
      for (const chunk of chunks) checked.parse(chunk);
      return payloads;
    },
  };
}

/** Frames in chunks, and what they hold. */
export interface Traffic {
  row: string;
  bytes: number;
  chunks: Buffer[];
  payloads: Uint8Array[];
}

/** As many whole frames as one chunk holds; a larger one in as many chunks as it needs. */
function packed(bytes: number): Traffic {
  const frame = encodeFrame(testBytes(bytes));
  const count = Math.max(1, Math.floor(CHUNK / frame.length));
  return cut(size(bytes), bytes, count);
}

/** A stream of frames cut every 64 KiB, wherever that is. */
function cut(row: string, bytes: number, count: number): Traffic {
  const payloads = Array.from({ length: count }, (_, i) => testBytes(bytes, i));
  const stream = Buffer.concat(payloads.map((payload) => encodeFrame(payload)));
  const chunks: Buffer[] = [];
  for (let at = 0; at < stream.length; at += CHUNK) {
    chunks.push(stream.subarray(at, at + CHUNK));
  }
  return { row, bytes, chunks, payloads };
}

/**
 * A contender over chunks of its own. Who unmasks in place gets its own result
 * back the next time: other payloads, the same work, no refilling to be timed.
 */
export function reads(
  traffic: Traffic,
  reading: Reading,
): Omit<Contender, "name"> {
  const { payloads } = traffic;
  const chunks = traffic.chunks.map((chunk) => Buffer.from(chunk));
  const total = payloads.reduce((sum, { length }) => sum + length, 0);
  return {
    run: fresh((pass: Reading["pass"], chunks: Uint8Array[]) => () =>
      pass(chunks)
    )(reading.pass, chunks),
    verify: (seen) => {
      const copies = traffic.chunks.map((chunk) => Buffer.from(chunk));
      const read = reading.collect(copies);
      return seen === total && read.length === payloads.length &&
        read.every((payload, i) => same(payload, payloads[i]));
    },
  };
}

/** The least that handing out payloads of their own can cost: memory and a copy. */
function floor({ chunks, payloads }: Traffic): Contender {
  const source = chunks[0];
  return {
    name: "floor: own copies",
    run: () => {
      let bytes = 0;
      for (let i = 0; i < payloads.length; i++) {
        const { length } = payloads[i];
        const copy = new Uint8Array(length);
        for (let at = 0; at < length; at += source.length) {
          copy.set(
            source.subarray(0, Math.min(source.length, length - at)),
            at,
          );
        }
        bytes += copy.length;
      }
      return bytes;
    },
    verify: (seen) => seen === payloads.reduce((sum, p) => sum + p.length, 0),
  };
}

/** The least each way is to be times `ws`, by payload length (issues 2, 3 and 4). */
function targets(bytes: number, context: Context): Target[] {
  const { native, recycling, wasm } = context;
  const over = "ws";
  const list: Target[] = [];
  const add = (of: string, least: number | undefined, than = over) => {
    if (least) list.push({ of, over: than, atLeast: least });
  };
  if (native) {
    const { name } = native;
    const by = (values: number[]) =>
      values[[16, 125, KiB, 16 * KiB, MiB].indexOf(bytes)];
    add(`cursor ${name}`, by([10, 10, 10, 2, 2]));
    add(`iterator ${name}`, by([2.5, 2.5, 1.5, 0.7, 1.2]));
    if (recycling) {
      add(`iterator, recycled ${name}`, by([0, 0, 0, 0.7, 1.2]));
    }
    add(`iterator inPlace ${name}`, by([4, 4, 4, 3]));
    add(`iterator inPlace ${name}`, 1, `iterator ${name}`);
    add(`cursor inPlace ${name}`, 1, `cursor ${name}`);
  }
  if (bytes <= 125) {
    add("cursor portable", 4);
    add("iterator portable", 2);
  }
  if (wasm && bytes <= KiB) add("cursor wasm", 6);
  if (wasm) add("cursor wasm", 1, "cursor portable");
  return list;
}

function* readRows(context: Context): Generator<Race> {
  const { engines, native, recycling, peers, quick } = context;
  const rows = [16, 125, KiB, 16 * KiB, MiB].map(packed);
  if (!quick) {
    for (const bytes of [16, KiB, 16 * KiB]) {
      const count = Math.ceil(8 * CHUNK / (bytes + 6));
      rows.push(cut(`${size(bytes)}, cut`, bytes, count));
    }
  }
  for (const traffic of rows) {
    const peer = <T>(
      name: string,
      open: T | string,
      make: (open: T) => Reading,
    ) =>
      typeof open === "string"
        ? { name, absent: open }
        : { name, ...reads(traffic, make(open)) };
    const inPlace = { inPlace: true };
    yield {
      row: traffic.row,
      bytes: traffic.bytes,
      items: traffic.payloads.length,
      contenders: () => [
        ...each(engines, "cursor", (lib) => reads(traffic, cursor(lib))),
        ...each(
          [native],
          "cursor inPlace",
          (lib) => reads(traffic, cursor(lib, inPlace)),
        ),
        ...each(
          [native],
          "cursor views",
          (lib) => reads(traffic, cursorViews(lib)),
        ),
        ...each(engines, "iterator", (lib) => reads(traffic, iterator(lib))),
        ...each(
          [traffic.bytes < 2 * KiB ? undefined : recycling],
          "iterator, recycled",
          (lib) => reads(traffic, recycledIterator(lib)),
        ),
        ...each(
          engines,
          "iterator inPlace",
          (lib) => reads(traffic, iterator(lib, inPlace)),
        ),
        floor(traffic),
        peer("ws", peers.newReceiver, wsReading),
        peer("websocket-driver", peers.newDriver, driverReading),
      ],
      targets: targets(traffic.bytes, context),
    };
  }
}

/** The table of reading. */
export const readTables: Table[] = [{
  name: "read",
  title: "Reading masked binary frames in 64 KiB chunks, per frame",
  style: "peers",
  base: ["ws"],
  rows: readRows,
}];

/** The engines alone, for the comparison of two revisions. */
export function* compareRead(engines: Engine[]): Generator<Race> {
  for (const traffic of [16, 125, KiB, 16 * KiB, MiB].map(packed)) {
    const ways: [string, (lib: Library) => Reading][] = [
      ["cursor", cursor],
      ["iterator", iterator],
      ["iterator inPlace", (lib) => iterator(lib, { inPlace: true })],
    ];
    for (const [name, way] of ways) {
      yield {
        row: `${name} ${traffic.row}`,
        bytes: traffic.bytes,
        items: traffic.payloads.length,
        contenders: () => each(engines, "", (lib) => reads(traffic, way(lib))),
      };
    }
  }
}
