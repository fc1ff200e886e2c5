/**
 * Writing frames: straight into place, masked while they are copied, text encoded once.
 *
 * @module
 */

import {
  checkBytes,
  checkFlag,
  checkLength,
  checkOptions,
  checkRole,
  checkStrict,
  MAX_HEADER_LENGTH,
  shown,
  TEXT_OR_BYTES,
} from "./check.ts";
import { checkCloseCode, closePayload } from "./close.ts";
import type { FrameInit, Role } from "./frame.ts";
import { maskRange, maskRangeInto, maskRangeOver } from "./mask.ts";
import { nextMaskKey } from "./mask_key.ts";
import {
  allocate,
  issue,
  issueBlock,
  keep,
  MAX_SMALL_LENGTH,
  takeBlock,
} from "./memory.ts";

/** How to write. */
export interface WriteOptions {
  /** Which end writes: a client masks with a fresh random key per frame (default "server"). */
  role?: Role | undefined;
  /** A key of the caller's, 4 bytes: masks in either role. null: no mask in either. */
  maskKey?: Uint8Array | null | undefined;
  /**
   * A client sets the MASK bit with the zero key, for links that are encrypted already
   * (default false). Not together with `maskKey`; no effect for a server.
   */
  disableClientMask?: boolean | undefined;
  /** "none": write what you are told, for test tools (default "strict"). */
  checks?: "strict" | "none" | undefined;
}

/** Options, checked. */
interface Rules {
  strict: boolean;
  masked: boolean;
  /** The key for every frame, or null for a fresh one each. */
  key: number | null;
}

const SERVER_RULES: Rules = { strict: true, masked: false, key: 0 };
const CLIENT_RULES: Rules = { strict: true, masked: true, key: null };

// What every frame passes through is kept short, and what is rare stands apart: only so
// much code does V8 compile into its caller, and each call costs what masking 8 bytes does.

function rulesOf(options: WriteOptions | undefined): Rules {
  if (options === undefined) return SERVER_RULES;
  return typeof options === "object" && options !== null &&
      options.role === "client" && options.maskKey === undefined &&
      options.disableClientMask === undefined && options.checks === undefined
    ? CLIENT_RULES
    : checkRules(options);
}

function checkRules(options: WriteOptions): Rules {
  checkOptions(options, "options");
  const { role, maskKey, disableClientMask, checks } = options;
  const masked = checkRole(role) === "client";
  const strict = checkStrict(checks);
  const disabled = checkFlag(disableClientMask, "disableClientMask", false);
  if (maskKey === undefined) {
    return { strict, masked, key: masked && !disabled ? null : 0 };
  }
  if (disabled) {
    throw new TypeError(
      "Cannot use 'disableClientMask' together with 'maskKey'",
    );
  }
  if (maskKey === null) return { strict, masked: false, key: 0 };
  checkBytes(maskKey, "maskKey");
  if (maskKey.length !== 4) {
    throw new RangeError(
      `Expected 'maskKey' to be 4 bytes long, got ${maskKey.length} bytes`,
    );
  }
  const key = maskKey[0]! | maskKey[1]! << 8 | maskKey[2]! << 16 |
    maskKey[3]! << 24;
  return { strict, masked: true, key };
}

/** The header byte with FIN, RSV1 to 3 and the opcode, of a frame that may be written. */
function firstByteOf(frame: FrameInit, strict: boolean): number {
  const { opcode } = frame;
  return (opcode === 1 || opcode === 2) && frame.fin === undefined &&
      frame.rsv1 === undefined && frame.rsv2 === undefined &&
      frame.rsv3 === undefined
    ? 0x80 | opcode
    : checkFirstByte(frame, strict);
}

function checkFirstByte(frame: FrameInit, strict: boolean): number {
  const { opcode, fin, rsv1, rsv2, rsv3 } = frame;
  if (typeof opcode !== "number") {
    throw new TypeError(
      `Expected 'opcode' to be a number, got ${shown(opcode)}`,
    );
  }
  if (!Number.isInteger(opcode) || opcode < 0 || opcode > 15) {
    throw new RangeError(
      `Expected 'opcode' to be a whole number from 0 to 15, got ${opcode}`,
    );
  }
  const first = (checkFlag(fin, "fin", true) ? 0x80 : 0) |
    (checkFlag(rsv1, "rsv1", false) ? 0x40 : 0) |
    (checkFlag(rsv2, "rsv2", false) ? 0x20 : 0) |
    (checkFlag(rsv3, "rsv3", false) ? 0x10 : 0) | opcode;
  if (!strict) return first;
  if ((opcode & 7) > 2) {
    throw new RangeError(
      `Cannot write a frame with the reserved opcode ${opcode}`,
    );
  }
  if ((first & 0x30) !== 0) {
    throw new RangeError("Cannot write a frame with RSV2 or RSV3 set");
  }
  if ((first & 0x40) !== 0 && opcode !== 1 && opcode !== 2) {
    throw new RangeError(
      "Cannot write a frame with RSV1 set that is not Text or Binary",
    );
  }
  if (opcode >= 8 && first < 0x80) {
    throw new RangeError("Cannot write a fragmented control frame");
  }
  return first;
}

/** The rules for the payloads of control frames (RFC 6455 section 5.5). */
function checkControlLength(first: number, length: number): void {
  if ((first & 8) === 0) return;
  if (length > 125) {
    throw new RangeError(
      `Expected the payload of a control frame to be at most 125 bytes long, got ${length} bytes`,
    );
  }
  if (length === 1 && (first & 0x0f) === 8) {
    throw new RangeError("Cannot write a close payload of 1 byte");
  }
}

function checkPayload(first: number, payload: Uint8Array): void {
  checkControlLength(first, payload.length);
  if ((first & 0x0f) === 8 && payload.length >= 2) {
    checkCloseCode(payload[0]! << 8 | payload[1]!);
  }
}

function headerLengthOf(payloadLength: number, masked: boolean): number {
  return (payloadLength < 126 ? 2 : payloadLength < 0x10000 ? 4 : 10) +
    (masked ? 4 : 0);
}

/** Writes a header that ends at `end`; its length form is the shortest. */
function putHeader(
  target: Uint8Array,
  end: number,
  first: number,
  payloadLength: number,
  masked: boolean,
  key: number,
): void {
  let at = end;
  if (masked) {
    at -= 4;
    target[at] = key;
    target[at + 1] = key >>> 8;
    target[at + 2] = key >>> 16;
    target[at + 3] = key >>> 24;
  }
  const bit = masked ? 0x80 : 0;
  if (payloadLength < 126) {
    target[at - 1] = bit | payloadLength;
    target[at - 2] = first;
  } else putLongLength(target, at, first, payloadLength, bit);
}

function putLongLength(
  target: Uint8Array,
  at: number,
  first: number,
  payloadLength: number,
  bit: number,
): void {
  if (payloadLength < 0x10000) {
    target[at - 1] = payloadLength;
    target[at - 2] = payloadLength >>> 8;
    target[at - 3] = bit | 126;
    target[at - 4] = first;
  } else {
    const high = Math.floor(payloadLength / 0x100000000);
    target[at - 1] = payloadLength;
    target[at - 2] = payloadLength >>> 8;
    target[at - 3] = payloadLength >>> 16;
    target[at - 4] = payloadLength >>> 24;
    target[at - 5] = high;
    target[at - 6] = high >>> 8;
    target[at - 7] = high >>> 16;
    target[at - 8] = high >>> 24;
    target[at - 9] = bit | 127;
    target[at - 10] = first;
  }
}

let encoder: TextEncoder | undefined;

function encode(text: string): Uint8Array {
  return (encoder ??= new TextEncoder()).encode(text);
}

const NOTHING: Uint8Array<ArrayBuffer> = new Uint8Array(0);

/** The payload as bytes. */
function payloadOf(frame: FrameInit): Uint8Array {
  const { payload } = frame;
  return payload instanceof Uint8Array ? payload : toBytes(payload);
}

function toBytes(payload: Uint8Array | string | undefined): Uint8Array {
  if (payload === undefined) return NOTHING;
  if (typeof payload === "string") return encode(payload);
  checkBytes(payload, "payload", TEXT_OR_BYTES);
  return payload;
}

/**
 * Tells how long a frame is.
 *
 * @param payloadLength The length of its payload in bytes
 * @param masked Whether it is masked, as from a client
 * @returns The length of header and payload together, in bytes
 * @throws {TypeError | RangeError} When `payloadLength` is not a whole number of bytes,
 * or the result is above 2^53 - 1
 *
 * @example
 * ```ts
 * import { frameByteLength } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(frameByteLength(125, false), 127);
 * assertEquals(frameByteLength(65536, true), 65550);
 * ```
 */
export function frameByteLength(
  payloadLength: number,
  masked: boolean,
): number {
  checkLength(
    payloadLength,
    "payloadLength",
    Number.MAX_SAFE_INTEGER - MAX_HEADER_LENGTH,
  );
  return payloadLength +
    headerLengthOf(payloadLength, checkFlag(masked, "masked", false));
}

/**
 * Writes one frame.
 *
 * @param frame The frame; its payload is not changed
 * @param options How to write
 * @returns The bytes of the frame. Small ones share memory, as Node's buffers do: copy
 * before you transfer their buffer
 * @throws {RangeError} When the frame breaks a rule of RFC 6455
 * @throws {TypeError} When an argument has the wrong type
 *
 * @example
 * ```ts
 * import { writeFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = writeFrame({ opcode: 1, payload: "Hello" });
 * assertEquals(bytes, new Uint8Array([0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]));
 * ```
 */
export function writeFrame(
  frame: FrameInit,
  options?: WriteOptions,
): Uint8Array<ArrayBuffer> {
  checkOptions(frame, "frame");
  const rules = rulesOf(options);
  const first = firstByteOf(frame, rules.strict);
  const payload = payloadOf(frame);
  if (rules.strict && first & 8) checkPayload(first, payload);
  const headerLength = headerLengthOf(payload.length, rules.masked);
  const target = allocate(headerLength + payload.length);
  putFrame(target, 0, first, headerLength, rules, payload, 0, payload.length);
  return target;
}

/**
 * Writes one frame into memory of the caller's.
 *
 * @param target Where the frame goes, from its start on; it may overlap the payload
 * @param frame The frame; its payload is not changed, unless `target` overlaps it
 * @param options How to write
 * @returns How many bytes were written
 * @throws {RangeError} When the frame breaks a rule of RFC 6455, or `target` is too
 * short; nothing was written then
 * @throws {TypeError} When an argument has the wrong type
 *
 * @example
 * ```ts
 * import { writeFrameInto } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const target = new Uint8Array(16);
 * const length = writeFrameInto(target, { opcode: 9 });
 * assertEquals(target.subarray(0, length), new Uint8Array([0x89, 0]));
 * ```
 */
export function writeFrameInto(
  target: Uint8Array,
  frame: FrameInit,
  options?: WriteOptions,
): number {
  if (!(target instanceof Uint8Array)) checkBytes(target, "target");
  checkOptions(frame, "frame");
  const rules = rulesOf(options);
  const first = firstByteOf(frame, rules.strict);
  const payload = payloadOf(frame);
  if (rules.strict && first & 8) checkPayload(first, payload);
  const headerLength = headerLengthOf(payload.length, rules.masked);
  const length = headerLength + payload.length;
  if (target.length < length) {
    throw new RangeError(
      `Expected 'target' to hold ${length} bytes, got ${target.length} bytes`,
    );
  }
  const key = rules.key ?? nextMaskKey();
  // Payload first, since the header might overwrite it where both share memory.
  maskRangeOver(target, headerLength, payload, 0, payload.length, key);
  putHeader(target, headerLength, first, payload.length, rules.masked, key);
  return length;
}

/** Puts a frame where nothing of its payload stands. */
function putFrame(
  target: Uint8Array,
  at: number,
  first: number,
  headerLength: number,
  rules: Rules,
  payload: Uint8Array,
  payloadStart: number,
  payloadLength: number,
): void {
  const key = rules.key ?? nextMaskKey();
  const start = at + headerLength;
  putHeader(target, start, first, payloadLength, rules.masked, key);
  maskRangeInto(target, start, payload, payloadStart, payloadLength, key);
}

/**
 * Writes the header alone, for payloads that are passed on without a copy (writev), or
 * sent to many peers.
 *
 * @param header What the header says; a `payload` in it is ignored
 * @param options How to write. A masked header ends with the key that the payload must
 * be masked with
 * @returns The header, 2 to 14 bytes
 * @throws {RangeError} When the header breaks a rule of RFC 6455
 * @throws {TypeError} When an argument has the wrong type
 *
 * @example
 * ```ts
 * import { writeFrameHeader } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const header = writeFrameHeader({ opcode: 2, payloadLength: 256 });
 * assertEquals(header, new Uint8Array([0x82, 126, 1, 0]));
 * ```
 */
export function writeFrameHeader(
  header: FrameInit & { payloadLength: number },
  options?: WriteOptions,
): Uint8Array<ArrayBuffer> {
  checkOptions(header, "header");
  const { strict, masked, key } = rulesOf(options);
  const first = firstByteOf(header, strict);
  const length = checkLength(header.payloadLength, "payloadLength");
  if (strict) checkControlLength(first, length);
  const target = allocate(headerLengthOf(length, masked));
  putHeader(
    target,
    target.length,
    first,
    length,
    masked,
    key ?? nextMaskKey(),
  );
  return target;
}

/** The least block that a writer fills, in bytes: many writers may have a little output. */
const MIN_BLOCK_LENGTH = 0x200;

/** How many times what it holds a block may be long, in expectation of more. */
const MAX_ROOM = 64;

/** The largest block that is taken in expectation of as much output as last time, in bytes. */
const MAX_EXPECTED_LENGTH = 0x200000;

/** Up to so many bytes a block without expectations grows faster. */
const MAX_FAST_GROWTH = 0x4000;

/** Text up to so many UTF-16 units is written unit by unit; above, `encodeInto` is quicker. */
const MAX_UNITS = 48;

/** Set by FrameWriter: what Connection uses to write without building a FrameInit. */
export let appendFrame: (
  writer: FrameWriter,
  first: number,
  payload: Uint8Array,
  start: number,
  length: number,
) => void;

/** The same for text. */
export let appendText: (
  writer: FrameWriter,
  first: number,
  text: string,
) => void;

/**
 * Writes frames one behind the other into one growing block, to be sent with one write.
 *
 * @example
 * ```ts
 * import { FrameWriter } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const writer = new FrameWriter();
 * writer.text("hi");
 * writer.ping();
 * assertEquals(writer.take(), new Uint8Array([0x81, 2, 0x68, 0x69, 0x89, 0]));
 * ```
 */
export class FrameWriter {
  readonly #rules: Rules;
  #block: Uint8Array<ArrayBuffer> = NOTHING;
  /** How much of the block is written. */
  #at = 0;
  /** How long a block should be to hold as much as was taken lately, in bytes. */
  #expected = 0;

  /**
   * Makes a writer without output.
   *
   * @param options How to write
   * @throws {TypeError | RangeError} When an option is wrong
   */
  constructor(options?: WriteOptions) {
    this.#rules = rulesOf(options);
  }

  /** How many bytes were written since the last `take`. */
  get bufferedBytes(): number {
    return this.#at;
  }

  /**
   * Writes a frame.
   *
   * @param frame The frame; its payload is copied
   * @throws {RangeError} When the frame breaks a rule of RFC 6455; nothing was written
   * then
   * @throws {TypeError} When `frame` has the wrong type
   */
  write(frame: FrameInit): void {
    checkOptions(frame, "frame");
    const first = firstByteOf(frame, this.#rules.strict);
    const { payload } = frame;
    if (typeof payload === "string" && (first & 8) === 0) {
      return this.#text(first, payload);
    }
    const bytes = payloadOf(frame);
    if (this.#rules.strict && first & 8) checkPayload(first, bytes);
    this.#append(first, bytes, 0, bytes.length);
  }

  /**
   * Writes a Text frame.
   *
   * @param text The text, written as UTF-8
   * @throws {TypeError} When `text` is not a string
   */
  text(text: string): void {
    if (typeof text !== "string") {
      throw new TypeError(`Expected 'text' to be a string, got ${shown(text)}`);
    }
    this.#text(0x81, text);
  }

  /**
   * Writes a Binary frame.
   *
   * @param payload The bytes, which are copied
   * @throws {TypeError} When `payload` is not a Uint8Array
   */
  binary(payload: Uint8Array): void {
    if (!(payload instanceof Uint8Array)) checkBytes(payload, "payload");
    this.#append(0x82, payload, 0, payload.length);
  }

  /**
   * Writes a Ping frame.
   *
   * @param payload At most 125 bytes (default none)
   * @throws {RangeError} When `payload` is longer, under `checks: "strict"`
   * @throws {TypeError} When `payload` is not a Uint8Array
   */
  ping(payload: Uint8Array = NOTHING): void {
    this.#control(0x89, payload);
  }

  /**
   * Writes a Pong frame.
   *
   * @param payload At most 125 bytes (default none)
   * @throws {RangeError} When `payload` is longer, under `checks: "strict"`
   * @throws {TypeError} When `payload` is not a Uint8Array
   */
  pong(payload: Uint8Array = NOTHING): void {
    this.#control(0x8a, payload);
  }

  /**
   * Writes a Close frame.
   *
   * @param code The status code; absent: an empty payload
   * @param reason The reason, at most 123 bytes of UTF-8
   * @throws {RangeError} When the code must not be sent or the reason is too long (under
   * `checks: "none"` only when the code has more than 16 bits), or there is a reason
   * without a code
   * @throws {TypeError} When an argument has the wrong type
   */
  close(code?: number, reason?: string): void {
    const { strict } = this.#rules;
    this.#control(0x88, closePayload(code, reason, strict));
  }

  /**
   * Takes what was written since the last `take`.
   *
   * @returns The bytes, which are the caller's from now on, with their buffer. That may be
   * up to twice as long, with zeros behind the bytes: send the bytes, not `.buffer`. Of
   * 2 KiB and more `recycle` takes the memory back
   */
  take(): Uint8Array<ArrayBuffer> {
    const length = this.#at;
    if (length === 0) return new Uint8Array(0);
    const block = this.#block;
    let taken: Uint8Array<ArrayBuffer>;
    // A block that is full enough is given away; of another, and of what is short, a copy
    // costs less than a block.
    if (length > MAX_SMALL_LENGTH && 2 * length > block.length) {
      taken = issueBlock(block, length);
    } else {
      taken = issue(length);
      maskRangeInto(taken, 0, block, 0, length, 0);
      keep(block, length);
    }
    // A writer without output holds no memory.
    this.#block = NOTHING;
    this.#at = 0;
    this.#expected = Math.min(
      Math.max(length + (length >> 4), this.#expected >> 1),
      MAX_EXPECTED_LENGTH,
    );
    return taken;
  }

  #control(first: number, payload: Uint8Array): void {
    checkBytes(payload, "payload");
    if (this.#rules.strict) checkControlLength(first, payload.length);
    this.#append(first, payload, 0, payload.length);
  }

  /** Makes room for `length` bytes behind the first `kept`. */
  #reserve(length: number, kept: number): void {
    const old = this.#block;
    const least = kept + length;
    const most = MAX_ROOM * least;
    let room = this.#expected;
    // Where that is out of proportion, no more than it takes to be in proportion next time.
    if (room > most) room = Math.min(most, Math.ceil(room / MAX_ROOM));
    const block = takeBlock(
      Math.max(
        MIN_BLOCK_LENGTH,
        least,
        (kept < MAX_FAST_GROWTH ? 4 : 2) * kept,
        room,
      ),
    );
    maskRangeInto(block, 0, old, 0, kept, 0);
    this.#block = block;
    keep(old, kept);
  }

  #append(
    first: number,
    payload: Uint8Array,
    start: number,
    length: number,
  ): void {
    const headerLength = headerLengthOf(length, this.#rules.masked);
    const size = headerLength + length;
    if (this.#block.length - this.#at < size) this.#reserve(size, this.#at);
    putFrame(
      this.#block,
      this.#at,
      first,
      headerLength,
      this.#rules,
      payload,
      start,
      length,
    );
    this.#at += size;
  }

  /** Text goes straight into place, behind a header sized as if it were ASCII. */
  #text(first: number, text: string): void {
    const { masked } = this.#rules;
    const units = text.length;
    if (this.#block.length - this.#at < units + MAX_HEADER_LENGTH) {
      this.#reserve(units + MAX_HEADER_LENGTH, this.#at);
    }
    const guess = headerLengthOf(units, masked);
    const start = this.#at + guess;
    let length = units <= MAX_UNITS ? putUnits(this.#block, start, text) : -1;
    if (length < 0) length = this.#encode(start - this.#at, text);
    const headerLength = headerLengthOf(length, masked);
    const block = this.#block;
    const payloadStart = this.#at + headerLength;
    if (headerLength !== guess) {
      block.copyWithin(
        payloadStart,
        this.#at + guess,
        this.#at + guess + length,
      );
    }
    const key = this.#rules.key ?? nextMaskKey();
    maskRange(block, payloadStart, length, key);
    putHeader(block, payloadStart, first, length, masked, key);
    this.#at = payloadStart + length;
  }

  /** Encodes `text` to `offset` behind `#at`; grows when it turns out not to be ASCII. */
  #encode(offset: number, text: string): number {
    encoder ??= new TextEncoder();
    let { read, written } = encoder.encodeInto(
      text,
      this.#block.subarray(this.#at + offset),
    );
    // The header may turn out longer than was guessed, which needs room behind.
    const end = this.#at + offset + written;
    if (read < text.length || this.#block.length - end < MAX_HEADER_LENGTH) {
      this.#reserve(3 * (text.length - read) + MAX_HEADER_LENGTH, end);
      const rest = read === 0 ? text : text.slice(read);
      written += encoder.encodeInto(rest, this.#block.subarray(end)).written;
    }
    return written;
  }

  static {
    appendFrame = (writer, first, payload, start, length) =>
      writer.#append(first, payload, start, length);
    appendText = (writer, first, text) => writer.#text(first, text);
  }
}

/** Writes ASCII unit by unit; -1 when the text is not ASCII. */
function putUnits(target: Uint8Array, start: number, text: string): number {
  const { length } = text;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return -1;
    target[start + i] = unit;
  }
  return length;
}
