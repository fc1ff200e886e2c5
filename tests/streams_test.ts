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
      const chunks: Uint8Array[] = [];
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
    const bytes = bytesOf("810161810162810163ff");
    for (const size of [1, 2, 6, 9, 10]) {
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        chunks.push(bytes.slice(at, at + size));
      }
      const got: string[] = [];
      const error = await assertRejects(async () => {
        const frames = streamOf(chunks).pipeThrough(new FrameDecoderStream());
        for await (const { payload } of frames) got.push(hex(payload));
      }, FrameError);
      assertEquals(got, ["61", "62", "63"], `chunks of ${size} bytes`);
      assertEquals(error.code, "WS_ERR_UNEXPECTED_RSV_1");
      assertEquals(error.byteOffset, 9);
    }
  });

  it("tells both sides of a fault", async () => {
    const stream = new FrameDecoderStream();
    const writer = stream.writable.getWriter();
    const written = writer.write(bytesOf("810161ff"));
    const reader = stream.readable.getReader();
    assertEquals(hex((await reader.read()).value!.payload), "61");
    const errors = await Promise.all([
      assertRejects(() => reader.read(), FrameError),
      assertRejects(() => written, FrameError),
      assertRejects(() => writer.closed, FrameError),
      assertRejects(() => writer.write(bytesOf("810162")), FrameError),
    ]);
    for (const error of errors) assertEquals(error, errors[0]);
  });

  it("keeps what abort and cancel of a TransformStream mean", async () => {
    const reason = new Error("enough");
    const aborted = new FrameDecoderStream();
    const writer = aborted.writable.getWriter();
    const first = writer.write(bytesOf("810161")).catch((error) => error);
    // Under way, and waiting for a reader.
    await new Promise((resolve) => setTimeout(resolve, 5));
    await writer.abort(reason);
    assertEquals(await assertRejects(() => collect(aborted.readable)), reason);
    await first;

    const cancelled = new FrameDecoderStream();
    const other = cancelled.writable.getWriter();
    const settled = Promise.allSettled([
      other.write(bytesOf("810161")),
      other.write(bytesOf("810162")),
      other.closed,
    ]);
    await cancelled.readable.cancel(reason);
    const statuses = (await settled).map(({ status }) => status);
    assertEquals(statuses.slice(1), ["rejected", "rejected"]);
  });

  it("fails when the bytes end inside a frame", async () => {
    const got: string[] = [];
    const error = await assertRejects(async () => {
      const frames = streamOf([bytesOf("8101618101628101")])
        .pipeThrough(new FrameDecoderStream());
      for await (const { payload } of frames) got.push(hex(payload));
    }, FrameError);
    assertEquals(got, ["61", "62"]);
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

/** What can be done to a stream from bytes, by the name of its outcome. */
const ACTIONS = ["write", "part", "bad", "close", "abort", "cancel", "read"];

/** A frame, the start of a long one, and one that is refused. */
const CHUNKS: Record<string, Uint8Array> = {
  write: bytesOf("810161"),
  part: bytesOf("817effff61"),
  bad: bytesOf("ff"),
};

/** What a decoder does with chunks of one frame, by a TransformStream's own means. */
function plainDecoder(): TransformStream<Uint8Array, unknown> {
  let part = false;
  const fault = () => new FrameError("WS_ERR_UNEXPECTED_END", 0);
  return new TransformStream({
    transform(chunk, controller) {
      if (part) return;
      if (chunk === CHUNKS.bad) throw fault();
      if (chunk === CHUNKS.part) part = true;
      else controller.enqueue(chunk);
    },
    flush() {
      if (part) throw fault();
    },
  });
}

/** Both ends of a stream, and what became of everything that was asked of them. */
class Ends {
  readonly outcomes: string[] = [];
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<unknown>;

  constructor(stream: TransformStream<Uint8Array, unknown>) {
    this.#writer = stream.writable.getWriter();
    this.#reader = stream.readable.getReader();
    this.#note("writer.closed", this.#writer.closed);
    this.#note("reader.closed", this.#reader.closed);
  }

  #note(name: string, promise: Promise<unknown>): void {
    const i = this.outcomes.push(`${name} waits`) - 1;
    promise.then(
      (result) => {
        const { done } = (result ?? {}) as { done?: boolean };
        this.outcomes[i] = `${name} ends ${done ?? ""}`;
      },
      (error) => {
        const told = typeof error === "string" ? error : error.name;
        this.outcomes[i] = `${name} fails: ${told}`;
      },
    );
  }

  act(action: string, reason: string): void {
    this.#note(action, this.#act(action, reason));
  }

  /** Node 20 throws where it should return a promise that fails. */
  async #act(action: string, reason: string): Promise<unknown> {
    switch (action) {
      case "close":
        return await this.#writer.close();
      case "abort":
        return await this.#writer.abort(reason);
      case "cancel":
        return await this.#reader.cancel(reason);
      case "read":
        return await this.#reader.read();
      default:
        return await this.#writer.write(CHUNKS[action]);
    }
  }
}

/** Lets all promises that can settle do so. */
async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((done) => setTimeout(done));
}

function sequences(length: number): string[][] {
  if (length === 0) return [[]];
  const shorter = sequences(length - 1);
  return shorter.concat(
    shorter.filter((sequence) => sequence.length === length - 1)
      .flatMap((sequence) => ACTIONS.map((action) => [...sequence, action])),
  );
}

describe("a FrameDecoderStream does what a plain TransformStream does", () => {
  const start = (actions: string[]) => ({
    actions,
    decoder: new Ends(new FrameDecoderStream()),
    plain: new Ends(plainDecoder()),
    stuck: false,
  });
  type Run = ReturnType<typeof start>;
  const step = (run: Run, i: number) => {
    if (i >= run.actions.length) return;
    run.decoder.act(run.actions[i], `reason ${i}`);
    run.plain.act(run.actions[i], `reason ${i}`);
  };

  it("when all is asked at once", async () => {
    // Whether a cancellation reaches the writable side before an abort of the same moment
    // changed with the standard.
    const runs = sequences(3)
      .filter((actions) =>
        !actions.includes("cancel") ||
        actions.indexOf("cancel") > actions.lastIndexOf("abort")
      ).map(start);
    for (let i = 0; i < 3; i++) for (const run of runs) step(run, i);
    await settle();
    for (const { actions, decoder, plain } of runs) {
      assertEquals(decoder.outcomes, plain.outcomes, actions.join(", "));
    }
  });

  it("when each thing is asked after the last, but that an abort never waits", async () => {
    const runs = sequences(3).map(start);
    for (let i = 0; i < 3; i++) {
      for (const run of runs) step(run, i);
      await settle();
      for (const run of runs) {
        run.stuck ||= run.plain.outcomes.at(-1) === "abort waits";
      }
    }
    for (const { actions, decoder, plain, stuck } of runs) {
      const { outcomes } = decoder;
      if (stuck) {
        // A write waits for a reader there, and the abort for the write.
        const reason = `reason ${actions.indexOf("abort")}`;
        assertEquals(outcomes[0], `writer.closed fails: ${reason}`);
        assertEquals(outcomes[1], `reader.closed fails: ${reason}`);
        assertEquals(outcomes[2 + actions.indexOf("abort")], "abort ends ");
        assert(!outcomes.some((outcome) => outcome.endsWith("waits")));
      } else assertEquals(outcomes, plain.outcomes, actions.join(", "));
    }
    assert(runs.some(({ stuck }) => stuck));
  });
});

describe("a fault of a FrameDecoderStream", () => {
  it("is told when the frames before it were read, and nothing more", async () => {
    const frame = "810161";
    for (let count = 0; count < 4; count++) {
      // In the same chunk, in the next, at the end; read before that, and after.
      for (
        const chunks of [
          [frame.repeat(count) + "ff"],
          [frame.repeat(count), "ff"],
          [frame.repeat(count) + "8105"],
        ]
      ) {
        for (const early of [true, false]) {
          const stream = new FrameDecoderStream();
          const writer = stream.writable.getWriter();
          const reader = stream.readable.getReader();
          const write = () =>
            Promise.all([
              ...chunks.map((chunk) => writer.write(bytesOf(chunk))),
              writer.close(),
            ]);
          const read = async () => {
            for (let i = 0; i < count; i++) {
              assertEquals(hex((await reader.read()).value!.payload), "61");
            }
          };
          const told = Promise.all([
            assertRejects(() => writer.closed, FrameError),
            assertRejects(() => reader.closed, FrameError),
          ]);
          const reading = early ? read() : undefined;
          const writing = assertRejects(write, FrameError);
          if (!early) await settle();
          await (reading ?? read());
          // The first chunk, or the next, is looked at when it is asked for.
          if (count === 0 || chunks.length > 1) reader.read().catch(() => {});
          await Promise.all([writing, told]);
        }
      }
    }
  });

  it("waits while frames before it wait", async () => {
    for (const tail of ["ff", "8105"]) {
      const stream = new FrameDecoderStream();
      const writer = stream.writable.getWriter();
      const reader = stream.readable.getReader();
      let failed = false;
      const writing = Promise.all([
        writer.write(bytesOf("810161".repeat(3) + tail)),
        writer.close(),
        writer.closed,
      ]).catch((error) => {
        failed = true;
        return error;
      });
      reader.closed.catch(() => {});
      for (let i = 0; i < 3; i++) {
        await settle();
        assertEquals(failed, false);
        assertEquals(hex((await reader.read()).value!.payload), "61");
      }
      assertInstanceOf(await writing, FrameError);
    }
  });
});

describe("a FrameDecoderStream that is left", () => {
  it("cancels its source", async () => {
    let cancelled: unknown;
    const source = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        controller.enqueue(bytesOf("89008900"));
      },
      cancel(reason) {
        cancelled = reason ?? "without a reason";
      },
    });
    const frames = source.pipeThrough(new FrameDecoderStream());
    for await (const _ of frames) {
      // Meanwhile the next chunk has come, and waits.
      await new Promise((resolve) => setTimeout(resolve, 20));
      break;
    }
    while (cancelled === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assertEquals(cancelled, "without a reason");
  });

  it("is transferred as it is, or not at all", async () => {
    const stream = new FrameDecoderStream();
    let moved: TransformStream<Uint8Array, Frame>;
    try {
      moved = structuredClone(stream, { transfer: [stream] });
    } catch {
      return; // where its inner sides would go instead
    }
    const writer = moved.writable.getWriter();
    writer.write(bytesOf("810161")).catch(() => {});
    const reader = moved.readable.getReader();
    assertEquals(hex((await reader.read()).value!.payload), "61");
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

  it("gives frames that wait together as one chunk", async () => {
    const stream = new FrameEncoderStream();
    const writer = stream.writable.getWriter();
    const inits = Array.from(
      { length: 100 },
      (_, i): FrameInit => ({ opcode: 1, payload: String(i) }),
    );
    const written = inits.map((init) => writer.write(init));
    const reader = stream.readable.getReader();
    const { value } = await reader.read();
    assertEquals(
      hex(value!),
      hex(concat(inits.map((init) => writeFrame(init)))),
    );
    await Promise.all(written);
    await reader.cancel();
  });

  it("gives chunks of 64 KiB and one frame at most", async () => {
    const stream = new FrameEncoderStream();
    const writer = stream.writable.getWriter();
    const payload = randomBytes(10_000, seeded(42));
    for (let i = 0; i < 50; i++) writer.write({ opcode: 2, payload });
    const closed = writer.close();
    // Comes too late, and holds nothing back.
    await assertRejects(() => writer.write({ opcode: 9 }), TypeError);
    const chunks = await collect(stream.readable);
    await closed;
    assertEquals(
      hex(concat(chunks)),
      hex(writeFrame({ opcode: 2, payload })).repeat(50),
    );
    assertEquals(chunks.length, 8);
    for (const { length } of chunks) assert(length <= 65536 + 10_004);
  });

  it("holds no frame back for others to come", async () => {
    const stream = new FrameEncoderStream();
    const writer = stream.writable.getWriter();
    const reader = stream.readable.getReader();
    for (let i = 0; i < 30; i++) {
      const count = i % 3 + 1;
      for (let n = 0; n < count; n++) writer.write({ opcode: 9 });
      let length = 0;
      while (length < 2 * count) length += (await reader.read()).value!.length;
      assertEquals(length, 2 * count);
    }
    await Promise.all([writer.close(), reader.read()]);
  });

  it("makes few chunks of many frames from a writer that waits", async () => {
    const stream = new FrameEncoderStream();
    const writer = stream.writable.getWriter();
    const written = (async () => {
      for (let i = 0; i < 1000; i++) {
        await writer.ready;
        writer.write({ opcode: 9 });
      }
      await writer.close();
    })();
    const chunks = await collect(stream.readable);
    await written;
    assertEquals(concat(chunks).length, 2000);
    assert(chunks.length < 100, `${chunks.length} chunks`);
  });

  it("gives the frames before a bad one, then fails", async () => {
    const stream = new FrameEncoderStream();
    const writer = stream.writable.getWriter();
    const results = Promise.allSettled([
      writer.write({ opcode: 9 }),
      writer.write({ opcode: 10 }),
      writer.write({ opcode: 3 }),
      writer.write({ opcode: 9 }),
      writer.closed,
    ]);
    const reader = stream.readable.getReader();
    assertEquals(hex((await reader.read()).value!), "89008a00");
    await assertRejects(() => reader.read(), RangeError);
    assertEquals(
      (await results).map(({ status }) => status === "fulfilled"),
      [true, true, false, false, false],
    );
  });

  it("keeps what abort and cancel of a TransformStream mean", async () => {
    const reason = new Error("enough");
    const aborted = new FrameEncoderStream();
    const writer = aborted.writable.getWriter();
    writer.write({ opcode: 9 }).catch(() => {});
    await writer.abort(reason);
    const error = await assertRejects(() => collect(aborted.readable));
    assertEquals(error, reason);

    const cancelled = new FrameEncoderStream();
    const other = cancelled.writable.getWriter();
    const settled = Promise.allSettled([
      other.write({ opcode: 9 }),
      other.closed,
    ]);
    await cancelled.readable.cancel(reason);
    for (const { status } of await settled) assertEquals(status, "rejected");
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
    const given = (await reader.read()).value!.length / 12;
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert(pulled <= given + 4, `${pulled} frames, ${given} of them given`);
    await reader.cancel();
  });

  it("makes a writer wait after three frames", async () => {
    const writer = new FrameEncoderStream().writable.getWriter();
    for (let left = 3; left > 0; left--) {
      assertEquals(writer.desiredSize, left);
      writer.write({ opcode: 9 });
    }
    let ready = false;
    writer.ready.then(() => ready = true);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assertEquals([ready, writer.desiredSize], [false, 0]);
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
