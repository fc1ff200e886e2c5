/**
 * The message being received: fragments in, an event out (RFC 6455 sections 5.4 and 5.6).
 * A fault shows at the same byte however the stream was cut.
 *
 * @module
 */

import type { FrameErrorCode } from "../errors.ts";
import { type DeflateWindow, Inflater } from "./deflate.ts";
import type { ConnectionMessage } from "./events.ts";
import { Gather } from "./gather.ts";
import { maskRangeInto } from "../mask.ts";
import { allocate } from "../memory.ts";
import { decodeText, Utf8Validator } from "./utf8.ts";

/** How messages are taken. */
export interface IncomingOptions {
  maxMessageLength: number;
  maxFragments: number;
  partial: boolean;
  /** The peer's part of permessage-deflate; null: it is not in use. */
  inflate: DeflateWindow | null;
}

const TEXT = 1;

/** Puts messages together, or hands their pieces on. */
export class Incoming {
  readonly #options: IncomingOptions;
  readonly #gather: Gather;
  readonly #utf8: Utf8Validator = new Utf8Validator();
  #inflater: Inflater | null = null;
  /** Decodes pieces of text, under `partial`; it keeps the characters that are cut. */
  #decoder: TextDecoder | null = null;

  /** Whether a message has begun and not ended. */
  open = false;
  /** What is wrong with the message; nothing can follow. */
  fault: FrameErrorCode | null = null;
  /** Whether {@linkcode resume} must be called before anything else. */
  pending = false;

  #opcode = 0;
  #compressed = false;
  #fragments = 0;
  /** Whether the last piece ends the message. */
  #last = false;
  /** Payload bytes announced so far. */
  #announced = 0;
  /** Bytes of the message so far, inflated. */
  #length = 0;
  /** How long the message will become as received, where that is known; else 0. */
  #expected = 0;

  constructor(options: IncomingOptions) {
    this.#options = options;
    this.#gather = new Gather(options.maxMessageLength);
  }

  /** Judges the header of a data frame, which may begin a message. */
  begin(firstByte: number, payloadLength: number): FrameErrorCode | null {
    const opcode = firstByte & 0x0f;
    if ((opcode === 0) !== this.open) return "WS_ERR_INVALID_OPCODE";
    if (!this.open) {
      this.open = true;
      this.#opcode = opcode;
      this.#compressed = (firstByte & 0x40) !== 0;
      this.#fragments = 0;
      this.#announced = 0;
      this.#length = 0;
      this.#utf8.reset();
    }
    const { maxMessageLength, maxFragments } = this.#options;
    if (payloadLength > maxMessageLength - this.#announced) {
      return "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
    }
    this.#announced += payloadLength;
    if (++this.#fragments > maxFragments) {
      return "WS_ERR_TOO_MANY_BUFFERED_PARTS";
    }
    this.#expected = firstByte >= 0x80 ? this.#announced : 0;
    return null;
  }

  /**
   * Takes `memory[start .. end)`, masked with `key`, the next piece of the message.
   *
   * @returns The message when `last`, or, under `partial`, this piece of it. Null when
   * there is nothing to tell, or nothing but the `fault`, or more is `pending`
   */
  piece(
    memory: Uint8Array,
    start: number,
    end: number,
    key: number,
    last: boolean,
  ): ConnectionMessage | null {
    this.#last = last;
    if (this.#compressed) {
      this.#inflater ??= Inflater.take(this.#options.inflate!);
      this.#inflater.push(unmasked(memory, start, end, key), last);
      this.pending = true;
      return this.resume();
    }
    this.#take(memory, start, end, key);
    return this.#event();
  }

  /**
   * Goes on with a compressed piece that is `pending`, of which each call hands out 64 KiB
   * at most under `partial`. As {@linkcode piece}.
   */
  resume(): ConnectionMessage | null {
    const inflater = this.#inflater!;
    do {
      const bytes = inflater.inflate();
      const room = this.#options.maxMessageLength - this.#length;
      this.#take(bytes, 0, Math.min(bytes.length, room), 0);
      if (bytes.length > room) {
        this.fault ??= "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
      } else if (inflater.broken) {
        this.fault ??= "WS_ERR_INVALID_DEFLATE";
      }
      this.pending = inflater.pending && this.fault === null;
    } while (this.pending && !this.#options.partial);
    if (this.pending) return this.#pieceEvent(false);
    if (this.#last && this.fault === null && inflater.give()) {
      this.#inflater = null;
    }
    return this.#event();
  }

  #event(): ConnectionMessage | null {
    const last = this.#last && this.fault === null;
    if (last) this.open = false;
    if (this.#options.partial) return this.#pieceEvent(last);
    return last ? this.#messageEvent() : null;
  }

  /** Forgets everything, since nothing will be received any more. */
  clear(): void {
    this.#gather.clear();
    this.pending = false;
    this.#inflater = null;
    this.#decoder = null;
  }

  /** Takes bytes of the message itself; of text, those before the first wrong one. */
  #take(memory: Uint8Array, start: number, end: number, key: number): void {
    const gather = this.#gather;
    const from = gather.length;
    const expected = this.#options.partial
      ? end - start
      : !this.#compressed
      ? this.#expected
      : this.#last && !this.#inflater!.pending
      ? from + end - start
      : 0;
    gather.append(memory, start, end, key, expected);
    // Text in a compressed message is judged when it is complete, unless handed on before.
    if (
      this.#opcode === TEXT && (!this.#compressed || this.#options.partial)
    ) {
      const valid = this.#utf8.push(gather.bytes, from, gather.length);
      if (valid < gather.length) {
        this.fault = "WS_ERR_INVALID_UTF8";
        gather.cut(valid);
      }
    }
    this.#length += gather.length - from;
  }

  #messageEvent(): ConnectionMessage | null {
    if (this.#opcode !== TEXT) {
      return { type: "binary", data: this.#gather.take() };
    }
    const data = decodeText(this.#gather.bytes, 0, this.#gather.length);
    this.#gather.clear();
    if (data === null) {
      this.fault = "WS_ERR_INVALID_UTF8";
      return null;
    }
    return { type: "text", data };
  }

  #pieceEvent(last: boolean): ConnectionMessage | null {
    const bytes = this.#gather.take();
    if (this.#opcode !== TEXT) {
      return bytes.length === 0 && !last
        ? null
        : { type: "binary", data: bytes, last };
    }
    if (last && !this.#utf8.complete) {
      this.fault = "WS_ERR_INVALID_UTF8";
      last = false;
    }
    this.#decoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
    const data = this.#decoder.decode(bytes, { stream: !last });
    return data === "" && !last ? null : { type: "text", data, last };
  }
}

/** The bytes without their mask; of unmasked ones a view. */
function unmasked(
  memory: Uint8Array,
  start: number,
  end: number,
  key: number,
): Uint8Array {
  if (key === 0) return memory.subarray(start, end);
  const piece = allocate(end - start);
  maskRangeInto(piece, 0, memory, start, end - start, key);
  return piece;
}
