/**
 * The library on real traffic: what it reads must be what the recorded peers
 * read themselves, and what it writes must be what they wrote, byte for byte.
 */

import { after, describe, it } from "node:test";
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import {
  backend,
  backends,
  type Frame,
  FrameReader,
  FrameWriter,
  readClosePayload,
  useBackend,
  writeFrame,
} from "@wsframe/wsframe";
import type { Received } from "./record_peer.ts";
import {
  chunksOf,
  headLength,
  Inflater,
  readBytes,
  readIndex,
  type Recording,
  type Side,
} from "./recordings.ts";
import { concat, seeded, sha256 } from "./vectors.ts";

const SEED = 20261130;
const SIDES: readonly Side[] = ["client", "server"];
const OPCODES = [0, 1, 2, 8, 9, 10];
const NAMES = ["continuation", "text", "binary", "close", "ping", "pong"];
const { recordings } = readIndex();

function other(side: Side): Side {
  return side === "client" ? "server" : "client";
}

function readerOf(side: Side, recording: Recording): FrameReader {
  return new FrameReader({
    role: other(side),
    allowRsv1: recording.extensions !== null,
  });
}

/** The frames that one side sent, its bytes pushed as the chunks given. */
function framesIn(
  chunks: Iterable<Uint8Array>,
  side: Side,
  recording: Recording,
): Frame[] {
  const reader = readerOf(side, recording);
  const frames: Frame[] = [];
  for (const chunk of chunks) frames.push(...reader.push(chunk));
  reader.end();
  return frames;
}

/** All that one side sent after its HTTP head. */
function bodyOf(side: Side, { name }: Recording): Uint8Array {
  const bytes = readBytes(name, side);
  return bytes.subarray(headLength(bytes));
}

/** The same as it passed, chunk for chunk. */
function passedChunks(side: Side, recording: Recording): Uint8Array[] {
  const chunks = chunksOf(recording)
    .filter(({ from }) => from === side)
    .map(({ bytes }) => bytes);
  let head = headLength(concat(chunks));
  return chunks.map((chunk) => {
    const cut = Math.min(head, chunk.length);
    head -= cut;
    return chunk.subarray(cut);
  });
}

function* cutBy(bytes: Uint8Array, next: () => number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const end = at + next();
    yield bytes.subarray(at, end);
    at = end;
  }
}

/** The messages in `frames`, as the other end's parser reported them. */
function messagesIn(
  frames: Frame[],
  side: Side,
  recording: Recording,
): Received[] {
  const inflater = new Inflater(recording, side);
  const messages: Received[] = [];
  let parts: Frame[] = [];
  for (const frame of frames) {
    if (frame.opcode >= 8) continue;
    parts.push(frame);
    if (!frame.fin) continue;
    let bytes: Uint8Array = concat(parts.map(({ payload }) => payload));
    if (parts[0].rsv1) bytes = inflater.message(bytes);
    messages.push(
      parts[0].opcode === 1
        ? new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
          .decode(bytes)
        : { bytes: bytes.length, sha256: sha256(bytes) },
    );
    parts = [];
  }
  assertEquals(parts.length, 0, "the last message has no end");
  return messages;
}

function countByName(frames: Frame[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { opcode } of frames) {
    const name = NAMES[OPCODES.indexOf(opcode)];
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const found = backend().name;
for (const { name: backendName, available } of backends()) {
  if (!available) continue;
  describe(`recordings, ${backendName}`, () => {
    after(() => useBackend(found));
    for (const recording of recordings) {
      for (const side of SIDES) {
        it(`${recording.name}, sent by the ${side}`, () => {
          useBackend(backendName);
          const body = bodyOf(side, recording);
          const frames = framesIn([body], side, recording);

          assertEquals(countByName(frames), recording.frames[side]);
          assertEquals(
            messagesIn(frames, side, recording),
            recording.received[other(side)],
          );
          const last = frames[frames.length - 1];
          assertEquals(last.opcode, 8);
          assertEquals(
            readClosePayload(last.payload),
            recording.close[other(side)],
          );

          const again = frames.map((frame) =>
            writeFrame(frame, { maskKey: frame.maskKey })
          );
          assertEquals(sha256(concat(again)), sha256(body));

          const random = seeded(SEED);
          const cuts: Record<string, Iterable<Uint8Array>> = {
            "as they passed": passedChunks(side, recording),
            "byte by byte": cutBy(body, () => 1),
            "7 bytes": cutBy(body, () => 7),
            "1021 bytes": cutBy(body, () => 1021),
            [`0 to 199 bytes, seed ${SEED}`]: cutBy(body, () => random(200)),
          };
          for (const [cut, chunks] of Object.entries(cuts)) {
            assertEquals(framesIn(chunks, side, recording), frames, cut);
          }
        });
      }
    }
  });
}

describe("recordings", () => {
  it("go through FrameWriter unchanged where nothing is masked", () => {
    for (const recording of recordings) {
      const body = bodyOf("server", recording);
      const writer = new FrameWriter({ role: "server" });
      for (const frame of framesIn([body], "server", recording)) {
        writer.write(frame);
      }
      assertEquals(sha256(writer.take()), sha256(body), recording.name);
    }
  });

  it("pair every client with every server", () => {
    const peers = ["ws", "deno", "bun"];
    for (const client of peers) {
      for (const server of peers) {
        assert(
          recordings.some(({ name }) => name === `${client}-${server}`),
          `no ${client}-${server}`,
        );
      }
    }
  });

  it("hold what a codec meets in the field", () => {
    const all = recordings.flatMap((recording) =>
      SIDES.flatMap((side) =>
        framesIn([bodyOf(side, recording)], side, recording)
      )
    );
    const counts = countByName(all);
    for (const name of NAMES) assertGreater(counts[name], 5, name);
    const sizes = all.filter(({ opcode }) => opcode === 2)
      .map(({ payload }) => payload.length);
    for (const size of [0, 1, 125, 126, 65535, 65536, 70000]) {
      assert(sizes.includes(size), `no binary frame of ${size} bytes`);
    }
    assertGreater(all.filter(({ rsv1 }) => rsv1).length, 20);
    assert(all.some(({ rsv1, fin }) => rsv1 && !fin), "no fragment compressed");
    const text = recordings.flatMap(({ received }) => [
      ...received.client,
      ...received.server,
    ]).join();
    for (
      const script of [
        "Latin",
        "Greek",
        "Cyrillic",
        "Hebrew",
        "Arabic",
        "Devanagari",
        "Han",
        "Hiragana",
        "Hangul",
      ]
    ) assert(new RegExp(`\\p{Script=${script}}`, "u").test(text), script);
    assert(/\p{Emoji_Presentation}/u.test(text), "no emoji");
  });

  it("are small and name no machine", () => {
    let size = 0;
    for (const { name } of recordings) {
      for (const side of SIDES) {
        const bytes = readBytes(name, side);
        size += bytes.length;
        const head = new TextDecoder().decode(
          bytes.subarray(0, headLength(bytes)),
        );
        const host = /^host: *(.*)$/im.exec(head);
        if (host) assert(/^127\.0\.0\.1:\d+\r?$/.test(host[1]), host[1]);
      }
    }
    assertLess(size, 1 << 20);
  });
});
