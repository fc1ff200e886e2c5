/**
 * Frames through TransformStreams, with their backpressure.
 *
 * A chunk that holds many frames costs one write; the frames wait in the readable side's
 * queue, and the next chunk is not taken before they were read. In the other direction,
 * frames that wait together become one chunk: each chunk that is read costs a stream as
 * much as each that is written.
 *
 * @module
 */

import type { Frame, FrameInit } from "./frame.ts";
import { FrameReader, type ReadOptions } from "./reader.ts";
import { FrameWriter, type WriteOptions } from "./writer.ts";

/**
 * Links a class below TransformStream on its first use, and makes an instance. Merely
 * naming TransformStream costs Node 2.5 ms at import, which only who streams should pay.
 */
function construct<I, O>(
  base: { prototype: object },
  transformer: Transformer<I, O>,
  newTarget: unknown,
  writableStrategy?: QueuingStrategy<I>,
): TransformStream<I, O> {
  if (!(base.prototype instanceof TransformStream)) {
    Object.setPrototypeOf(base.prototype, TransformStream.prototype);
    Object.setPrototypeOf(base, TransformStream);
  }
  return Reflect.construct(
    TransformStream,
    [transformer, writableStrategy],
    newTarget as typeof TransformStream,
  );
}

/**
 * The two sides of a decoder. A TransformStream that fails throws away what waits to be
 * read; here a fault waits until the frames before it were. So the last frame before a
 * fault, or before the start of a frame that may have one, is held until it is asked for:
 * nothing else tells when all were read.
 */
function decoder(reader: FrameReader): ReadableWritablePair<Frame, Uint8Array> {
  let output: ReadableStreamDefaultController<Frame>;
  let input: WritableStreamDefaultController;
  let held: Frame | undefined;
  /** Whether all frames that were given have been read, and more are asked for. */
  let asked = false;
  /** Why a chunk that waits is thrown away. */
  let stopped: { reason: unknown } | undefined;
  let wake = () => {};
  const woken = () => new Promise<void>((resolve) => wake = resolve);
  const give = () => {
    if (held === undefined) return;
    const frame = held;
    held = undefined;
    asked = false;
    // May ask for the next one before it returns.
    output.enqueue(frame);
  };
  const stop = (reason: unknown) => {
    stopped ??= { reason };
    held = undefined;
    wake();
  };
  const waiting = () => held !== undefined || output.desiredSize! < 0;
  const fail = async (error: unknown) => {
    while (stopped === undefined && waiting()) await woken();
    output.error(error);
    throw error;
  };
  const readable = new ReadableStream<Frame>({
    start(controller) {
      output = controller;
    },
    pull() {
      if (held === undefined) asked = true;
      else give();
      wake();
    },
    cancel(reason) {
      stop(reason);
      input.error(reason);
    },
  }, { highWaterMark: 0 });
  const writable = new WritableStream<Uint8Array>({
    start(controller) {
      input = controller;
      // The stream calls `abort` only after the write under way, which may wait for a reader.
      const { signal } = controller;
      signal.addEventListener("abort", () => stop(signal.reason));
    },
    async write(chunk) {
      while (!asked && stopped === undefined) await woken();
      if (stopped !== undefined) throw stopped.reason;
      try {
        for (const frame of reader.push(chunk)) {
          give();
          held = frame;
        }
      } catch (error) {
        if (asked) give();
        await fail(error);
      }
      if (asked || reader.bufferedBytes === 0) give();
    },
    async close() {
      try {
        reader.end();
      } catch (error) {
        await fail(error);
      }
      give();
      output.close();
    },
    abort(reason) {
      output.error(reason);
    },
  });
  return { readable, writable };
}

/** The type of a {@linkcode FrameDecoderStream}. */
export interface FrameDecoderStream extends TransformStream<Uint8Array, Frame> {
}

/** How {@linkcode FrameDecoderStream} is made. */
export interface FrameDecoderStreamConstructor {
  /**
   * Makes a stream from bytes to frames.
   *
   * @param options How to read
   */
  new (options?: ReadOptions): FrameDecoderStream;
  /** The prototype; it inherits from TransformStream's after the first use. */
  readonly prototype: FrameDecoderStream;
}

/**
 * A TransformStream from bytes, cut anywhere, to frames. It fails with the
 * {@linkcode FrameError} of the reader, also when the bytes end inside a frame, once the
 * frames before that were read.
 *
 * @example
 * ```ts
 * import { FrameDecoderStream } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = new Blob([new Uint8Array([0x81, 2, 0x68, 0x69, 0x89, 0])]);
 * const opcodes: number[] = [];
 * const frames = bytes.stream().pipeThrough(new FrameDecoderStream());
 * for await (const frame of frames) opcodes.push(frame.opcode);
 * assertEquals(opcodes, [1, 9]);
 * ```
 */
export const FrameDecoderStream: FrameDecoderStreamConstructor =
  class FrameDecoderStream {
    constructor(options?: ReadOptions) {
      const { readable, writable } = decoder(new FrameReader(options));
      const stream = construct(FrameDecoderStream, {}, new.target);
      // Its own sides are not in use; locked, nobody can transfer them instead.
      stream.readable.getReader();
      return Object.defineProperties(stream, {
        readable: { value: readable },
        writable: { value: writable },
      });
    }
  } as unknown as FrameDecoderStreamConstructor;

/** From so many bytes on, what was written comes out, whatever else waits. */
const MAX_CHUNK_LENGTH = 0x10000;

/**
 * How many frames may wait to be written. With three, a writer that waits until it may
 * go on keeps one there while the next two change places; with fewer no two ever meet.
 */
const MAX_WAITING = 3;

/** The type of a {@linkcode FrameEncoderStream}. */
export interface FrameEncoderStream
  extends TransformStream<FrameInit, Uint8Array> {
}

/** How {@linkcode FrameEncoderStream} is made. */
export interface FrameEncoderStreamConstructor {
  /**
   * Makes a stream from frames to bytes.
   *
   * @param options How to write
   */
  new (options?: WriteOptions): FrameEncoderStream;
  /** The prototype; it inherits from TransformStream's after the first use. */
  readonly prototype: FrameEncoderStream;
}

/**
 * A TransformStream from frames to bytes. Frames that wait to be written come out as one
 * chunk, of 64 KiB and one frame at most; the last of them is never held back for others
 * to come. A frame that must not be written makes it fail with the error of the writer,
 * after those before it came out.
 *
 * @example
 * ```ts
 * import { FrameEncoderStream, type FrameInit } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const frames = new ReadableStream<FrameInit>({
 *   start(controller) {
 *     controller.enqueue({ opcode: 1, payload: "hi" });
 *     controller.enqueue({ opcode: 9 });
 *     controller.close();
 *   },
 * });
 * const bytes: number[] = [];
 * for await (const chunk of frames.pipeThrough(new FrameEncoderStream())) {
 *   bytes.push(...chunk);
 * }
 * assertEquals(bytes, [0x81, 2, 0x68, 0x69, 0x89, 0]);
 * ```
 */
export const FrameEncoderStream: FrameEncoderStreamConstructor =
  class FrameEncoderStream {
    constructor(options?: WriteOptions) {
      const writer = new FrameWriter(options);
      let waiting = 0;
      const give = (
        controller: TransformStreamDefaultController<Uint8Array>,
      ): void => {
        if (writer.bufferedBytes > 0) controller.enqueue(writer.take());
      };
      return construct<FrameInit, Uint8Array>(
        FrameEncoderStream,
        {
          transform(frame, controller) {
            waiting--;
            try {
              writer.write(frame);
            } catch (error) {
              give(controller);
              throw error;
            }
            if (waiting <= 0 || writer.bufferedBytes >= MAX_CHUNK_LENGTH) {
              give(controller);
            }
          },
          flush: give,
        },
        new.target,
        {
          highWaterMark: MAX_WAITING,
          // Called when a frame begins to wait: the only sign of it that there is.
          size() {
            waiting++;
            return 1;
          },
        },
      );
    }
  } as unknown as FrameEncoderStreamConstructor;
