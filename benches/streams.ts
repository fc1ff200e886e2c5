/**
 * The table of the transform streams: what they add to the reader and the writer.
 *
 * @module
 */

import type { Context, Library, Table } from "./context.ts";
import { each } from "./context.ts";
import { encodeFrame, testBytes } from "./loops.ts";
import type { Contender, Race } from "./measure.ts";

/** Frames per chunk and chunks per run. */
const FRAMES = 500, CHUNKS = 16;

type FrameInit = Parameters<Library["writeFrame"]>[0];

/** Writes every chunk to a transform stream and counts what comes out. */
async function pump<I, O>(
  stream: TransformStream<I, O>,
  input: I[],
  count: (output: O) => number,
): Promise<number> {
  const writer = stream.writable.getWriter();
  const feed = (async () => {
    for (const chunk of input) {
      await writer.ready;
      writer.write(chunk);
    }
    await writer.close();
  })();
  const reader = stream.readable.getReader();
  let total = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    total += count(value);
  }
  await feed;
  return total;
}

function* rows({ engines, quick }: Context): Generator<Race> {
  for (const bytes of quick ? [125] : [16, 125, 1024]) {
    const payload = testBytes(bytes);
    const frame = encodeFrame(payload);
    const chunk = Buffer.concat(Array<Buffer>(FRAMES).fill(frame));
    const chunks = Array<Uint8Array>(CHUNKS).fill(chunk);
    const items = FRAMES * CHUNKS;
    const init: FrameInit = { opcode: 2, payload };
    const inits = Array<FrameInit>(items).fill(init);
    const total = items * bytes;
    const payloads = (run: () => unknown): Omit<Contender, "name"> => ({
      run,
      verify: (seen) => seen === total,
    });
    const encoded = (run: () => unknown): Omit<Contender, "name"> => ({
      run,
      verify: (seen) => seen === items * frame.length,
    });
    yield {
      row: `${bytes} B`,
      bytes,
      items,
      contenders: () => [
        ...each(engines, "FrameReader", (lib) =>
          payloads(() => {
            const reader = new lib.FrameReader({ role: "server" });
            let seen = 0;
            for (const chunk of chunks) {
              for (const frame of reader.push(chunk)) {
                seen += frame.payload.length;
              }
            }
            return seen;
          })),
        ...each(engines, "FrameDecoderStream", (lib) =>
          payloads(() =>
            pump(
              new lib.FrameDecoderStream({ role: "server" }),
              chunks,
              (frame) => frame.payload.length,
            )
          )),
        {
          name: "TransformStream that does nothing, a chunk per frame",
          ...payloads(() =>
            pump(
              new TransformStream<Uint8Array, Uint8Array>(),
              Array<Uint8Array>(items).fill(payload),
              (output) => output.length,
            )
          ),
        },
        {
          // What an encoder costs that gives all at the end.
          name: "floor: TransformStream that gives nothing",
          run: () =>
            pump(
              new TransformStream<Uint8Array, Uint8Array>({ transform() {} }),
              Array<Uint8Array>(items).fill(payload),
              (output) => output.length,
            ),
          verify: (seen) => seen === 0,
        },
        ...each(engines, "FrameWriter", (lib) =>
          encoded(() => {
            const writer = new lib.FrameWriter({ role: "client" });
            let written = 0;
            for (let i = 0; i < items; i++) {
              writer.write(init);
              if (i % FRAMES === 0) written += writer.take().length;
            }
            return written + writer.take().length;
          })),
        ...each(engines, "FrameEncoderStream", (lib) =>
          encoded(() =>
            pump(
              new lib.FrameEncoderStream({ role: "client" }),
              inits,
              (output) => output.length,
            )
          )),
      ],
    };
  }
}

/** The table of the streams. */
export const streamTables: Table[] = [{
  name: "streams",
  title: "Transform streams, per frame",
  style: "peers",
  base: ["TransformStream that does nothing, a chunk per frame"],
  rows,
}];
