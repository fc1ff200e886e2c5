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
const DEL = 0x7f;

/** `token` of RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** A field value, as far as it is safe in a head: one line of Latin-1. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

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
  checkLine(line: string): void;
}

/** A head that is complete. */
export interface Head {
  line: string;
  headers: Headers;
  /** The length of the head, its empty line included. */
  bytesRead: number;
}

/**
 * Reads a head, or returns undefined when more bytes are needed. One pass over at most
 * `maxHeaderBytes`; strings are made of a complete head only, so that being called for
 * each byte that arrives stays cheap. A line ends in CR LF and nothing else; folded lines,
 * a space before the colon, and control characters are refused. Bytes from 0x80 on in a
 * field value are taken as Latin-1, as browsers and servers do.
 */
export function readHead(
  bytes: Uint8Array,
  rules: HeadRules,
): Head | undefined {
  const end = Math.min(bytes.length, rules.maxHeaderBytes);
  const lines: number[] = [];
  for (let start = 0; start < end;) {
    if (bytes[start] !== CR && lines.length > 2 * rules.maxHeaders) {
      throw new HandshakeError(
        rules.tooLarge,
        `There are more than ${rules.maxHeaders} headers`,
      );
    }
    let stop = start;
    while (stop < end && isFieldByte(bytes[stop])) stop++;
    if (stop === end) break;
    if (bytes[stop] !== CR || (stop + 1 < end && bytes[stop + 1] !== LF)) {
      throw new HandshakeError(
        rules.malformed,
        `A byte that no head may have at ${stop}`,
      );
    }
    if (stop + 1 === end) break;
    if (start === 0) rules.checkLine(latin1(bytes, 0, stop));
    else if (stop === start) return finishHead(bytes, lines, stop + 2);
    else if (!isFieldLine(bytes, start, stop)) {
      throw new HandshakeError(
        rules.malformed,
        `A header without a valid name at ${start}`,
      );
    }
    lines.push(start, stop);
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

function finishHead(
  bytes: Uint8Array,
  lines: number[],
  bytesRead: number,
): Head {
  const headers = new Headers();
  for (let i = 2; i < lines.length; i += 2) {
    const field = latin1(bytes, lines[i], lines[i + 1]);
    const colon = field.indexOf(":");
    headers.append(field.slice(0, colon), field.slice(colon + 1));
  }
  return { line: latin1(bytes, lines[0], lines[1]), headers, bytesRead };
}

function isFieldByte(byte: number): boolean {
  return byte >= SPACE ? byte !== DEL : byte === HTAB;
}

function isFieldLine(bytes: Uint8Array, start: number, stop: number): boolean {
  let colon = start;
  while (colon < stop && bytes[colon] !== COLON) colon++;
  return colon < stop && TOKEN.test(latin1(bytes, start, colon));
}

function latin1(bytes: Uint8Array, start: number, stop: number): string {
  let text = "";
  for (let i = start; i < stop; i++) text += String.fromCharCode(bytes[i]);
  return text;
}

/** Whether the text is one `token`: a header's name, a method, a subprotocol. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** The elements of a comma-separated list, without the white space around them. */
export function listOf(value: string | null): string[] {
  return value === null ? [] : value.split(",").map(trimBlanks);
}

/** Not `trim`, which takes a no-break space of Latin-1 for white space. */
function trimBlanks(text: string): string {
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
    checkFieldValue(name, value);
  }
  return entries;
}

/** Checks that a text can stand as a field value: one line, no character above U+00FF. */
export function checkFieldValue(name: string, value: unknown): void {
  if (typeof value !== "string") {
    throw new TypeError(
      `Expected '${name}' to be a string, got ${shown(value)}`,
    );
  }
  if (!FIELD_VALUE.test(value)) {
    throw new RangeError(
      `Expected '${name}' to be one line of Latin-1, got ${shown(value)}`,
    );
  }
}

/** Checks the name of a subprotocol (RFC 6455 section 4.1). */
export function checkProtocol(value: unknown): void {
  checkFieldValue("protocol", value);
  if (!isToken(value as string)) {
    throw new RangeError(
      `Expected 'protocol' to be a token, got ${shown(value)}`,
    );
  }
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
