/** The shared vectors of messages on every engine, as received and in place. */

import { describe, it } from "node:test";
import { assertEquals } from "@std/assert";
import { FrameReader } from "@wsframe/wsframe";
import { Connection, type ConnectionEvent } from "@wsframe/wsframe/connection";
import { engines, withEngine } from "./engines.ts";
import {
  bytesOf,
  concat,
  type Cut,
  everyCut,
  hex,
  type MessageCase,
  messageCases,
} from "./vectors.ts";

/** An input longer than this is not cut in two at every byte: one vector of 16384 fragments. */
const LONG = 1024;

function* cutsOf(input: Uint8Array<ArrayBuffer>): Generator<Cut> {
  let count = 0;
  for (const cut of everyCut(input)) {
    yield cut;
    // Whole and byte by byte, which come first; then in the middle and near the end.
    if (input.length > LONG && ++count === 2) break;
  }
  if (input.length <= LONG) return;
  for (const at of [input.length >> 1, input.length - 1]) {
    const chunks = [input.slice(0, at), input.slice(at)];
    yield { name: `in two at ${at}`, chunks };
  }
}

/** Of an event, what is fixed: the reason of a fault is free. */
function fixed(event: ConnectionEvent): unknown {
  if (event.type === "close") {
    return { ...event, reason: event.clean ? event.reason : "" };
  }
  return typeof event.data === "string"
    ? event
    : { ...event, data: hex(event.data) };
}

/** What was sent: bytes where the vector fixes them, else frames without their keys. */
function sent(output: Uint8Array, { output: fixed }: MessageCase): unknown {
  if (fixed !== undefined) return hex(output);
  const reader = new FrameReader().push(output);
  return Array.from(reader, ({ opcode, payload }) => ({
    opcode,
    payload: hex(payload),
  }));
}

describe("the shared vectors of messages", () => {
  for (const engine of engines) {
    for (const inPlace of [false, true]) {
      it(`on ${engine.title}${inPlace ? ", in place" : ""}`, () =>
        withEngine(engine, () => {
          for (const vector of messageCases) {
            const input = concat(vector.chunks.map(bytesOf));
            for (const { name, chunks } of cutsOf(input)) {
              const title = `${vector.name}, ${name}`;
              const connection = new Connection({ ...vector.options, inPlace });
              // All events are kept until the end, so that a later change would show.
              const events = chunks.flatMap((chunk) => [
                ...connection.receive(chunk),
              ]);
              assertEquals<unknown>(events.map(fixed), vector.events, title);
              assertEquals(
                sent(connection.takeOutput(), vector),
                vector.output ?? vector.outputFrames ?? [],
                title,
              );
              if (!inPlace) assertEquals(hex(concat(chunks)), hex(input));
            }
          }
        }));
    }
  }
});
