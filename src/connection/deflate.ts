/**
 * The bytes of permessage-deflate (RFC 7692 section 7.2): compressing and inflating the
 * payloads of messages, synchronously and with the same result on every runtime.
 *
 * The work is pako's, a port of zlib to JavaScript that shows zlib's own functions: those
 * flush, keep the window between messages, honour window bits, and write into memory of
 * ours, so that inflating stops at a limit. On 1 KiB of JSON it is quicker than the
 * synchronous functions of node:zlib, which start anew for every message (42 against 80 us
 * deflating, 8 against 22 us inflating on Node 20); fflate has no window bits.
 *
 * @module
 */

import {
  Z_BUF_ERROR,
  Z_DEFAULT_STRATEGY,
  Z_OK,
  Z_STREAM_END,
  Z_SYNC_FLUSH,
  zlibDeflate,
  zlibDeflateInit2,
  zlibDeflateReset,
  zlibInflate,
  zlibInflateInit2,
  ZStream,
} from "pako";
import { shortened } from "../reader.ts";
import { Gather } from "./gather.ts";

/** What a flush ends with, which the sender takes away and the receiver puts back (section 7.2.1). */
const TAIL: Uint8Array = new Uint8Array([0x00, 0x00, 0xff, 0xff]);
/** An empty block without its tail: what a message of nothing becomes (section 7.2.3.6). */
const EMPTY_BLOCK: Uint8Array = new Uint8Array([0x00]);
const NOTHING: Uint8Array<ArrayBuffer> = new Uint8Array(0);

/** The size of a block of output, in bytes: the most that inflating can go beyond a limit. */
const BLOCK_LENGTH = 0x10000;

/** zlib's level: half the time of the default, 6, for a tenth more bytes of JSON. */
const LEVEL = 3;
/** zlib's DEFLATED and DEF_MEM_LEVEL. */
const METHOD = 8;
const MEMORY_LEVEL = 8;

/** Output goes here first; nothing in it outlives a call. */
let block: Uint8Array<ArrayBuffer> | undefined;

function setInput(stream: ZStream, input: Uint8Array): void {
  stream.input = input;
  stream.next_in = 0;
  stream.avail_in = input.length;
}

function setOutput(stream: ZStream): Uint8Array {
  block ??= new Uint8Array(BLOCK_LENGTH);
  stream.output = block;
  stream.next_out = 0;
  stream.avail_out = BLOCK_LENGTH;
  return block;
}

/** What a stream must not keep between calls: the caller's memory. */
function release(stream: ZStream): void {
  stream.input = NOTHING;
  stream.output = NOTHING;
}

/** One end's part of what was negotiated. */
export interface DeflateWindow {
  /** The base-2 logarithm of the window, 8 to 15. */
  windowBits: number;
  /** Whether each message is compressed by itself. */
  noContextTakeover: boolean;
}

/**
 * What can go from connection to connection between messages because it remembers none:
 * one for each size of window, so that idle connections hold no memory for it.
 */
const spareDeflaters: (Deflater | undefined)[] = [];
const spareInflaters: (Inflater | undefined)[] = [];

/** Compresses the messages of one direction. */
export class Deflater {
  readonly #stream: ZStream = new ZStream();
  readonly #window: DeflateWindow;

  private constructor(window: DeflateWindow) {
    this.#window = window;
    // zlib has no window of 8 bits, but in one of 9 its distances stay 262 below 512 bytes,
    // and so within 256.
    zlibDeflateInit2(
      this.#stream,
      LEVEL,
      METHOD,
      -Math.max(window.windowBits, 9),
      MEMORY_LEVEL,
      Z_DEFAULT_STRATEGY,
    );
  }

  /** A compressor for a message, or for all messages where they share the window. */
  static take(window: DeflateWindow): Deflater {
    const spare = window.noContextTakeover
      ? spareDeflaters[window.windowBits]
      : undefined;
    if (spare === undefined) return new Deflater(window);
    spareDeflaters[window.windowBits] = undefined;
    return spare;
  }

  /** Gives it back after a message. False: it remembers, and must be kept for the next. */
  give(): boolean {
    const { windowBits, noContextTakeover } = this.#window;
    if (noContextTakeover) spareDeflaters[windowBits] = this;
    return noContextTakeover;
  }

  /**
   * Compresses a piece of a message.
   *
   * @param input The piece
   * @param last Whether it ends the message
   * @returns The payload of a frame, good until the next call of anything here
   */
  deflate(input: Uint8Array, last: boolean): Uint8Array {
    if (input.length === 0) {
      if (last) this.#endMessage();
      return last ? EMPTY_BLOCK : NOTHING;
    }
    const stream = this.#stream;
    const output = new Gather();
    let memory: Uint8Array;
    let length: number;
    setInput(stream, input);
    for (;;) {
      memory = setOutput(stream);
      zlibDeflate(stream, Z_SYNC_FLUSH);
      length = stream.next_out;
      if (stream.avail_out !== 0 && output.length === 0) break;
      output.append(memory, 0, length, 0, 0);
      if (stream.avail_out !== 0) {
        memory = output.bytes;
        length = output.length;
        break;
      }
    }
    release(stream);
    if (last) {
      length -= TAIL.length;
      this.#endMessage();
    }
    return memory.subarray(0, length);
  }

  #endMessage(): void {
    if (this.#window.noContextTakeover) zlibDeflateReset(this.#stream);
  }
}

/** What is touched of pako's state of inflating, whose names are those of zlib. */
interface InflateState {
  mode: number;
  last: number;
  /** The farthest that a match may reach back. */
  dmax: number;
  /** Bits of the input that were taken and not used. */
  hold: number;
  bits: number;
  /** How long the window is, how much of it is filled, and where it goes on. */
  wsize: number;
  whave: number;
  wnext: number;
}

/** Inflates the messages of one direction. */
export class Inflater {
  readonly #stream: ZStream = new ZStream();
  readonly #window: DeflateWindow;
  /** The mode in which a stream begins. */
  readonly #start: number;
  /** Whether a block with BFINAL ended the stream and nothing has come since. */
  #ended = false;
  /** Whether the input ends the message. */
  #last = false;

  /** Whether {@linkcode inflate} has more to give of what was pushed. */
  pending = false;
  /** Whether the data is broken; nothing can follow. */
  broken = false;

  private constructor(window: DeflateWindow) {
    this.#window = window;
    zlibInflateInit2(this.#stream, -window.windowBits);
    const state: InflateState = this.#stream.state;
    this.#start = state.mode;
    // Left alone, a match could reach all that the call under way has put out.
    state.dmax = 2 ** window.windowBits;
  }

  /** As {@linkcode Deflater.take}. */
  static take(window: DeflateWindow): Inflater {
    const spare = window.noContextTakeover
      ? spareInflaters[window.windowBits]
      : undefined;
    if (spare === undefined) return new Inflater(window);
    spareInflaters[window.windowBits] = undefined;
    return spare;
  }

  /** As {@linkcode Deflater.give}; not after broken data. */
  give(): boolean {
    const { windowBits, noContextTakeover } = this.#window;
    if (noContextTakeover) spareInflaters[windowBits] = this;
    return noContextTakeover;
  }

  /**
   * Takes the next piece of a message; the one before must have been inflated.
   *
   * @param input The piece, which must stay as it is while this is `pending`
   * @param last Whether it ends the message
   */
  push(input: Uint8Array, last: boolean): void {
    setInput(this.#stream, input);
    if (input.length > 0) this.#ended = false;
    this.#last = last;
    this.pending = true;
  }

  /**
   * Inflates up to 64 KiB of what was pushed.
   *
   * @returns The bytes, of broken data those before the fault; good until the next call of
   * anything here
   */
  inflate(): Uint8Array {
    const stream = this.#stream;
    // The first call may have returned before the caller took the chunk away.
    if (stream.input.length < stream.next_in + stream.avail_in) {
      throw shortened();
    }
    const memory = setOutput(stream);
    while (this.pending && stream.avail_out > 0) this.#step();
    if (!this.pending) stream.input = NOTHING;
    stream.output = NOTHING;
    return memory.subarray(0, stream.next_out);
  }

  #step(): void {
    const stream = this.#stream;
    const status = zlibInflate(stream, Z_SYNC_FLUSH);
    if (status === Z_STREAM_END) {
      // Blocks may follow the final one (section 7.2.3.4); the window stays.
      this.#restart();
      if (stream.avail_in > 0) return;
      this.#ended = true;
    } else if (status !== Z_OK && status !== Z_BUF_ERROR) {
      this.broken = true;
      this.pending = false;
      return;
    } else if (stream.avail_out === 0 && !isBetweenBlocks(stream)) {
      return;
    }
    // The input is used up.
    if (!this.#last) {
      this.pending = false;
    } else if (this.#ended || stream.input === TAIL) {
      this.#endMessage();
    } else {
      setInput(stream, TAIL);
    }
  }

  /** With the tail put back the data must end with a block. */
  #endMessage(): void {
    const stream = this.#stream;
    this.broken = stream.input === TAIL && !isBetweenBlocks(stream);
    this.pending = false;
    this.#ended = false;
    if (!this.#window.noContextTakeover) return;
    this.#restart();
    const state: InflateState = stream.state;
    state.wsize = state.whave = state.wnext = 0;
  }

  /**
   * Makes ready for another stream of blocks. As zlibInflateResetKeep, which makes two
   * tables of 6 KiB together each time: a final block can be 2 bytes long.
   */
  #restart(): void {
    const state: InflateState = this.#stream.state;
    state.mode = this.#start;
    state.last = state.hold = state.bits = 0;
  }
}

/** Whether a block has ended, on a byte, and all of it was put out. */
function isBetweenBlocks(stream: ZStream): boolean {
  // zlib's inflate: 128 stands for the end of a block, the low bits for bits not used.
  return (stream.data_type & 0x9f) === 0x80;
}
