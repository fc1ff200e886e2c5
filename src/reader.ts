/**
 * Reading frames. A native scan walks a whole chunk, checks every header, unmasks
 * every payload and fills a table; what is here reads that table. A frame that no
 * chunk holds whole is put together byte by byte, its payload unmasked as it comes.
 *
 * @module
 */

import {
  MAX_SCAN_LENGTH,
  SCAN_CONSUMED,
  SCAN_FAULT,
  SCAN_ROW_WORDS,
  SCAN_ROWS,
} from "./backend/backend.ts";
import { rotateKey } from "./backend/portable.ts";
import { current, engine } from "./backend/select.ts";
import {
  ALLOW_RSV1,
  checkBytes,
  checkCount,
  checkFlag,
  checkOptions,
  checkRole,
  checkStrict,
  EXPECT_MASK,
  EXPECT_NO_MASK,
  HEADER_FAULTS,
  MAX_HEADER_LENGTH,
  NO_CHECKS,
  parsed,
  parseHeader,
} from "./check.ts";
import { FrameError } from "./errors.ts";
import type { Frame, FrameHeader, Opcode, Role } from "./frame.ts";
import { maskRange, maskRangeInto } from "./mask.ts";
import { keyBytes } from "./mask_key.ts";
import {
  allocate,
  allocateBlock,
  hasOwnMemory,
  isRecycling,
  issueShort,
  keep,
  MAX_SMALL_LENGTH,
  share,
  takeBlock,
  V8,
} from "./memory.ts";

/** How to read. */
export interface ReadOptions {
  /** Which end reads. A server takes masked frames only, a client unmasked ones; absent: both. */
  role?: Role | undefined;
  /** The longest payload to accept, in bytes: 0 to 2^53 - 1 (default 16 MiB). */
  maxPayloadLength?: number | undefined;
  /** Whether an extension owns RSV1 on Text and Binary (default false). */
  allowRsv1?: boolean | undefined;
  /** "none": only the length limits are checked, for test tools and proxies (default "strict"). */
  checks?: "strict" | "none" | undefined;
  /** Unmask inside the bytes given (default false: the input never changes). */
  inPlace?: boolean | undefined;
  /**
   * FrameReader: hand out the pieces of a payload as they arrive (default false). Each is a
   * Frame with `payloadLength`, `payloadOffset` and `last`; an empty frame is one last piece.
   */
  partial?: boolean | undefined;
}

/** {@linkcode ReadOptions} and what Connection needs besides. */
export interface InternalReadOptions extends ReadOptions {
  /**
   * For Connection: `partial`, but pieces that are not a whole frame stay masked, with
   * {@linkcode pieceKey}, so that they are unmasked where the message grows; and a header
   * that arrived alone is shown as a piece of 0 bytes.
   */
  rawPieces?: boolean;
}

/** Options, checked. */
interface Rules {
  flags: number;
  maxPayloadLength: number;
  inPlace: boolean;
  partial: boolean;
}

const DEFAULT_RULES: Rules = {
  flags: 0,
  maxPayloadLength: 0x1000000,
  inPlace: false,
  partial: false,
};

const SERVER_RULES: Rules = { ...DEFAULT_RULES, flags: EXPECT_MASK };
const CLIENT_RULES: Rules = { ...DEFAULT_RULES, flags: EXPECT_NO_MASK };

function rulesOf(options: ReadOptions | undefined): Rules {
  if (options === undefined) return DEFAULT_RULES;
  checkOptions(options, "options");
  const { maxPayloadLength, allowRsv1, checks, inPlace, partial } = options;
  const role = checkRole(options.role);
  if (
    role !== undefined && maxPayloadLength === undefined &&
    allowRsv1 === undefined && checks === undefined && inPlace === undefined &&
    partial === undefined
  ) return role === "server" ? SERVER_RULES : CLIENT_RULES;
  return {
    flags: (role === "server" ? EXPECT_MASK : 0) |
      (role === "client" ? EXPECT_NO_MASK : 0) |
      (checkFlag(allowRsv1, "allowRsv1", false) ? ALLOW_RSV1 : 0) |
      (checkStrict(checks) ? 0 : NO_CHECKS),
    maxPayloadLength: checkCount(
      maxPayloadLength,
      "maxPayloadLength",
      DEFAULT_RULES.maxPayloadLength,
    ),
    inPlace: checkFlag(inPlace, "inPlace", false),
    partial: checkFlag(partial, "partial", false),
  };
}

/** Throws the fault that {@linkcode parseHeader} returned, if it is one. */
function checkHeader(headerLength: number): void {
  if (headerLength < 0) throw new FrameError(HEADER_FAULTS[-headerLength]!, 0);
}

/**
 * Reads the header of the frame at the start of the bytes, for callers who pass the
 * payload on themselves.
 *
 * @param bytes Bytes that begin with a frame
 * @param options How to read
 * @returns The header and its length in bytes (2 to 14), or undefined when it is not
 * complete yet
 * @throws {FrameError} When the header breaks a rule, as soon as its bytes show it
 * @throws {TypeError | RangeError} When an argument is wrong
 *
 * @example
 * ```ts
 * import { readFrameHeader } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const result = readFrameHeader(new Uint8Array([0x82, 0x7e, 0x01, 0x00]));
 * assertEquals(result?.header.payloadLength, 256);
 * assertEquals(result?.headerLength, 4);
 * ```
 */
export function readFrameHeader(
  bytes: Uint8Array,
  options?: ReadOptions,
): { header: FrameHeader; headerLength: number } | undefined {
  checkBytes(bytes, "bytes");
  const { flags, maxPayloadLength } = rulesOf(options);
  const headerLength = parseHeader(
    bytes,
    0,
    bytes.length,
    flags,
    maxPayloadLength,
  );
  checkHeader(headerLength);
  if (headerLength === 0) return undefined;
  const first = bytes[0]!;
  const { payloadLength, key } = parsed;
  const header: FrameHeader = {
    fin: (first & 0x80) !== 0,
    rsv1: (first & 0x40) !== 0,
    rsv2: (first & 0x20) !== 0,
    rsv3: (first & 0x10) !== 0,
    opcode: (first & 0x0f) as Opcode,
    payloadLength,
    maskKey: bytes[1]! >= 0x80 ? keyBytes(key) : null,
  };
  return { header, headerLength };
}

/**
 * Reads the frame at the start of the bytes.
 *
 * @param bytes Bytes that begin with a frame; they are not changed unless `inPlace`
 * @param options How to read
 * @returns The frame and its length in bytes, or undefined when it is not complete yet.
 * The payload is a copy; with `inPlace` it is a view into `bytes`
 * @throws {FrameError} When the header breaks a rule, as soon as its bytes show it
 * @throws {TypeError | RangeError} When an argument is wrong
 *
 * @example
 * ```ts
 * import { readFrame } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = new Uint8Array([0x81, 0x02, 0x68, 0x69, 0x89, 0x00]);
 * const result = readFrame(bytes);
 * assertEquals(new TextDecoder().decode(result?.frame.payload), "hi");
 * assertEquals(result?.bytesRead, 4);
 * ```
 */
export function readFrame(
  bytes: Uint8Array,
  options?: ReadOptions,
): { frame: Frame; bytesRead: number } | undefined {
  if (!(bytes instanceof Uint8Array)) checkBytes(bytes, "bytes");
  const { flags, maxPayloadLength, inPlace } = rulesOf(options);
  const length = bytes.length;
  const headerLength = parseHeader(bytes, 0, length, flags, maxPayloadLength);
  checkHeader(headerLength);
  const { payloadLength, key } = parsed;
  if (headerLength === 0 || payloadLength > length - headerLength) {
    return undefined;
  }
  let payload: Uint8Array;
  const masked = bytes[1]! & 0x80;
  if (inPlace) {
    maskRange(bytes, headerLength, payloadLength, key);
    payload = view(bytes, headerLength, payloadLength);
  } else {
    payload = allocate(payloadLength);
    maskRangeInto(payload, 0, bytes, headerLength, payloadLength, key);
  }
  return {
    frame: new ReadFrame(bytes[0]! | masked << 1, key, payload, 0),
    bytesRead: headerLength + payloadLength,
  };
}

/**
 * The same bytes as a Uint8Array and nothing more: a Buffer's `slice` does not copy, and
 * a subclass may do anything.
 */
function plain(bytes: Uint8Array): Uint8Array {
  return Object.getPrototypeOf(bytes) === Uint8Array.prototype
    ? bytes
    : view(bytes, 0, bytes.length);
}

function view(bytes: Uint8Array, start: number, length: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, length);
}

/** The bit beside the first header byte that says that the frame was masked. */
const MASKED = 0x100;

/**
 * A frame of the iterator. The key becomes bytes only when asked for: a second typed
 * array per frame would double its cost.
 */
class ReadFrame implements Frame {
  fin: boolean;
  rsv1: boolean;
  rsv2: boolean;
  rsv3: boolean;
  opcode: Opcode;
  payload: Uint8Array;
  byteOffset: number;
  #key: number;
  #masked: boolean;

  constructor(
    head: number,
    key: number,
    payload: Uint8Array,
    byteOffset: number,
  ) {
    this.fin = (head & 0x80) !== 0;
    this.rsv1 = (head & 0x40) !== 0;
    this.rsv2 = (head & 0x20) !== 0;
    this.rsv3 = (head & 0x10) !== 0;
    this.opcode = (head & 0x0f) as Opcode;
    this.payload = payload;
    this.byteOffset = byteOffset;
    this.#key = key;
    this.#masked = (head & MASKED) !== 0;
  }

  get maskKey(): Uint8Array | null {
    return this.#masked ? keyBytes(this.#key) : null;
  }
}

/** A frame of the iterator under `partial`. */
class FramePiece extends ReadFrame {
  payloadLength: number;
  payloadOffset: number;
  last: boolean;

  constructor(
    head: number,
    key: number,
    payload: Uint8Array,
    byteOffset: number,
    payloadLength: number,
    payloadOffset: number,
  ) {
    super(head, key, payload, byteOffset);
    this.payloadLength = payloadLength;
    this.payloadOffset = payloadOffset;
    this.last = payloadOffset + payload.length === payloadLength;
  }
}

const NOTHING: Uint8Array<ArrayBuffer> = new Uint8Array(0);

/** A chunk that waits, and where it starts in the stream. */
interface Queued {
  readonly bytes: Uint8Array;
  readonly offset: number;
}

/** In place of one that was read. */
const READ: Queued = { bytes: NOTHING, offset: 0 };

/**
 * Whether payloads of that length share a block per chunk, or get memory of their own:
 * a view is cheaper than memory in V8 always, in JavaScriptCore above 1000 bytes. Where
 * memory is recycled none does: longer ones may follow, which could not be given back.
 */
function sharesBlock(payloadLength: number): boolean {
  return (V8 || payloadLength > MAX_SMALL_LENGTH) && !isRecycling();
}

/**
 * Up to this length a small array of its own and a copy cost JavaScriptCore less than a view
 * or a slice, which the collector has more work with, too, in bytes; far less where it is
 * given back.
 */
const MAX_COPIED_LENGTH = 256;

/** What one scan covers at most where it needs memory for payloads, in bytes. */
const WINDOW = 0x10000;

/**
 * The same where the cursor finds masked frames of 126 bytes and more: their payloads go
 * to memory that stays in the first-level cache, a frame of 16 KiB included. 1.1 to 1.3
 * times as fast at 1 KiB, 1.2 to 1.7 times at 4 and 16 KiB (48 KiB of cache).
 */
const NEAR_WINDOW = 0x4200;

/** Rows of a scan table: 16 KiB, so that it stays in the nearest cache. */
const TABLE_ROWS = 1024;

/** The smallest memory in which an open frame grows, in bytes. */
const MIN_STAGE_LENGTH = 0x1000;

/** What reading a chunk throws whose memory was transferred or resized away. */
export function shortened(): TypeError {
  return new TypeError(
    "Cannot read a pushed chunk: it became shorter since it was pushed",
  );
}

/** What a scan works with; readers share these, so that one read to its end holds none. */
interface Workspace {
  table: Uint32Array;
  scratch: Uint8Array;
}

const workspaces: Workspace[] = [];
const MAX_WORKSPACES = 4;

/** Room beyond the window, so that target and source can be aligned alike. */
const ALIGNMENT = 32;

function takeWorkspace(): Workspace {
  return workspaces.pop() ?? {
    table: new Uint32Array(SCAN_ROWS + TABLE_ROWS * SCAN_ROW_WORDS),
    scratch: allocateBlock(WINDOW + ALIGNMENT),
  };
}

/** Set by FrameReader, whose state it reads. */
let nextFrame: (reader: FrameReader) => Frame | undefined;

/**
 * `advance` as the iterator does it: payloads are unmasked into memory that is handed out
 * without a copy. For Connection, where binary messages follow each other.
 */
export let advanceOwned: (reader: FrameReader) => boolean;

/** The payload under the cursor as memory that no later call changes. */
export let ownedPayload: (reader: FrameReader) => Uint8Array;

/**
 * Under `rawPieces`: the payload of the next frame, if that is a whole Binary, short, and
 * found already; the cursor, which is half of what such a frame costs, stays as it was.
 * For JavaScriptCore.
 */
export let takeShortBinary: (
  reader: FrameReader,
  maxLength: number,
) => Uint8Array | undefined;

/** Under `rawPieces`: what the bytes under the cursor are still masked with, or 0. */
export let pieceKey: (reader: FrameReader) => number;

class FrameIterator implements IterableIterator<Frame> {
  readonly #reader: FrameReader;

  constructor(reader: FrameReader) {
    this.#reader = reader;
  }

  next(): IteratorResult<Frame> {
    const value = nextFrame(this.#reader);
    return value === undefined
      ? { done: true, value: undefined }
      : { done: false, value };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

/**
 * Reads frames from a stream of chunks, cut anywhere.
 *
 * Two ways to read: the iterator gives frames that own their bytes (with `inPlace`:
 * views into the chunk); the cursor, `advance()`, shows one frame after the other
 * without allocating. They may be mixed; both continue where the other stopped.
 * Reading is lazy: `push` stores, and reading throws the fault of the stream, after
 * the frames that came before it, once and again on every later call.
 *
 * A pushed chunk must stay as it is until its frames were read, or until the next
 * `push`, which copies what was not read (so pushing from inside an iteration is
 * fine). Payloads of the iterator may share memory with others, 64 KiB at most, as
 * Node's buffers do: keeping one keeps the block, and one is to be copied before its
 * buffer is transferred. Read on until there is nothing more, that is until `advance`
 * gives false or the iteration is done: a reader then holds no memory but that of an
 * incomplete frame, else up to 81 KiB and what the last frame took that came in pieces.
 *
 * @example The iterator
 * ```ts
 * import { FrameReader } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const reader = new FrameReader({ role: "client" });
 * const texts: string[] = [];
 * for (const chunk of [[0x81, 0x02, 0x68], [0x69, 0x89, 0x00]]) {
 *   for (const frame of reader.push(new Uint8Array(chunk))) {
 *     texts.push(`${frame.opcode}:${new TextDecoder().decode(frame.payload)}`);
 *   }
 * }
 * reader.end();
 * assertEquals(texts, ["1:hi", "9:"]);
 * ```
 *
 * @example The cursor
 * ```ts
 * import { FrameReader } from "@wsframe/wsframe";
 * import { assertEquals } from "@std/assert";
 *
 * const reader = new FrameReader();
 * reader.push(new Uint8Array([0x81, 0x02, 0x68, 0x69, 0x89, 0x00]));
 * let bytes = 0;
 * while (reader.advance()) bytes += reader.payloadLength;
 * assertEquals(bytes, 2);
 * ```
 */
export class FrameReader implements Iterable<Frame> {
  readonly #flags: number;
  readonly #maxPayloadLength: number;
  readonly #inPlace: boolean;
  readonly #partial: boolean;
  readonly #rawPieces: boolean;

  /** The chunk being read, from `#at` to `#end`; `#offset` is where it starts in the stream. */
  #chunk: Uint8Array = NOTHING;
  #at = 0;
  #end = 0;
  #offset = 0;
  /** Whether `#chunk` is a copy of our own. */
  #copied = true;
  /** Copies of the chunks after it, from `#queueAt` on. */
  #queue: Queued[] = [];
  #queueAt = 0;
  /** Where the bytes pushed so far end in the stream. */
  #streamEnd = 0;
  /** How far {@linkcode #unfinished} has looked ahead: a frame, and what follows it. */
  #lookedAt = 0;
  #lookedTo = 0;
  #ended = false;
  #error: FrameError | null = null;
  /** A fault found behind the rows that are still to be read. */
  #fault = 0;

  /** Rows of the last scan that were not read: `#row` to `#rowEnd` in the table. */
  #workspace: Workspace | null = null;
  #table: Uint32Array | null = null;
  #row = 0;
  #rowEnd = 0;
  /** Where the scan started in the stream. */
  #rowsOffset = 0;
  /** The memory of masked payloads, and of others, with where offset 0 of the rows is in each. */
  #maskedMemory: Uint8Array = NOTHING;
  #maskedStart = 0;
  #plainMemory: Uint8Array = NOTHING;
  #plainStart = 0;
  /** Whether the frames of the iterator may be views into each. */
  #maskedOwned = false;
  #plainOwned = false;

  /** The frame that no chunk held whole. */
  #open = false;
  #openHeader: Uint8Array = NOTHING;
  #openHeaderLength = 0;
  #openComplete = false;
  #openPayloadLength = 0;
  #openKey = 0;
  #openReceived = 0;
  #openOffset = 0;
  #assembly: Uint8Array<ArrayBuffer> = NOTHING;
  /** Whether `#assembly` is as long as the payload, to be handed out; else it is a block. */
  #assemblyOwned = false;
  /** The block that `#assembly` was when it came under the cursor, if that is another now. */
  #shown: Uint8Array<ArrayBuffer> = NOTHING;

  /** Under the cursor. */
  #head = 0;
  #key = 0;
  #memory: Uint8Array = NOTHING;
  #start = 0;
  #length = 0;
  #payloadLength = 0;
  #payloadOffset = 0;
  #byteOffset = 0;
  #owned = false;
  #payload: Uint8Array | null = null;
  /** The memory that the iterator made the last view of, and its buffer. */
  #viewed: Uint8Array = NOTHING;
  #buffer: ArrayBufferLike = NOTHING.buffer;

  /**
   * Makes a reader for one stream.
   *
   * @param options How to read
   * @throws {TypeError | RangeError} When an option is wrong
   */
  constructor(options: ReadOptions = {}) {
    const rules = rulesOf(options);
    this.#flags = rules.flags;
    this.#maxPayloadLength = rules.maxPayloadLength;
    this.#inPlace = rules.inPlace;
    this.#partial = rules.partial;
    this.#rawPieces = (options as InternalReadOptions).rawPieces === true;
  }

  /**
   * Takes the next bytes of the stream. Never throws a fault of the stream.
   *
   * @param chunk The bytes, which must stay as they are until their frames were read
   * @returns The reader itself, to iterate
   * @throws {TypeError} When `chunk` is not a Uint8Array, or after `end()`
   */
  push(chunk: Uint8Array): this {
    if (!(chunk instanceof Uint8Array)) checkBytes(chunk, "chunk");
    if (this.#ended) {
      throw new TypeError("Cannot push a chunk: the stream has ended");
    }
    if (this.#error !== null) return this;
    const { length } = chunk;
    if (
      this.#at === this.#end && this.#row === this.#rowEnd &&
      this.#queueAt === this.#queue.length
    ) {
      if (length > 0) this.#setChunk(plain(chunk), false);
    } else {
      this.#copyUnread();
      if (length > 0) {
        const bytes = new Uint8Array(chunk);
        this.#queue.push({ bytes, offset: this.#streamEnd });
      }
    }
    this.#streamEnd += length;
    return this;
  }

  #setChunk(chunk: Uint8Array, copied: boolean): void {
    this.#offset += this.#end;
    this.#chunk = chunk;
    this.#at = 0;
    this.#end = chunk.length;
    this.#copied = copied;
  }

  /** Copies what is not ours and not read, since the caller may use it again now. */
  #copyUnread(): void {
    const old = this.#chunk;
    // What was taken away cannot be copied: reading will tell.
    if (this.#copied || old.byteLength < this.#end) return;
    const copy = new Uint8Array(old);
    this.#chunk = copy;
    this.#copied = true;
    if (this.#maskedMemory === old) this.#maskedMemory = copy;
    if (this.#plainMemory === old) this.#plainMemory = copy;
  }

  /** Goes on to the next chunk that waits; false when there is none. */
  #nextChunk(): boolean {
    if (this.#queueAt === this.#queue.length) return false;
    const chunk = this.#queue[this.#queueAt]!.bytes;
    this.#queue[this.#queueAt++] = READ;
    // Half of it read: what is read goes, so that it stays linear and does not grow for ever.
    if (2 * this.#queueAt >= this.#queue.length) {
      this.#queue.splice(0, this.#queueAt);
      this.#queueAt = 0;
    }
    this.#setChunk(chunk, true);
    return true;
  }

  /**
   * Moves the cursor to the next frame (under `partial`: piece).
   *
   * @returns Whether there is one; false: more bytes are needed. What the cursor shows
   * lives until the next `advance`, `push`, `end` or `reset`
   * @throws {FrameError} When the stream breaks a rule there
   * @throws {TypeError} When a chunk became shorter before it was read, until `reset`
   */
  advance(): boolean {
    const row = this.#row;
    if (row === this.#rowEnd) return this.#fill(false);
    this.#show(row);
    return true;
  }

  /** Puts a row of the table under the cursor. */
  #show(row: number): void {
    const table = this.#table!;
    const head = table[row]!;
    const start = table[row + 1]!;
    const length = table[row + 2]!;
    this.#row = row + SCAN_ROW_WORDS;
    this.#head = head;
    this.#key = table[row + 3]! | 0;
    this.#length = length;
    this.#payloadLength = length;
    this.#payloadOffset = 0;
    this.#byteOffset = this.#rowsOffset + (start - (head >>> 16));
    this.#payload = null;
    if ((head & MASKED) !== 0) {
      this.#memory = this.#maskedMemory;
      this.#start = this.#maskedStart + start;
      this.#owned = this.#maskedOwned;
    } else {
      this.#memory = this.#plainMemory;
      this.#start = this.#plainStart + start;
      this.#owned = this.#plainOwned;
    }
  }

  /** Throws where the payload was in a chunk that was taken away meanwhile. */
  #checkMemory(): void {
    // An element, since asking for the length costs 10 ns in Node 20.
    if (
      this.#memory === this.#chunk && this.#length > 0 &&
      this.#memory[this.#start + this.#length - 1] === undefined
    ) this.#lose();
  }

  /** Throws now and whenever something is read from here on: what follows is lost, too. */
  #lose(): never {
    this.#row = this.#rowEnd;
    this.#fault = 0;
    // No chunk is as long, whatever becomes of this one.
    this.#end = Infinity;
    throw shortened();
  }

  /**
   * Finds the next frames and puts the first under the cursor.
   *
   * @param own Whether they are for the iterator, whose frames own their bytes
   */
  #fill(own: boolean): boolean {
    if (this.#error !== null) throw this.#error;
    if (this.#fault !== 0) this.#fail(this.#fault, this.#offset + this.#at);
    for (;;) {
      if (this.#at >= this.#end && !this.#nextChunk()) {
        this.#rest();
        if (this.#ended && this.#open) this.#fail(0, this.#openOffset);
        return false;
      }
      if (this.#chunk.byteLength < this.#end) throw shortened();
      if (this.#open ? this.#feed(own) : this.#scan(own)) return true;
    }
  }

  /** Nothing to read: what the reader needed for it goes back. */
  #rest(): void {
    if (this.#workspace !== null) {
      if (workspaces.length < MAX_WORKSPACES) workspaces.push(this.#workspace);
      this.#workspace = null;
      this.#table = null;
    }
    if (!this.#open) {
      if (!this.#assemblyOwned) keep(this.#assembly);
      this.#assembly = NOTHING;
      this.#assemblyOwned = false;
    }
    keep(this.#shown);
    this.#shown = NOTHING;
    this.#chunk = NOTHING;
    this.#offset += this.#end;
    this.#at = 0;
    this.#end = 0;
    this.#copied = true;
    this.#maskedMemory = NOTHING;
    this.#plainMemory = NOTHING;
    this.#viewed = NOTHING;
    this.#buffer = NOTHING.buffer;
    this.#showNothing();
  }

  /** Nothing is under the cursor. */
  #showNothing(): void {
    this.#head = 0;
    this.#key = 0;
    this.#memory = NOTHING;
    this.#start = 0;
    this.#length = 0;
    this.#payloadLength = 0;
    this.#payloadOffset = 0;
    this.#byteOffset = this.#bufferedStart();
    this.#payload = null;
  }

  #fail(fault: number, byteOffset: number): never {
    this.#close();
    this.#rest();
    this.#queue = [];
    this.#queueAt = 0;
    throw this.#error = new FrameError(HEADER_FAULTS[fault]!, byteOffset);
  }

  /** Scans the chunk from `#at` on. False: no complete frame there, `#open` is set. */
  #scan(own: boolean): boolean {
    const backend = current.engine ?? engine();
    const workspace = this.#workspace ??= takeWorkspace();
    const table = this.#table = workspace.table;
    const chunk = this.#chunk;
    const start = this.#at;
    let length = this.#end - start;
    let target: Uint8Array | null = null;
    let targetStart = 0;
    let shared = false;
    if (this.#inPlace) {
      if (length > MAX_SCAN_LENGTH) length = MAX_SCAN_LENGTH;
      target = chunk;
      targetStart = start;
    } else {
      if (length > WINDOW) length = WINDOW;
      const headerLength = own ? this.#headerOfWhole(length) : 0;
      if (headerLength > 0 && hasOwnMemory(parsed.payloadLength)) {
        return this.#readWhole(headerLength);
      }
      if ((this.#flags & (EXPECT_NO_MASK | NO_CHECKS)) !== EXPECT_NO_MASK) {
        targetStart = chunk.byteOffset + start & ALIGNMENT - 1;
        if (!own) {
          target = workspace.scratch;
          if (length > NEAR_WINDOW && this.#fitsNear()) length = NEAR_WINDOW;
        } else if (headerLength > 0) {
          shared = sharesBlock(parsed.payloadLength);
          target = shared ? share(targetStart + length) : workspace.scratch;
        }
      }
    }
    const rows = backend.scan(
      chunk,
      start,
      length,
      target,
      targetStart,
      table,
      this.#flags,
      this.#maxPayloadLength,
    );
    const consumed = table[SCAN_CONSUMED]!;
    const fault = table[SCAN_FAULT]!;
    this.#at = start + consumed;
    if (rows === 0) {
      if (fault !== 0) this.#fail(fault, this.#offset + start);
      this.#open = true;
      this.#openOffset = this.#offset + start;
      return this.#feed(own);
    }
    this.#fault = fault;
    this.#rowEnd = SCAN_ROWS + rows * SCAN_ROW_WORDS;
    this.#rowsOffset = this.#offset + start;
    this.#plainMemory = chunk;
    this.#plainStart = start;
    this.#plainOwned = this.#inPlace;
    if (target !== null) {
      this.#maskedMemory = target;
      this.#maskedStart = targetStart;
      this.#maskedOwned = shared || this.#inPlace;
    } else if (own && sharesBlock(table[SCAN_ROWS + 2]!)) {
      // A client: nothing was masked, so one copy of all frames serves them.
      const copy = share(consumed);
      maskRangeInto(copy, 0, chunk, start, consumed, 0);
      this.#plainMemory = copy;
      this.#plainStart = 0;
      this.#plainOwned = true;
    }
    this.#show(SCAN_ROWS);
    if (fault === 0) this.#keepRest(own);
    return true;
  }

  /** Whether the next frame is masked, of 126 bytes or more, and fits the near window. */
  #fitsNear(): boolean {
    const chunk = this.#chunk;
    const at = this.#at;
    return chunk[at + 1] === 0xfe &&
      (chunk[at + 2]! << 8 | chunk[at + 3]!) <= NEAR_WINDOW - MAX_HEADER_LENGTH;
  }

  /**
   * Where only an incomplete frame is left, or a fault, takes it, so that the chunk is free
   * once its frames were read.
   */
  #keepRest(own: boolean): void {
    if (this.#partial || this.#at === this.#end) return;
    const headerLength = this.#headerOfWhole(this.#end - this.#at);
    if (headerLength < 0) this.#fault = -headerLength;
    if (headerLength !== 0) return;
    if (this.#memory === this.#assembly) {
      // What is under the cursor stands there; it is free when the next frame does.
      keep(this.#shown);
      this.#shown = this.#assembly;
      this.#assembly = NOTHING;
    }
    this.#open = true;
    this.#openOffset = this.#offset + this.#at;
    this.#feed(own);
  }

  /**
   * The header length of the next frame if the next `length` bytes hold it whole; 0 if
   * they do not, negative if it has a fault.
   */
  #headerOfWhole(length: number): number {
    const headerLength = parseHeader(
      this.#chunk,
      this.#at,
      this.#at + length,
      this.#flags,
      this.#maxPayloadLength,
    );
    return headerLength > 0 && parsed.payloadLength > length - headerLength
      ? 0
      : headerLength;
  }

  /** Puts the next frame, whole and just parsed, into memory of its own and under the cursor. */
  #readWhole(headerLength: number): true {
    const chunk = this.#chunk;
    const start = this.#at;
    const { payloadLength, key } = parsed;
    const memory = allocate(payloadLength);
    maskRangeInto(memory, 0, chunk, start + headerLength, payloadLength, key);
    this.#head = chunk[start]! | (chunk[start + 1]! & 0x80) << 1;
    this.#key = key;
    this.#memory = memory;
    this.#start = 0;
    this.#length = payloadLength;
    this.#payloadLength = payloadLength;
    this.#payloadOffset = 0;
    this.#byteOffset = this.#offset + start;
    this.#owned = true;
    this.#payload = null;
    this.#at = start + headerLength + payloadLength;
    this.#keepRest(true);
    return true;
  }

  /** Feeds the open frame from the chunk. True: the frame, or a piece of it, is under the cursor. */
  #feed(own: boolean): boolean {
    if (!this.#openComplete && !this.#feedHeader()) return false;
    const chunk = this.#chunk;
    const start = this.#at;
    const payloadLength = this.#openPayloadLength;
    const received = this.#openReceived;
    let length = Math.min(this.#end - start, payloadLength - received);
    if (length === 0) {
      if (payloadLength !== 0 && !this.#rawPieces) return false;
      return this.#showOpen(NOTHING, 0, 0, 0, true);
    }
    const masked = this.#openHeader[1]! >= 0x80;
    const key = rotateKey(this.#openKey, received);
    if (this.#partial || length === payloadLength) {
      if (this.#rawPieces && length < payloadLength) {
        this.#at = start + length;
        return this.#showOpen(chunk, start, received, length, false);
      }
      if (this.#inPlace || !masked && !own) {
        maskRange(chunk, start, length, key);
        this.#at = start + length;
        return this.#showOpen(chunk, start, received, length, this.#inPlace);
      }
      if (this.#partial) {
        // A whole frame stays whole: a piece of it would have to stay masked.
        if (this.#rawPieces && length > WINDOW) own = true;
        const memory = own
          ? allocate(length)
          : (this.#workspace ??= takeWorkspace()).scratch;
        if (!own) length = Math.min(length, memory.length);
        maskRangeInto(memory, 0, chunk, start, length, key);
        this.#at = start + length;
        return this.#showOpen(memory, 0, received, length, own);
      }
    }
    const memory = this.#assemblyFor(received + length, own);
    maskRangeInto(memory, received, chunk, start, length, key);
    this.#at = start + length;
    this.#openReceived = received + length;
    if (this.#openReceived < payloadLength) return false;
    const owned = this.#assemblyOwned;
    if (owned) {
      this.#assembly = NOTHING;
      this.#assemblyOwned = false;
    }
    return this.#showOpen(memory, 0, 0, payloadLength, owned);
  }

  /** Adds header bytes one by one, so that each fault shows at its byte. */
  #feedHeader(): boolean {
    if (this.#openHeader.length === 0) {
      this.#openHeader = new Uint8Array(MAX_HEADER_LENGTH);
    }
    const header = this.#openHeader;
    while (this.#at < this.#end) {
      header[this.#openHeaderLength++] = this.#chunk[this.#at++]!;
      const result = parseHeader(
        header,
        0,
        this.#openHeaderLength,
        this.#flags,
        this.#maxPayloadLength,
      );
      if (result < 0) this.#fail(-result, this.#openOffset);
      if (result > 0) {
        this.#openComplete = true;
        this.#openPayloadLength = parsed.payloadLength;
        this.#openKey = parsed.key;
        return true;
      }
    }
    return false;
  }

  /**
   * Memory for `needed` bytes of the open frame. Its size follows the bytes that have
   * arrived, four to eight times as many (or a kept block of twice that), never the
   * length that a header claims. What the iterator hands out gets fresh memory once a
   * quarter has come, all else a block: fresh memory costs more than the copy.
   */
  #assemblyFor(needed: number, own: boolean): Uint8Array<ArrayBuffer> {
    const old = this.#assembly;
    const payloadLength = this.#openPayloadLength;
    const exact = own && !this.#assemblyOwned && 4 * needed >= payloadLength;
    if (old.length >= needed && !exact) return old;
    const memory = exact ? allocate(payloadLength) : takeBlock(Math.max(
      Math.min(payloadLength, 4 * 2 ** Math.ceil(Math.log2(needed))),
      MIN_STAGE_LENGTH,
    ));
    if (this.#openReceived > 0) {
      maskRangeInto(memory, 0, old, 0, this.#openReceived, 0);
    }
    if (!this.#assemblyOwned) keep(old);
    this.#assemblyOwned = exact;
    return this.#assembly = memory;
  }

  /**
   * Puts a piece of the open frame under the cursor: `length` bytes of its payload from
   * `offset` on, which are in `memory` at `start`. Closes the frame after its last.
   */
  #showOpen(
    memory: Uint8Array,
    start: number,
    offset: number,
    length: number,
    owned: boolean,
  ): true {
    const header = this.#openHeader;
    this.#head = header[0]! | (header[1]! & 0x80) << 1;
    this.#key = this.#openKey;
    this.#memory = memory;
    this.#start = start;
    this.#length = length;
    this.#payloadLength = this.#openPayloadLength;
    this.#payloadOffset = offset;
    this.#byteOffset = this.#openOffset;
    this.#owned = owned;
    this.#payload = null;
    this.#openReceived = offset + length;
    if (this.#openReceived === this.#openPayloadLength) {
      this.#close();
      this.#keepRest(owned);
    }
    return true;
  }

  /** Nothing is open any more. */
  #close(): void {
    this.#open = false;
    this.#openComplete = false;
    this.#openHeaderLength = 0;
    this.#openReceived = 0;
  }

  /**
   * Iterates over the frames that are complete so far; a later iteration goes on where
   * this one stopped.
   *
   * @returns An iterator whose `next` throws {@linkcode FrameError} when the stream breaks
   * a rule there
   */
  [Symbol.iterator](): IterableIterator<Frame> {
    return new FrameIterator(this);
  }

  #advanceOwned(): boolean {
    const row = this.#row;
    if (row === this.#rowEnd) return this.#fill(true);
    this.#show(row);
    return true;
  }

  #takeShortBinary(maxLength: number): Uint8Array | undefined {
    const row = this.#row;
    if (row === this.#rowEnd) return undefined;
    const table = this.#table!;
    const head = table[row]!;
    const length = table[row + 2]!;
    if (
      (head & 0xff) !== 0x82 || length > MAX_COPIED_LENGTH || length > maxLength
    ) return undefined;
    const masked = (head & MASKED) !== 0;
    const memory = masked ? this.#maskedMemory : this.#plainMemory;
    const start = (masked ? this.#maskedStart : this.#plainStart) +
      table[row + 1]!;
    if (length > 0 && memory[start + length - 1] === undefined) this.#lose();
    this.#row = row + SCAN_ROW_WORDS;
    const payload = issueShort(length);
    maskRangeInto(payload, 0, memory, start, length, 0);
    return payload;
  }

  #ownedPayload(): Uint8Array {
    this.#checkMemory();
    const length = this.#length;
    if (length === 0) return new Uint8Array(0);
    const memory = this.#memory;
    const start = this.#start;
    if (
      !V8 && length <= MAX_COPIED_LENGTH && (!this.#inPlace || this.#rawPieces)
    ) {
      const payload = issueShort(length);
      maskRangeInto(payload, 0, memory, start, length, 0);
      return payload;
    }
    if (this.#owned) {
      // As it was allocated, so that it can be recycled.
      if (length === memory.length && !this.#inPlace) {
        return memory;
      }
      // Asking a view for its buffer costs 5 to 20 ns in V8, so ask once per block.
      if (this.#viewed !== memory) {
        this.#viewed = memory;
        this.#buffer = memory.buffer;
      }
      return new Uint8Array(this.#buffer, memory.byteOffset + start, length);
    }
    if (!V8 && !hasOwnMemory(length)) {
      return Uint8Array.prototype.slice.call(memory, start, start + length);
    }
    const payload = allocate(length);
    maskRangeInto(payload, 0, memory, start, length, 0);
    return payload;
  }

  /** The next frame for the iterator. */
  static #next(reader: FrameReader): Frame | undefined {
    if (!reader.#advanceOwned()) return undefined;
    const payload = reader.#ownedPayload();
    return reader.#partial
      ? new FramePiece(
        reader.#head,
        reader.#key,
        payload,
        reader.#byteOffset,
        reader.#payloadLength,
        reader.#payloadOffset,
      )
      : new ReadFrame(reader.#head, reader.#key, payload, reader.#byteOffset);
  }

  static {
    nextFrame = FrameReader.#next;
    advanceOwned = (reader) => reader.#advanceOwned();
    ownedPayload = (reader) => reader.#ownedPayload();
    takeShortBinary = (reader, maxLength) => reader.#takeShortBinary(maxLength);
    pieceKey = (reader) =>
      reader.#rawPieces && reader.#length < reader.#payloadLength
        ? rotateKey(reader.#key, reader.#payloadOffset)
        : 0;
  }

  /** The FIN bit of the frame under the cursor. */
  get fin(): boolean {
    return (this.#head & 0x80) !== 0;
  }

  /** The RSV1 bit of the frame under the cursor. */
  get rsv1(): boolean {
    return (this.#head & 0x40) !== 0;
  }

  /** The RSV2 bit of the frame under the cursor. */
  get rsv2(): boolean {
    return (this.#head & 0x20) !== 0;
  }

  /** The RSV3 bit of the frame under the cursor. */
  get rsv3(): boolean {
    return (this.#head & 0x10) !== 0;
  }

  /** The opcode of the frame under the cursor. */
  get opcode(): Opcode {
    return (this.#head & 0x0f) as Opcode;
  }

  /** The length of the whole payload of the frame under the cursor, in bytes. */
  get payloadLength(): number {
    return this.#payloadLength;
  }

  /** Under `partial`: where the piece under the cursor starts in the payload, in bytes; else 0. */
  get payloadOffset(): number {
    return this.#payloadOffset;
  }

  /** Under `partial`: whether the piece under the cursor ends its frame; else true. */
  get last(): boolean {
    return this.#payloadOffset + this.#length === this.#payloadLength;
  }

  /**
   * The payload (under `partial`: the piece) under the cursor, a view that is good until
   * the next `advance` or `push`. Of an unmasked frame it is a view into the chunk.
   */
  get payload(): Uint8Array {
    this.#checkMemory();
    return this.#payload ??= this.#length === 0
      ? new Uint8Array(0)
      : view(this.#memory, this.#start, this.#length);
  }

  /**
   * The memory that holds the payload under the cursor, from {@linkcode payloadStart} on:
   * for reading it without a view, which costs more than the frame. Good until the next
   * `advance` or `push`; not to be changed.
   */
  get memory(): Uint8Array {
    this.#checkMemory();
    return this.#memory;
  }

  /** Where in {@linkcode memory} the payload (under `partial`: piece) starts, in bytes. */
  get payloadStart(): number {
    return this.#start;
  }

  /** Where in {@linkcode memory} the payload (under `partial`: piece) ends, in bytes. */
  get payloadEnd(): number {
    return this.#start + this.#length;
  }

  /** The masking key of the frame under the cursor, or null when it was not masked. */
  get maskKey(): Uint8Array | null {
    return (this.#head & MASKED) !== 0 ? keyBytes(this.#key) : null;
  }

  /** Where the frame under the cursor starts in the stream, in bytes. */
  get byteOffset(): number {
    return this.#byteOffset;
  }

  /** The first header byte of the frame under the cursor: FIN, RSV1 to 3, opcode. */
  get firstByte(): number {
    return this.#head & 0xff;
  }

  /**
   * How many bytes the reader has of the incomplete frame in which the bytes so far end,
   * header included; 0 when they end with a frame, or in a fault.
   */
  get bufferedBytes(): number {
    const start = this.#error !== null ? -1 : this.#unfinished();
    return start < 0 ? 0 : this.#streamEnd - start;
  }

  /** Where the first frame that was not delivered whole starts in the stream. */
  #bufferedStart(): number {
    if (this.#row !== this.#rowEnd) {
      const table = this.#table!;
      return this.#rowsOffset + table[this.#row + 1]! -
        (table[this.#row]! >>> 16);
    }
    return this.#open ? this.#openOffset : this.#offset + this.#at;
  }

  /**
   * Says that the stream has ended; nothing can be pushed after that. Frames that were
   * not read yet can still be read.
   *
   * @throws {FrameError} WS_ERR_UNEXPECTED_END (close code 1006) when the stream ends
   * inside a frame; or the fault by which the reader failed before
   */
  end(): void {
    if (this.#error !== null) throw this.#error;
    this.#ended = true;
    const offset = this.#unfinished();
    if (offset < 0) return;
    if (
      offset === this.#bufferedStart() &&
      // There may be pieces of it to read.
      !(this.#partial &&
        (this.#at < this.#end || this.#queueAt < this.#queue.length))
    ) this.#fail(0, offset);
    throw new FrameError("WS_ERR_UNEXPECTED_END", offset);
  }

  /**
   * Where the frame starts in which the bytes so far end; -1 when they end with a frame,
   * or in a fault. Goes on where it stopped the last time.
   */
  #unfinished(): number {
    if (this.#fault !== 0) return -1;
    if (this.#at < this.#end && this.#chunk.byteLength < this.#end) {
      throw shortened();
    }
    if (!this.#open) this.#look(this.#offset + this.#at, -1);
    else if (!this.#openComplete) this.#look(this.#openOffset, -1);
    else {
      const rest = this.#openPayloadLength - this.#openReceived;
      this.#look(this.#offset + this.#at + rest, this.#openOffset);
    }
    while (this.#lookedTo < this.#streamEnd) {
      const frame = this.#lookedTo;
      const headerLength = this.#parseAt(frame);
      if (headerLength === 0) return frame;
      this.#lookedAt = headerLength < 0 ? -1 : frame;
      this.#lookedTo = headerLength < 0
        ? Infinity
        : frame + headerLength + parsed.payloadLength;
    }
    return this.#lookedTo === this.#streamEnd ? -1 : this.#lookedAt;
  }

  /** The frame at `frame` ends at `end`: nothing before that needs to be looked at. */
  #look(end: number, frame: number): void {
    if (this.#lookedTo >= end) return;
    this.#lookedAt = frame;
    this.#lookedTo = end;
  }

  /** Parses the header of a frame that was not read yet, at its offset in the stream. */
  #parseAt(offset: number): number {
    const flags = this.#flags;
    const most = this.#maxPayloadLength;
    const isOpen = this.#open && offset === this.#openOffset;
    if (!isOpen) {
      const { bytes, offset: start } = this.#queued(offset);
      const at = offset - start;
      const result = parseHeader(bytes, at, bytes.length, flags, most);
      if (result !== 0) return result;
    }
    // The rest of the header is in the chunks that follow, or yet to come.
    const header = new Uint8Array(MAX_HEADER_LENGTH);
    let length = 0;
    if (isOpen) {
      header.set(this.#openHeader);
      length = this.#openHeaderLength;
    }
    while (length < MAX_HEADER_LENGTH && offset + length < this.#streamEnd) {
      const { bytes, offset: start } = this.#queued(offset + length);
      header[length] = bytes[offset + length - start]!;
      length++;
    }
    return parseHeader(header, 0, length, flags, most);
  }

  /** The chunk in which a byte stands that was not read yet. */
  #queued(offset: number): Queued {
    if (offset < this.#offset + this.#end) {
      return { bytes: this.#chunk, offset: this.#offset };
    }
    let low = this.#queueAt;
    let high = this.#queue.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#queue[middle]!.offset <= offset) low = middle;
      else high = middle - 1;
    }
    return this.#queue[low]!;
  }

  /** Makes the reader as new, for another stream. */
  reset(): void {
    this.#error = null;
    this.#fault = 0;
    this.#row = this.#rowEnd;
    this.#queue = [];
    this.#queueAt = 0;
    this.#streamEnd = 0;
    this.#lookedAt = 0;
    this.#lookedTo = 0;
    this.#close();
    this.#ended = false;
    this.#end = 0;
    this.#offset = 0;
    this.#rest();
  }
}
