/**
 * The little of HTTP/1.1 that the opening handshake needs: heads read strictly and
 * within limits, heads written without a way to inject anything (RFC 9112).
 *
 * @module
 */

import { checkOptions, shown } from "../check.ts";

/** The longest head that is read, in bytes, its empty line included. */
export const MAX_HEADER_BYTES: number = 16 * 1024;
/** The most header lines that are read. */
export const MAX_HEADERS = 100;

const HTAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;

/** `token` of RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** A field value, as far as it is safe in a head: one line of Latin-1. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** A character of a request target: RFC 3986 has fewer, clients send more. */
const TARGET_CHARACTER = /^[\x21\x22\x24-\x7e]$/;
/** The value of `Host`: a name or address, and a port (RFC 9110 section 7.2). */
export const HOST: RegExp =
  /^(?:\[[\w\-.~%!$&'()*+;=:]+\]|[\w\-.~%!$&'()*+;=]+)(?::\d*)?$/;

/**
 * The handshake failed for a reason that lies with the peer. Mistakes of the caller are
 * TypeError and RangeError.
 *
 * @example
 * ```ts
 * import { HandshakeError, readUpgradeRequest, rejectUpgrade } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = new TextEncoder().encode("GET / HTTP/3.0\r\n");
 * try {
 *   readUpgradeRequest(bytes);
 * } catch (error) {
 *   if (!(error instanceof HandshakeError)) throw error;
 *   assertEquals(error.status, 505);
 *   rejectUpgrade(error.status, {}, error.message); // what to write before hanging up
 * }
 * ```
 */
export class HandshakeError extends Error {
  /**
   * At a server: the HTTP status to answer with, for `rejectUpgrade`. At a client: the
   * status that the server answered with, or 502 for an answer that breaks the rules.
   */
  status: number;
  /** At a client, when the server refused: the headers of its answer. */
  headers: Headers | null;

  /**
   * An error with what to answer, or with what was answered.
   *
   * @param status The HTTP status
   * @param message What was wrong
   * @param headers The headers of the answer that refused
   */
  constructor(status: number, message: string, headers: Headers | null = null) {
    super(message);
    this.name = "HandshakeError";
    this.status = status;
    this.headers = headers;
  }
}

/** How a head is to be read. */
export interface HeadRules {
  /** The status of errors about the form of the head. */
  malformed: number;
  /** The status of errors about its size. */
  tooLarge: number;
  maxHeaderBytes: number;
  maxHeaders: number;
  /** Judges the first line as soon as it is complete, by throwing. */
  checkLine(bytes: Uint8Array, start: number, stop: number): void;
}

/** A head that is complete. */
export interface Head {
  line: string;
  headers: Headers;
}

/** Class of bytes: in a field value, or a reason phrase. */
const FIELD = 1;
/** Class of bytes: in a `token`. */
export const NAME = 2;
/** Class of bytes: in a request target. */
export const TARGET = 4;

/** The classes of each byte, as bits. */
const CLASSES: Uint8Array = byteClasses();

function byteClasses(): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => {
    const character = String.fromCharCode(byte);
    return (FIELD_VALUE.test(character) ? FIELD : 0) |
      (TOKEN.test(character) ? NAME : 0) |
      (TARGET_CHARACTER.test(character) ? TARGET : 0);
  });
}

/** Where the bytes of a class end. */
export function endOf(
  bytes: Uint8Array,
  start: number,
  stop: number,
  kind: number,
): number {
  while (start < stop && (CLASSES[bytes[start]!]! & kind) !== 0) start++;
  return start;
}

/**
 * Looks for the end of the head that begins at `from`: the index behind its empty line,
 * or undefined when more bytes are needed. One pass that makes nothing, as it starts over
 * for each byte that arrives; not a byte from `maxHeaderBytes` on is looked at. A line
 * ends in CR LF and nothing else; folded lines, a space before the colon, and control
 * characters are refused.
 */
export function findHead(
  bytes: Uint8Array,
  rules: HeadRules,
  from: number,
): number | undefined {
  const end = Math.min(bytes.length, rules.maxHeaderBytes);
  for (let start = from, lines = 0; start < end; lines++) {
    let stop = start;
    if (lines > 0 && bytes[start] !== CR) {
      if (lines > rules.maxHeaders) {
        throw new HandshakeError(
          rules.tooLarge,
          `There are more than ${rules.maxHeaders} headers`,
        );
      }
      stop = endOf(bytes, start, end, NAME);
      if (stop === end) break;
      if (stop === start || bytes[stop] !== COLON) {
        throw new HandshakeError(
          rules.malformed,
          `A header without a valid name at ${start}`,
        );
      }
    }
    stop = endOf(bytes, stop, end, FIELD);
    if (stop === end) break;
    if (bytes[stop] !== CR || (stop + 1 < end && bytes[stop + 1] !== LF)) {
      throw new HandshakeError(
        rules.malformed,
        `A byte that no head may have at ${stop}`,
      );
    }
    if (stop + 1 === end) break;
    if (lines === 0) rules.checkLine(bytes, start, stop);
    else if (stop === start) return stop + 2;
    start = stop + 2;
  }
  if (bytes.length >= rules.maxHeaderBytes) {
    throw new HandshakeError(
      rules.tooLarge,
      `The head is longer than ${rules.maxHeaderBytes} bytes`,
    );
  }
  return undefined;
}

/**
 * Reads a head that {@linkcode findHead} found. Bytes from 0x80 on in a field value are
 * taken as Latin-1, as browsers and servers do.
 */
export function parseHead(
  bytes: Uint8Array,
  start: number,
  stop: number,
): Head {
  const [line, ...fields] = latin1(bytes, start, stop - 4).split("\r\n");
  const headers = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    headers.append(field.slice(0, colon), field.slice(colon + 1));
  }
  return { line: line!, headers };
}

/** The text of bytes, each of which is a character. */
export function latin1(
  bytes: Uint8Array,
  start: number,
  stop: number,
): string {
  let text = "";
  while (start < stop) {
    // As many arguments as every engine takes.
    const part = bytes.subarray(start, Math.min(stop, start + 4096));
    text += String.fromCharCode.apply(null, part as unknown as number[]);
    start += part.length;
  }
  return text;
}

/** Whether the text is one `token`: a header's name, a method, a subprotocol. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * The elements of a comma-separated list, without the white space around them. Empty ones
 * do not count (RFC 9110 section 5.6.1.2).
 */
export function listOf(value: string | null): string[] {
  if (value === null) return [];
  return value.split(",").map(trimBlanks).filter((element) => element !== "");
}

/** Not `trim`, which takes a no-break space of Latin-1 for white space. */
export function trimBlanks(text: string): string {
  let start = 0;
  let stop = text.length;
  while (start < stop && isBlank(text.charCodeAt(start))) start++;
  while (stop > start && isBlank(text.charCodeAt(stop - 1))) stop--;
  return text.slice(start, stop);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === HTAB;
}

/** Whether a comma-separated list names the token, which is given in lower case. */
export function hasToken(value: string | null, token: string): boolean {
  return listOf(value).some((element) => element.toLowerCase() === token);
}

/**
 * Checks the headers a caller wants added. What belongs to the handshake or frames the
 * message is not the caller's to set.
 */
export function checkHeaders(
  headers: Record<string, string>,
  reserved: readonly string[],
): [name: string, value: string][] {
  checkOptions(headers, "headers");
  if (Symbol.iterator in headers) { // Headers, a Map: they would count as empty
    throw new TypeError(
      `Expected 'headers' to be an object of names and values, got ${
        shown(headers)
      }`,
    );
  }
  const entries = Object.entries(headers);
  for (const [name, value] of entries) {
    if (!isToken(name)) {
      throw new RangeError(
        `Expected the name of a header to be a token, got ${shown(name)}`,
      );
    }
    if (reserved.includes(name.toLowerCase())) {
      throw new RangeError(
        `Cannot set the header '${name}': the handshake does`,
      );
    }
    checkText(name, value, FIELD_VALUE, "one line of Latin-1");
  }
  return entries;
}

/** Throws unless `value` is a string of a form; `expected` says which. */
export function checkText(
  name: string,
  value: unknown,
  form: RegExp,
  expected: string,
): void {
  if (typeof value !== "string") {
    throw new TypeError(
      `Expected '${name}' to be a string, got ${shown(value)}`,
    );
  }
  if (!form.test(value)) {
    throw new RangeError(
      `Expected '${name}' to be ${expected}, got ${shown(value)}`,
    );
  }
}

/** Checks the name of a subprotocol (RFC 6455 section 4.1). */
export function checkProtocol(value: unknown): void {
  checkText("protocol", value, TOKEN, "a token");
}

/** Writes a head. Everything in it has been checked. */
export function writeHead(
  line: string,
  fields: readonly [name: string, value: string][],
): string {
  return `${line}\r\n${
    fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n`;
}

/** The bytes of a head that {@linkcode writeHead} wrote: Latin-1. */
export function headBytes(head: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length);
  for (let i = 0; i < head.length; i++) bytes[i] = head.charCodeAt(i);
  return bytes;
}
