/**
 * The tables of masking.
 *
 * @module
 */

import type { Context, Engine, Library, Result, Table } from "./context.ts";
import { each, size } from "./context.ts";
import { fresh } from "./fresh.ts";
import { byteLoop, KEY, same, testBytes, words32, words64 } from "./loops.ts";
import type { Contender, Race, Target } from "./measure.ts";
import type { Masker, Peer } from "./peers.ts";

const KiB = 2 ** 10, MiB = 2 ** 20;

/** A cliff is where twice the size has so much less of a throughput. */
const CLIFF = 0.9;

/** Masks `bytes` in place, and is checked against the byte loop. */
function inPlace(
  mask: Masker,
  bytes: Uint8Array,
  key: Uint8Array = KEY,
): Omit<Contender, "name"> {
  let expected: Uint8Array | null = null;
  return {
    prepare: () => {
      expected = Uint8Array.from(bytes);
      byteLoop(expected, key);
    },
    run: fresh((mask: Masker, bytes: Uint8Array, key: Uint8Array) => () =>
      mask(bytes, key)
    )(mask, bytes, key),
    verify: () => {
      const right = same(bytes, expected!);
      expected = null;
      return right;
    },
  };
}

/** The same for a peer that may be absent. */
function peer(
  name: string,
  mask: Peer<Masker>,
  bytes: Uint8Array,
): Contender {
  return typeof mask === "string"
    ? { name, absent: mask }
    : { name, ...inPlace(mask, bytes) };
}

/** Seed (a): sizes, before and after. */
function* seedRows({ portable, native, wasm }: Context): Generator<Race> {
  for (
    const bytes of [8, 16, 32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
  ) {
    yield {
      row: `${bytes}`,
      bytes,
      allocations: true,
      contenders: () =>
        each(
          [portable, native ?? wasm],
          "",
          (lib) => inPlace(lib.mask, testBytes(bytes)),
        ),
    };
  }
}

/** Seed (b): sizes by alignment, by algorithm, with and without the zero key. */
function* alignRows({ native, portable, quick }: Context): Generator<Race> {
  const zero = Buffer.alloc(4);
  for (const length of [2, 4, 8, 16, 32, 512, 1024, MiB]) {
    for (const align of quick ? [1] : [0, 1, 4, 7]) {
      for (const key of [KEY, zero]) {
        const room = Buffer.alloc(length + 64);
        const bytes = room.subarray(align, align + length);
        bytes.set(testBytes(length));
        yield {
          row: `${size(length)} +${align}${key === zero ? " zero key" : ""}`,
          bytes: length,
          contenders: () => [
            { name: "byte loop", ...inPlace(fresh(byteLoop), bytes, key) },
            { name: "32-bit words", ...inPlace(words32, bytes, key) },
            { name: "64-bit words", ...inPlace(words64, bytes, key) },
            ...each(
              [native, portable],
              "",
              (lib) => inPlace(lib.mask, bytes, key),
            ),
          ],
        };
      }
    }
  }
}

/**
 * Payloads that follow each other in one buffer, as in a received chunk, or stand in
 * buffers that take turns: what a view of the buffer that is kept saves, and costs.
 */
function* turnRows({ native, portable }: Context): Generator<Race> {
  const payloads = 48;
  for (const bytes of [100, 256, 1000]) {
    for (const buffers of [1, 2, payloads]) {
      const chunks = Array.from(
        { length: buffers },
        () => testBytes(payloads * (bytes + 7)),
      );
      const views = Array.from({ length: payloads }, (_, i) => {
        const start = 6 + i * (bytes + 7);
        return chunks[i % buffers].subarray(start, start + bytes);
      });
      yield {
        row: `${size(bytes)}, ${buffers} ${buffers > 1 ? "buffers" : "buffer"}`,
        bytes,
        items: payloads,
        contenders: () => [
          { name: "byte loop", ...inTurn(fresh(byteLoop), views) },
          { name: "32-bit words", ...inTurn(words32, views) },
          { name: "64-bit words", ...inTurn(words64, views) },
          ...each([native, portable], "", (lib) => inTurn(lib.mask, views)),
        ],
      };
    }
  }
}

/** Masks each view in place. */
function inTurn(mask: Masker, views: Uint8Array[]): Omit<Contender, "name"> {
  let expected: Uint8Array[] = [];
  return {
    prepare: () => {
      expected = views.map((view) => Uint8Array.from(view));
      for (const view of expected) byteLoop(view, KEY);
    },
    run: fresh((mask: Masker, views: Uint8Array[], key: Uint8Array) => () => {
      for (let i = 0; i < views.length; i++) mask(views[i], key);
    })(mask, views, KEY),
    verify: () => views.every((view, i) => same(view, expected[i])),
  };
}

/** What the issues ask of the portable words. */
function portableTargets(bytes: number, bun: boolean): Target[] {
  const of = "portable";
  const overLoop = bytes < 8
    ? 0.5
    : bytes <= 16
    ? 0.75
    : bytes < 256
    ? 0.95
    : bytes < 512
    ? (bun ? 1.5 : 2)
    : (bun ? 2.5 : 3);
  const targets: Target[] = [{ of, over: "ws loop", atLeast: overLoop }];
  if (bytes <= 128) {
    targets.push({ of, over: "bufferutil", atLeast: bytes <= 32 ? 1 : 0.7 });
  }
  return targets;
}

/** What the issues ask of the library in C. */
function nativeTargets(of: string, bytes: number, runtime: string): Target[] {
  const targets: Target[] = [];
  const others = ["bufferutil", "ws loop", "byte loop"];
  const share = bytes < 8 ? 0.5 : bytes <= 16 ? 0.75 : bytes < KiB ? 0.9 : 1;
  targets.push({ of, over: others, atLeast: share });
  targets.push({
    of,
    over: "http.websocketUnmask",
    atLeast: bytes >= 32 && bytes <= 512 ? 0.8 : share,
  });
  const factor = { [4 * KiB]: 2.5, [16 * KiB]: 3, [64 * KiB]: 2, [MiB]: 1.6 };
  if (factor[bytes]) {
    targets.push({ of, over: "bufferutil", atLeast: factor[bytes] });
  }
  const ofC = bytes === 16 * KiB
    ? (runtime === "bun" ? 0.85 : runtime === "deno" ? 0.8 : 0.7)
    : bytes === 64 * KiB || bytes === MiB
    ? 0.9
    : 0;
  if (ofC) targets.push({ of, over: "kernel from C", atLeast: ofC });
  return targets;
}

/** Every engine against every peer, 2 bytes to 16 MiB. */
function* peerRows(context: Context): Generator<Race> {
  const { engines, native, peers, kernel, runtime, quick } = context;
  for (let bytes = 2; bytes <= (quick ? MiB : 16 * MiB); bytes *= 2) {
    // Of the larger sizes the quick run takes every second.
    if (quick && bytes > KiB && Math.log2(bytes) % 2 !== 0) continue;
    const buffer = testBytes(bytes);
    yield {
      row: size(bytes),
      bytes,
      contenders: () => [
        ...each(engines, "", (lib) => inPlace(lib.mask, buffer)),
        peer("bufferutil", peers.bufferutil, buffer),
        peer("ws loop", peers.wsLoop, buffer),
        peer("http.websocketUnmask", peers.httpUnmask, buffer),
        peer("byte loop", fresh(byteLoop), buffer),
        typeof kernel === "string"
          ? { name: "kernel from C", absent: kernel }
          : {
            name: "kernel from C",
            sample: () => kernel.sample("mask", bytes),
          },
      ],
      targets: [
        ...portableTargets(bytes, runtime === "bun"),
        ...(native ? nativeTargets(native.name, bytes, runtime) : []),
      ],
    };
  }
}

/** What a call into C costs, and whether a larger size is ever handled worse. */
function peerNotes(results: Result[], { native }: Context): string[] {
  if (!native) return [];
  const notes: string[] = [];
  const median = ({ results }: Result, name: string) =>
    results.find((result) => result.name === name)?.median;
  const call = results.find(({ bytes }) => bytes === 256);
  const ours = call && median(call, native.name);
  const kernel = call && median(call, "kernel from C");
  if (ours && kernel) {
    notes.push(
      `one call of mask, checks and way into C: ${
        (ours - kernel).toFixed(0)
      } ns (256 B, less the kernel's own time)`,
    );
  }
  // Beyond 16 KiB the caches decide.
  const small = results.filter(({ bytes }) => bytes! <= 16 * KiB);
  for (let i = 1; i < small.length; i++) {
    const before = median(small[i - 1], native.name);
    const after = median(small[i], native.name);
    const rate = before! / after! * small[i].bytes! / small[i - 1].bytes!;
    if (rate < CLIFF) {
      notes.push(
        `a cliff: ${small[i].row} at ${rate.toFixed(2)} of the rate of ${
          small[i - 1].row
        }`,
      );
    }
  }
  return notes;
}

/** Masks `source` into `target` in one pass. */
function copying(
  lib: Library,
  target: Uint8Array,
  source: Uint8Array,
): Omit<Contender, "name"> {
  const expected = Uint8Array.from(source);
  byteLoop(expected, KEY);
  return {
    run: fresh(
      (
        maskInto: Library["maskInto"],
        target: Uint8Array,
        source: Uint8Array,
        key: Uint8Array,
      ) =>
      () => maskInto(target, source, key),
    )(lib.maskInto, target, source, KEY),
    verify: () => same(target, expected),
  };
}

/** Masked copies beside plain ones. */
function* intoRows({ engines, native, kernel }: Context): Generator<Race> {
  for (const bytes of [64, KiB, 16 * KiB, 64 * KiB, MiB]) {
    const source = testBytes(bytes);
    const target = Buffer.alloc(bytes);
    const targets: Target[] = native && bytes === 64 * KiB
      ? [{ of: native.name, over: "memcpy from C", atLeast: 0.8 }]
      : [];
    yield {
      row: size(bytes),
      bytes,
      contenders: () => [
        ...each(engines, "", (lib) => copying(lib, target, source)),
        {
          name: "target.set",
          run: () => target.set(source),
          verify: () => same(target, source),
        },
        typeof kernel === "string"
          ? { name: "memcpy from C", absent: kernel }
          : {
            name: "memcpy from C",
            sample: () => kernel.sample("memcpy", bytes),
          },
      ],
      targets,
    };
  }
}

/** The tables of masking. */
export const maskTables: Table[] = [
  {
    name: "mask-seed",
    title: "Masking, before (portable) and after (native)",
    style: "change",
    rows: seedRows,
  },
  {
    name: "mask-align",
    title: "Masking by alignment and algorithm",
    style: "peers",
    base: ["byte loop"],
    rows: alignRows,
  },
  {
    name: "mask-turns",
    title: "Masking payload after payload, per payload",
    style: "peers",
    base: ["byte loop"],
    rows: turnRows,
  },
  {
    name: "mask-peers",
    title: "Masking against the peers",
    style: "peers",
    base: ["bufferutil"],
    rows: peerRows,
    notes: peerNotes,
  },
  {
    name: "mask-into",
    title: "Masked copy (maskInto)",
    style: "peers",
    base: ["memcpy from C", "target.set"],
    rows: intoRows,
  },
];

/** The engines alone, for the comparison of two revisions. */
export function* compareMask(engines: Engine[]): Generator<Race> {
  for (const bytes of [8, 32, 128, KiB, 16 * KiB, MiB]) {
    const buffer = testBytes(bytes);
    yield {
      row: `mask ${size(bytes)}`,
      bytes,
      contenders: () => each(engines, "", (lib) => inPlace(lib.mask, buffer)),
    };
  }
}
