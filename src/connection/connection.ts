/**
 * A WebSocket connection without its transport: bytes in, events out, and bytes to send.
 *
 * @module
 */

// Where only ./connection is imported, nothing else would name the engines.
import "../backend/list.ts";
import {
  checkBytes,
  checkCount,
  checkFlag,
  checkOptions,
  checkRole,
  shown,
  TEXT_OR_BYTES,
} from "../check.ts";
import { isValidCloseCode, readClosePayload } from "../close.ts";
import { FrameError, type FrameErrorCode } from "../errors.ts";
import type { Role } from "../frame.ts";
import { V8 } from "../memory.ts";
import {
  advanceOwned,
  FrameReader,
  type InternalReadOptions,
  ownedPayload,
  pieceKey,
  takeShortBinary,
} from "../reader.ts";
import {
  appendFrame,
  appendText,
  FrameWriter,
  type WriteOptions,
} from "../writer.ts";
import { Deflater, type DeflateWindow } from "./deflate.ts";
import {
  type DeflateParameters,
  deflateParameters,
} from "./deflate_parameters.ts";
import type { ConnectionEvent } from "./events.ts";
import { Gather } from "./gather.ts";
import { Incoming } from "./incoming.ts";
import { decodeText, Utf8Validator } from "./utf8.ts";

/** What a {@linkcode Connection} is told. */
export interface ConnectionOptions extends WriteOptions {
  /** Which end this is: a server takes masked frames, a client sends them. */
  role: Role;
  /** The longest payload of one frame to accept, in bytes (default 16 MiB). */
  maxPayloadLength?: number | undefined;
  /** The longest message to accept, in bytes, as received and as inflated (default 64 MiB). */
  maxMessageLength?: number | undefined;
  /** The most fragments of one message to accept, empty ones included (default 16384). */
  maxFragments?: number | undefined;
  /** permessage-deflate as negotiated, see {@linkcode acceptUpgrade} (default none). */
  deflate?: boolean | Partial<DeflateParameters> | null | undefined;
  /**
   * Shorter messages are not compressed, in bytes (default 1024: below one packet there
   * is little to win). `compress` of {@linkcode Connection.send} overrides it.
   */
  deflateThreshold?: number | undefined;
  /**
   * Messages are handed out in pieces as they arrive, of 64 KiB at most where they were
   * compressed (default false).
   */
  partial?: boolean | undefined;
  /**
   * Unmask inside the received chunks, of which the data of events may then be views
   * (default false: a chunk never changes, and events own their data). For transports
   * that hand over fresh memory with every read, as `node:net` does: it saves a copy.
   */
  inPlace?: boolean | undefined;
  /** Pings are answered (default true). */
  autoPong?: boolean | undefined;
}

/** How a message is sent. */
export interface SendOptions {
  /** Whether this ends the message (default true). */
  fin?: boolean | undefined;
  /**
   * Whether to compress the message where that was negotiated; the first fragment decides
   * (default: from `deflateThreshold` on, and every message that is sent in fragments).
   */
  compress?: boolean | undefined;
}

const CONTINUATION = 0x00;
const TEXT = 0x01;
const BINARY = 0x02;
const CLOSE = 0x08;
const PING = 0x09;
const FIN = 0x80;
const RSV1 = 0x40;

const encoder: TextEncoder = new TextEncoder();

/**
 * One end of a WebSocket connection after the opening handshake, over any transport.
 *
 * Pass what the transport received to {@linkcode receive} and iterate over the events;
 * then write what {@linkcode takeOutput} returns, once per received chunk, whether you
 * sent something or not: pings and closes are answered by themselves. When the `close`
 * event has come, or {@linkcode state} is "closed", write the output a last time and end
 * the transport: a server does so at once, a client waits a little for the server to do
 * it (RFC 6455 section 7.1.1). There is no clock inside: timeouts are the caller's.
 *
 * A fault of the peer is no exception: the Close that the RFC asks for goes to the output,
 * and a `close` event with `clean: false` tells why. Wrong use throws.
 *
 * @example
 * ```ts
 * import { Connection } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const client = new Connection({ role: "client" });
 * const server = new Connection({ role: "server" });
 *
 * client.send("Hello");
 * for (const event of server.receive(client.takeOutput())) {
 *   if (event.type === "text") server.send(event.data + "!");
 * }
 * assertEquals([...client.receive(server.takeOutput())], [
 *   { type: "text", data: "Hello!" },
 * ]);
 *
 * client.close(1000, "bye");
 * assertEquals([...server.receive(client.takeOutput())], [
 *   { type: "close", code: 1000, reason: "bye", clean: true },
 * ]);
 * assertEquals(server.state, "closed");
 * assertEquals([...client.receive(server.takeOutput())].length, 1);
 * assertEquals(client.state, "closed");
 * ```
 */
export class Connection {
  readonly #reader: FrameReader;
  readonly #writer: FrameWriter;
  readonly #incoming: Incoming;
  readonly #events: EventIterator;
  readonly #maxMessageLength: number;
  readonly #autoPong: boolean;
  /** Whether a complete frame can be made an event without {@linkcode Incoming}. */
  readonly #direct: boolean;

  readonly #deflate: DeflateWindow | null;
  readonly #deflateThreshold: number;
  #deflater: Deflater | null = null;

  #state: "open" | "closing" | "closed" = "open";
  /** Whether the transport ended. */
  #ended = false;
  /** Whether the iterator has not yet reached the end of what was received. */
  #unread = false;
  /** Events worked off by a later `receive` before anyone iterated. */
  #queue: ConnectionEvent[] = [];
  #queueAt = 0;

  /** Whether the last message was binary, and so the next ones are likely to be. */
  #binary = false;
  /** Whether the last piece did not end its frame. */
  #inFrame = false;
  /** The payload of a control frame that came in pieces. */
  readonly #control: Gather = new Gather();

  /** The opcode of the message being sent in fragments; 0: none is. */
  #sending = 0;
  #sendingCompressed = false;
  /** A high surrogate at the end of the last fragment, which waits for its other half. */
  #surrogate = "";

  /**
   * A connection that is open.
   *
   * @param options Which end this is, limits, and what was negotiated
   * @throws {TypeError | RangeError} When an option is wrong
   */
  constructor(options: ConnectionOptions) {
    checkOptions(options, "options");
    const role = checkRole(options.role);
    if (role === undefined) {
      throw new TypeError(
        `Expected 'role' to be "client" or "server", got undefined`,
      );
    }
    const deflate = deflateParameters(options.deflate);
    const server: DeflateWindow | null = deflate && {
      windowBits: deflate.serverMaxWindowBits,
      noContextTakeover: deflate.serverNoContextTakeover,
    };
    const client: DeflateWindow | null = deflate && {
      windowBits: deflate.clientMaxWindowBits,
      noContextTakeover: deflate.clientNoContextTakeover,
    };
    this.#deflate = role === "server" ? server : client;
    this.#deflateThreshold = checkCount(
      options.deflateThreshold,
      "deflateThreshold",
      1024,
    );
    this.#autoPong = checkFlag(options.autoPong, "autoPong", true);
    const partial = checkFlag(options.partial, "partial", false);
    const maxFragments = checkCount(
      options.maxFragments,
      "maxFragments",
      16384,
    );
    this.#maxMessageLength = checkCount(
      options.maxMessageLength,
      "maxMessageLength",
      0x4000000,
    );
    this.#direct = !partial && maxFragments > 0;
    this.#incoming = new Incoming({
      maxMessageLength: this.#maxMessageLength,
      maxFragments,
      partial,
      inflate: role === "server" ? client : server,
    });
    const readOptions: InternalReadOptions = {
      role,
      maxPayloadLength: options.maxPayloadLength,
      allowRsv1: deflate !== null,
      partial: true,
      inPlace: options.inPlace,
      rawPieces: true,
    };
    this.#reader = new FrameReader(readOptions);
    const { maskKey, disableClientMask, checks } = options;
    this.#writer = new FrameWriter({
      role,
      maskKey,
      disableClientMask,
      checks,
    });
    this.#events = new EventIterator(() => this.#nextEvent());
  }

  /**
   * "open" until a Close was sent or read; "closing" while the peer's answer to ours is
   * awaited: it may still send, we may not; "closed" when the `close` event has come, or
   * waits behind events that a later `receive` worked off.
   */
  get state(): "open" | "closing" | "closed" {
    return this.#state;
  }

  /**
   * Takes what the transport received. Reading is lazy: an event, and what is answered by
   * itself, comes into being when the iteration reaches it. What was not iterated is
   * worked off by the next call, whose events come after it. After a Close nothing more is
   * read.
   *
   * What this side cannot do ends the connection, since a message would be missing: the
   * call, or the iteration, throws it once, and a `close` event with 1011 follows.
   *
   * @param chunk The bytes, which must stay as they are until they were iterated over or
   * until the next call
   * @returns The events of this chunk, and of earlier ones that were not iterated over
   * @throws {TypeError} When `chunk` is not a Uint8Array, or an earlier one became shorter
   * before it was read
   * @throws {Error} What the engine throws for a message that it cannot hold
   */
  receive(chunk: Uint8Array): Iterable<ConnectionEvent> {
    if (!(chunk instanceof Uint8Array)) checkBytes(chunk, "chunk");
    this.#workOff();
    if (this.#state !== "closed" && !this.#ended) {
      this.#reader.push(chunk);
      this.#unread = true;
    }
    return this.#events;
  }

  /**
   * Says that the transport ended, by its end or by an error: nothing more can be
   * received, and what is sent goes nowhere.
   *
   * @returns The events that were not iterated over, and, unless the connection was
   * closed before, a `close` event with code 1006; with 1011 when a chunk was taken away
   * before it was read
   */
  receiveEnd(): Iterable<ConnectionEvent> {
    try {
      this.#workOff();
    } catch {
      // A chunk was taken away: the event that tells it waits.
    }
    this.#ended = true;
    this.#unread = true;
    return this.#events;
  }

  /**
   * Sends a message, or a fragment of one.
   *
   * @param data Text, or bytes, which are copied
   * @param options Whether this ends the message, and whether to compress it
   * @throws {TypeError} When `data` is neither, or not of the kind of the fragments before
   * @throws {Error} When the connection is not open
   */
  send(data: string | Uint8Array, options?: SendOptions): void {
    this.#checkOpen("send a message");
    if (
      options === undefined && this.#sending === 0 && this.#deflate === null
    ) {
      if (typeof data === "string") return this.#writer.text(data);
      if (!(data instanceof Uint8Array)) {
        checkBytes(data, "data", TEXT_OR_BYTES);
      }
      return this.#writer.binary(data);
    }
    if (options !== undefined) checkOptions(options, "options");
    const opcode = typeof data === "string" ? TEXT : BINARY;
    if (opcode === BINARY) checkBytes(data, "data", TEXT_OR_BYTES);
    const fin = checkFlag(options?.fin, "fin", true);
    const compress = options?.compress;
    checkFlag(compress, "compress", true);
    if (this.#sending !== 0 && this.#sending !== opcode) {
      throw new TypeError(
        `Expected 'data' to be ${
          opcode === TEXT ? "a Uint8Array" : "a string"
        } like the fragments before, got ${shown(data)}`,
      );
    }
    try {
      this.#sendFrame(data, opcode, fin, compress);
    } catch (error) {
      throw this.#break(error);
    }
  }

  #sendFrame(
    data: string | Uint8Array,
    opcode: number,
    fin: boolean,
    compress: boolean | undefined,
  ): void {
    if (typeof data === "string" && (!fin || this.#surrogate !== "")) {
      data = this.#surrogate + data;
      const unit = data.charCodeAt(data.length - 1);
      const cut = !fin && unit >= 0xd800 && unit <= 0xdbff;
      this.#surrogate = cut ? data.slice(-1) : "";
      if (cut) data = data.slice(0, -1);
    }
    let first = CONTINUATION;
    if (this.#sending === 0) {
      first = opcode;
      this.#sendingCompressed = this.#deflate !== null &&
        (compress ?? (!fin || this.#isWorthCompressing(data)));
      if (this.#sendingCompressed) first |= RSV1;
    }
    this.#sending = fin ? 0 : opcode;
    if (fin) first |= FIN;
    if (this.#sendingCompressed) {
      const deflater = this.#deflater ??= Deflater.take(this.#deflate!);
      const payload = deflater.deflate(
        typeof data === "string" ? encoder.encode(data) : data,
        fin,
      );
      if (fin && deflater.give()) this.#deflater = null;
      appendFrame(this.#writer, first, payload, 0, payload.length);
    } else if (typeof data === "string") {
      appendText(this.#writer, first, data);
    } else {
      appendFrame(this.#writer, first, data, 0, data.length);
    }
  }

  #isWorthCompressing(data: string | Uint8Array): boolean {
    const threshold = this.#deflateThreshold;
    if (data.length >= threshold) return true;
    // A UTF-16 unit becomes 3 bytes of UTF-8 at most.
    return typeof data === "string" && 3 * data.length >= threshold &&
      encoder.encode(data).length >= threshold;
  }

  /**
   * Sends a Ping.
   *
   * @param data At most 125 bytes (default none)
   * @throws {TypeError | RangeError} When `data` is no Uint8Array or too long
   * @throws {Error} When the connection is not open
   */
  ping(data?: Uint8Array): void {
    this.#checkOpen("send a Ping");
    if (data !== undefined) checkBytes(data, "data");
    this.#writer.ping(data);
  }

  /**
   * Sends a Pong: an answer of the caller's, or a heartbeat that asks for none.
   *
   * @param data At most 125 bytes (default none)
   * @throws {TypeError | RangeError} When `data` is no Uint8Array or too long
   * @throws {Error} When the connection is not open
   */
  pong(data?: Uint8Array): void {
    this.#checkOpen("send a Pong");
    if (data !== undefined) checkBytes(data, "data");
    this.#writer.pong(data);
  }

  /**
   * Begins the closing handshake by sending a Close; nothing can be sent after it. When
   * the connection is not open any more it does nothing, as `close` of WebSocket.
   *
   * @param code The status code, 1000 to 1003, 1007 to 1014 or 3000 to 4999; absent: none
   * @param reason The reason, at most 123 bytes of UTF-8
   * @throws {RangeError} When the code must not be sent, the reason is too long, or there
   * is a reason without a code
   * @throws {TypeError} When an argument has the wrong type
   */
  close(code?: number, reason?: string): void {
    if (this.#state !== "open") return;
    this.#writer.close(code, reason);
    this.#state = "closing";
    this.#deflater = null;
  }

  /**
   * Takes the bytes to write to the transport: everything sent and answered since the
   * last call.
   *
   * @returns The bytes, which are the caller's from now on, with their buffer. That may be
   * up to twice as long, with zeros behind the bytes: send the bytes, not `.buffer`
   */
  takeOutput(): Uint8Array<ArrayBuffer> {
    return this.#writer.take();
  }

  #checkOpen(action: string): void {
    if (this.#state !== "open") {
      throw new Error(`Cannot ${action}: the connection is ${this.#state}`);
    }
  }

  /** Reads to the end of what was received, for an iteration to come. */
  #workOff(): void {
    while (this.#unread) {
      const event = this.#readEvent();
      if (event !== undefined) this.#queue.push(event);
    }
  }

  #nextEvent(): ConnectionEvent | undefined {
    if (this.#queueAt === this.#queue.length) return this.#readEvent();
    const event = this.#queue[this.#queueAt++];
    // Half of it told: what was told goes, so that it stays linear and does not grow for ever.
    if (2 * this.#queueAt >= this.#queue.length) {
      this.#queue.splice(0, this.#queueAt);
      this.#queueAt = 0;
    }
    return event;
  }

  #readEvent(): ConnectionEvent | undefined {
    if (!this.#unread) return undefined;
    const reader = this.#reader;
    try {
      while (this.#state !== "closed") {
        if (this.#incoming.fault !== null) {
          return this.#fail(this.#incoming.fault);
        }
        let event: ConnectionEvent | null;
        if (this.#incoming.pending) {
          event = this.#incoming.resume();
        } else {
          if (
            !V8 && this.#binary && this.#direct && !this.#inFrame &&
            !this.#incoming.open
          ) {
            const data = takeShortBinary(reader, this.#maxMessageLength);
            if (data !== undefined) return { type: "binary", data };
          }
          if (!(this.#binary ? advanceOwned(reader) : reader.advance())) break;
          event = this.#readPiece();
        }
        if (event !== null) return event;
      }
    } catch (error) {
      if (error instanceof FrameError) return this.#failWith(error);
      throw this.#break(error);
    }
    this.#unread = false;
    if (!this.#ended || this.#state === "closed") return undefined;
    this.#state = "closed";
    this.#forget();
    const reason = "The transport ended without a Close";
    return { type: "close", code: 1006, reason, clean: false };
  }

  /** Makes an event of what is under the cursor, or null when more of it must come. */
  #readPiece(): ConnectionEvent | null {
    const reader = this.#reader;
    const first = reader.firstByte;
    const incoming = this.#incoming;
    if (
      (first === (FIN | BINARY) || first === (FIN | TEXT)) && this.#direct &&
      !this.#inFrame && !incoming.open && reader.last &&
      reader.payloadLength <= this.#maxMessageLength
    ) {
      if (first === (FIN | BINARY)) {
        this.#binary = true;
        return { type: "binary", data: ownedPayload(reader) };
      }
      this.#binary = false;
      const data = decodeText(
        reader.memory,
        reader.payloadStart,
        reader.payloadEnd,
      );
      return data === null
        ? this.#fail("WS_ERR_INVALID_UTF8")
        : { type: "text", data };
    }
    const memory = reader.memory;
    const start = reader.payloadStart;
    const end = reader.payloadEnd;
    const last = reader.last;
    const key = pieceKey(reader);
    const isNew = !this.#inFrame;
    this.#inFrame = !last;
    if ((first & 0x08) !== 0) {
      return this.#readControl(first & 0x0f, memory, start, end, key, last);
    }
    if (isNew) {
      const fault = incoming.begin(first, reader.payloadLength);
      if (fault !== null) return this.#fail(fault);
    }
    return incoming.piece(memory, start, end, key, last && first >= FIN);
  }

  /** A control frame, or a piece of one. Of a Close, what has arrived is judged at once. */
  #readControl(
    opcode: number,
    memory: Uint8Array,
    start: number,
    end: number,
    key: number,
    last: boolean,
  ): ConnectionEvent | null {
    let data: Uint8Array;
    if (last && this.#control.length === 0) {
      data = ownedPayload(this.#reader);
    } else {
      this.#control.append(memory, start, end, key, 0);
      if (!last) {
        return opcode === CLOSE ? this.#judgeClose() : null;
      }
      data = this.#control.take();
    }
    if (opcode === CLOSE) return this.#readClose(data);
    if (opcode !== PING) return { type: "pong", data };
    if (this.#autoPong && this.#state === "open") this.#writer.pong(data);
    return { type: "ping", data };
  }

  #judgeClose(): ConnectionEvent | null {
    const { bytes, length } = this.#control;
    if (length < 2) return null;
    if (!isValidCloseCode(bytes[0]! << 8 | bytes[1]!)) {
      return this.#fail("WS_ERR_INVALID_CLOSE_CODE");
    }
    return new Utf8Validator().push(bytes, 2, length) < length
      ? this.#fail("WS_ERR_INVALID_UTF8")
      : null;
  }

  #readClose(payload: Uint8Array): ConnectionEvent {
    let close: { code: number; reason: string };
    try {
      close = readClosePayload(payload);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return this.#fail(error.code);
    }
    if (this.#state === "open") {
      appendFrame(this.#writer, FIN | CLOSE, payload, 0, payload.length);
    }
    this.#state = "closed";
    this.#forget();
    return { type: "close", ...close, clean: true };
  }

  #fail(code: FrameErrorCode): ConnectionEvent {
    return this.#failWith(new FrameError(code, this.#reader.byteOffset));
  }

  #failWith(error: FrameError): ConnectionEvent {
    return this.#failAs(error.closeCode, error.message);
  }

  /** RFC 6455 section 7.1.7: a Close tells the peer, unless one was sent before. */
  #failAs(code: number, reason: string): ConnectionEvent {
    if (this.#state === "open") this.#writer.close(code);
    this.#state = "closed";
    this.#forget();
    return { type: "close", code, reason, clean: false };
  }

  /**
   * Ends a connection on this side's own failure, after which bytes are missing: memory
   * that could not be had, a chunk taken away. The event comes behind those that wait.
   */
  #break(error: unknown): unknown {
    this.#unread = false;
    this.#queue.push(this.#failAs(1011, String(error)));
    return error;
  }

  /** Lets go of memory that a closed connection does not need. */
  #forget(): void {
    this.#reader.reset();
    this.#incoming.clear();
    this.#control.clear();
    this.#deflater = null;
  }
}

/** Goes on where the last iteration stopped, so that a loop may be left and taken up again. */
class EventIterator implements IterableIterator<ConnectionEvent> {
  readonly #next: () => ConnectionEvent | undefined;

  constructor(next: () => ConnectionEvent | undefined) {
    this.#next = next;
  }

  next(): IteratorResult<ConnectionEvent> {
    const value = this.#next();
    return value === undefined
      ? { done: true, value: undefined }
      : { done: false, value };
  }

  [Symbol.iterator](): this {
    return this;
  }
}
