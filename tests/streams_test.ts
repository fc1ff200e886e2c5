import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertThrows,
} from "@std/assert";
import {
  FrameDecoderStream,
  FrameEncoderStream,
  FrameError,
  writeFrame,
} from "@wsframe/wsframe";
import type { Frame, FrameInit } from "@wsframe/wsframe";
import { bytesOf, concat, hex, randomBytes, seeded } from "./vectors.ts";

async function collect<T>(stream: ReadableStream<T>): Promise<T[]> {
  const items: T[] = [];
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return items;
    items.push(value);
  }
}

function streamOf<T>(items: Iterable<T>): ReadableStream<T> {
  const iterator = items[Symbol.iterator]();
  return new ReadableStream<T>({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  }, { highWaterMark: 0 });
}

describe("FrameDecoderStream", () => {
  it("gives the frames of bytes cut anywhere", async () => {
    const random = seeded(40);
    const payloads = Array.from(
      { length: 50 },
      () => randomBytes(random(900), random),
    );
    const bytes = concat(
      payloads.map((payload) =>
        writeFrame({ opcode: 2, payload }, { role: "client" })
      ),
    );
    for (const size of [1, 100, 4096, bytes.length]) {
      const chunks = [];
      for (let at = 0; at < bytes.length; at += size) {
        chunks.push(bytes.slice(at, at + size));
      }
      const frames = await collect(
        streamOf(chunks).pipeThrough(
          new FrameDecoderStream({ role: "server" }),
        ),
      );
      assertEquals(
        frames.map(({ payload }) => hex(payload)),
        payloads.map(hex),
      );
    }
  });

  it("gives the frames before a fault, then fails with it", async () => {
    const stream = streamOf([bytesOf("810161810162ff")])
      .pipeThrough(new FrameDecoderStream());
    const reader = stream.getReader();
    // The queue of a failed stream is thrown away, so read while it fills.
    const error = await assertRejects(async () => {
      while (!(await reader.read()).done);
    }, FrameError);
    assertEquals(error.code, "WS_ERR_UNEXPECTED_RSV_1");
    assertEquals(error.byteOffset, 6);
  });

  it("fails when the bytes end inside a frame", async () => {
    const error = await assertRejects(
      () =>
        collect(
          streamOf([bytesOf("8101618101")])
            .pipeThrough(new FrameDecoderStream()),
        ),
      FrameError,
    );
    assertEquals(error.code, "WS_ERR_UNEXPECTED_END");
    await assertRejects(
      () =>
        collect(
          streamOf(["text" as unknown as Uint8Array])
            .pipeThrough(new FrameDecoderStream()),
        ),
      TypeError,
    );
  });

  it("takes no chunk before the frames of the last were read", async () => {
    let pulled = 0;
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(concat(Array(100).fill(bytesOf("810161"))));
      },
    }, { highWaterMark: 0 });
    const reader = source.pipeThrough(new FrameDecoderStream()).getReader();
    for (let i = 0; i < 350; i++) assert(!(await reader.read()).done);
    // The chunk being read, and what the two queues on the way may hold.
    assert(pulled >= 4 && pulled <= 7, `${pulled} chunks`);
    await reader.cancel();
  });
});

describe("FrameEncoderStream", () => {
  it("gives the bytes of the frames", async () => {
    const inits: FrameInit[] = [
      { opcode: 1, payload: "hé" },
      { opcode: 9 },
      { opcode: 2, payload: new Uint8Array(70_000) },
      { opcode: 2, payload: new Uint8Array(0), fin: false },
    ];
    const chunks = await collect(
      streamOf(inits).pipeThrough(new FrameEncoderStream()),
    );
    assertEquals(
      hex(concat(chunks)),
      hex(concat(inits.map((init) => writeFrame(init)))),
    );
  });

  it("goes through a decoder and back", async () => {
    const random = seeded(41);
    const payloads = Array.from(
      { length: 500 },
      () => randomBytes(random(300), random),
    );
    const frames: Frame[] = await collect(
      streamOf(payloads.map((payload): FrameInit => ({ opcode: 2, payload })))
        .pipeThrough(new FrameEncoderStream({ role: "client" }))
        .pipeThrough(new FrameDecoderStream({ role: "server" })),
    );
    assertEquals(frames.map(({ payload }) => hex(payload)), payloads.map(hex));
  });

  it("fails on a frame that must not be written", async () => {
    await assertRejects(
      () =>
        collect(
          streamOf<FrameInit>([{ opcode: 3 }])
            .pipeThrough(new FrameEncoderStream()),
        ),
      RangeError,
    );
  });

  it("waits for its reader", async () => {
    let pulled = 0;
    const source = new ReadableStream<FrameInit>({
      pull(controller) {
        pulled++;
        controller.enqueue({ opcode: 2, payload: new Uint8Array(10) });
      },
    }, { highWaterMark: 0 });
    const reader = source.pipeThrough(new FrameEncoderStream()).getReader();
    await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert(pulled <= 4, `${pulled} frames`);
    await reader.cancel();
  });
});

describe("both", () => {
  it("are TransformStreams, also when subclassed, and need new", () => {
    class Decoder extends FrameDecoderStream {
      extra = 1;
    }
    const decoder = new Decoder({ role: "client" });
    assertInstanceOf(decoder, Decoder);
    assertInstanceOf(decoder, FrameDecoderStream);
    assertInstanceOf(decoder, TransformStream);
    assertEquals(decoder.extra, 1);
    assertInstanceOf(new FrameEncoderStream(), TransformStream);
    assertInstanceOf(new FrameEncoderStream(), FrameEncoderStream);
    assertThrows(
      () => (FrameDecoderStream as unknown as () => void)(),
      TypeError,
    );
  });

  it("check their options at once", () => {
    assertThrows(
      () => new FrameDecoderStream({ maxPayloadLength: -1 }),
      RangeError,
    );
    assertThrows(
      () => new FrameEncoderStream({ role: "x" as "client" }),
      RangeError,
    );
  });
});
