/**
 * The server's side of the opening handshake (RFC 6455 section 4.2).
 *
 * @module
 */

import {
  checkBytes,
  checkCount,
  checkOptions,
  checkRange,
  shown,
} from "../check.ts";
import { acceptKey, isKey } from "./accept_key.ts";
import {
  acceptDeflate,
  type DeflateParameters,
  deflateParameters,
} from "./deflate_parameters.ts";
import {
  checkHeaders,
  checkProtocol,
  endOf,
  findHead,
  HandshakeError,
  hasToken,
  headBytes,
  HOST,
  isToken,
  latin1,
  listOf,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  NAME,
  parseHead,
  TARGET,
  writeHead,
} from "./http.ts";

/** The head of a request, as {@linkcode readUpgradeRequest} read it. */
export interface UpgradeRequest {
  /** The method. {@linkcode acceptUpgrade} takes GET alone. */
  method: string;
  /** The request target as sent, normally a path with its query. */
  path: string;
  /** The headers. Bytes from 0x80 on in their values were read as Latin-1. */
  headers: Headers;
}

/** How large the head of a request may be. */
export interface HandshakeLimits {
  /** Bytes, the empty line at the end included. Default 16384. */
  maxHeaderBytes?: number | undefined;
  /**
   * Header lines. Default 100. The `Headers` of Deno and Bun take time that grows with the
   * square of the number of names: keep it below a few thousand.
   */
  maxHeaders?: number | undefined;
}

/** A request that another server has parsed: Fetch's, Node's, or any of the same form. */
export interface ParsedRequest {
  /** The method. */
  method?: string | undefined;
  /** The request target; it is not looked at. */
  url?: string | undefined;
  /** Fetch's Headers, or an object of names in any case. */
  headers: Headers | Record<string, string | string[] | undefined>;
  /** "1.1", where the server tells, as Node's does. */
  httpVersion?: string | undefined;
}

/** What a server says to a request that it accepts. */
export interface AcceptOptions {
  /** The subprotocol to speak. It is left out when the client did not offer it. */
  protocol?: string | undefined;
  /** Agrees to permessage-deflate where the client offers it, within these parameters. */
  deflate?: boolean | Partial<DeflateParameters> | undefined;
  /** More headers for the response, such as cookies. */
  headers?: Record<string, string> | undefined;
}

/** What became of an upgrade, at either end. */
export interface Upgrade {
  /** The subprotocol both ends agreed on, or null. */
  protocol: string | null;
  /** What both ends agreed on about compression, for `Connection`; null: there is none. */
  deflate: DeflateParameters | null;
}

/** Headers that the response to an upgrade sets itself. */
const RESERVED: readonly string[] = [
  "connection",
  "content-length",
  "sec-websocket-accept",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
  "transfer-encoding",
  "upgrade",
];

/** The reason phrases of the statuses a handshake ends with (RFC 9110 section 15). */
const REASONS: Record<number, string> = {
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  410: "Gone",
  413: "Content Too Large",
  414: "URI Too Long",
  421: "Misdirected Request",
  426: "Upgrade Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
};

/**
 * Reads the head of a request from the bytes received so far. It reads HTTP; whether the
 * request is a WebSocket handshake is for {@linkcode acceptUpgrade} to judge, so that a
 * server can answer other requests too.
 *
 * A fault speaks as soon as the bytes that show it have arrived. Call it again with all
 * bytes from the start when more have arrived; each call is one pass over at most
 * `maxHeaderBytes`. From a peer that sends byte by byte, calling it for chunks with an LF
 * in them is enough.
 *
 * @param bytes What was received, from the first byte of the request on
 * @param limits How large the head may be
 * @returns The request and the length of its head, or undefined when more bytes are needed.
 * The bytes after the head are the first frames: pass them to `Connection`
 * @throws {HandshakeError} 400 when malformed, 431 when too large, 505 when not HTTP/1.1
 *
 * @example
 * ```ts
 * import { readUpgradeRequest } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = new TextEncoder().encode("GET /chat HTTP/1.1\r\nHost: a.example\r\n\r\n");
 * assertEquals(readUpgradeRequest(bytes.subarray(0, 20)), undefined);
 * const result = readUpgradeRequest(bytes)!;
 * assertEquals(result.request.path, "/chat");
 * assertEquals(result.request.headers.get("host"), "a.example");
 * assertEquals(result.bytesRead, bytes.length);
 * ```
 */
export function readUpgradeRequest(
  bytes: Uint8Array,
  limits: HandshakeLimits = {},
): { request: UpgradeRequest; bytesRead: number } | undefined {
  checkBytes(bytes, "bytes");
  checkOptions(limits, "limits");
  // RFC 9112 section 2.2: an empty line before the request is passed over.
  const start = bytes[0] === 0x0d && bytes[1] === 0x0a ? 2 : 0;
  const bytesRead = findHead(bytes, {
    malformed: 400,
    tooLarge: 431,
    maxHeaderBytes: checkCount(
      limits.maxHeaderBytes,
      "maxHeaderBytes",
      MAX_HEADER_BYTES,
    ),
    maxHeaders: checkCount(limits.maxHeaders, "maxHeaders", MAX_HEADERS),
    checkLine: checkRequestLine,
  }, start);
  if (bytesRead === undefined) return undefined;
  const { line, headers } = parseHead(bytes, start, bytesRead);
  // RFC 9112 section 3.2: exactly one Host, which may be empty. Two are joined by a comma.
  const host = headers.get("host");
  if (host === null || (host !== "" && !HOST.test(host))) {
    throw new HandshakeError(
      400,
      "The request must have one valid Host header",
    );
  }
  const [method, path] = line.split(" ") as [string, string];
  return { request: { method, path, headers }, bytesRead };
}

/** RFC 9112 section 3: method, target and version, with one space between them. */
function checkRequestLine(
  bytes: Uint8Array,
  start: number,
  stop: number,
): void {
  const method = endOf(bytes, start, stop, NAME);
  const target = endOf(bytes, method + 1, stop, TARGET);
  // Up to the first character of the host, where the target is absolute.
  const line = latin1(bytes, start, Math.min(target, method + 10));
  const version = latin1(bytes, target, Math.min(stop, target + 10));
  if (
    method === start ||
    !/^(?:\S+ (?:\/|https?:\/\/[^/?:])|OPTIONS \*$)/i.test(line) ||
    !/^ HTTP\/\d\.\d$/.test(version)
  ) {
    throw new HandshakeError(400, "The request line is malformed");
  }
  checkVersion(version.slice(6));
}

/** RFC 6455 section 4.2.1: HTTP/1.1 or higher, and a higher major version has no Upgrade. */
function checkVersion(version: string): void {
  if (!/^1\.[1-9]$/.test(version)) {
    throw new HandshakeError(
      505,
      `The HTTP version must be 1.1, got ${version.slice(0, 16)}`,
    );
  }
}

/**
 * Judges a request by RFC 6455 section 4.2.1 and writes the response that opens the
 * connection. Also takes what an existing server has parsed: a Fetch `Request`, or the
 * request of Node's `upgrade` event.
 *
 * @param request The request
 * @param options The subprotocol, the compression and the headers to answer with. A
 * subprotocol that the client did not offer is left out, as section 4.2.2 asks: look at
 * the result, and call {@linkcode rejectUpgrade} instead if you cannot do without it.
 * Compression is left out when no offer can be met
 * @returns The bytes to write, and what was agreed on
 * @throws {HandshakeError} When the request is at fault: 405 for a method that is not GET,
 * 505 for an HTTP version below 1.1, 426 when it asks for no upgrade to WebSocket or for
 * another version of it than 13, 400 otherwise
 * @throws {TypeError | RangeError} When an option is not what it must be
 *
 * @example
 * ```ts
 * import { acceptUpgrade, createUpgradeRequest, readUpgradeRequest } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const { bytes } = createUpgradeRequest({ host: "a.example", protocols: ["v2", "v1"] });
 * const { request } = readUpgradeRequest(bytes)!;
 * const accepted = await acceptUpgrade(request, { protocol: "v1", deflate: true });
 * assertEquals(accepted.protocol, "v1");
 * assertEquals(accepted.deflate, null); // the client did not offer it
 * ```
 */
export async function acceptUpgrade(
  request: UpgradeRequest | Request | ParsedRequest,
  options: AcceptOptions = {},
): Promise<Upgrade & { bytes: Uint8Array<ArrayBuffer> }> {
  const field = fieldsOf(request);
  checkOptions(options, "options");
  const wanted = deflateParameters(options.deflate);
  const more = checkHeaders(options.headers ?? {}, RESERVED);
  if (options.protocol !== undefined) checkProtocol(options.protocol);

  const key = checkUpgradeRequest(request, field);
  const offered = offeredProtocols(field("sec-websocket-protocol"));
  const agreed = acceptDeflate(field("sec-websocket-extensions"), wanted);
  const protocol = offered.find((name) => name === options.protocol) ?? null;

  const fields: [string, string][] = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", await acceptKey(key)],
  ];
  if (protocol !== null) fields.push(["Sec-WebSocket-Protocol", protocol]);
  if (agreed !== null) fields.push(["Sec-WebSocket-Extensions", agreed.answer]);
  return {
    bytes: headBytes(
      writeHead("HTTP/1.1 101 Switching Protocols", [...fields, ...more]),
    ),
    protocol,
    deflate: agreed?.parameters ?? null,
  };
}

type Fields = (name: string) => string | null;

/** Looks headers up by their lower-case name, whoever parsed them. */
function fieldsOf(request: UpgradeRequest | Request | ParsedRequest): Fields {
  const headers = request?.headers;
  if (typeof headers !== "object" || headers === null) {
    throw new TypeError(
      `Expected 'request' to be an object with headers, got ${shown(request)}`,
    );
  }
  if (typeof headers.get === "function") {
    return (name) => fieldOf(name, (headers as Headers).get(name));
  }
  if (Symbol.iterator in headers) { // Node's rawHeaders, say: they would count as empty
    throw new TypeError(
      `Expected 'headers' to be Headers, or an object of names and values, got ${
        shown(headers)
      }`,
    );
  }
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const field = fieldOf(name, value);
    if (field === null) continue;
    const before = fields.get(name.toLowerCase());
    fields.set(
      name.toLowerCase(),
      before === undefined ? field : `${before}, ${field}`,
    );
  }
  return (name) => fields.get(name) ?? null;
}

/** A header's value as one text; null when it is absent. */
function fieldOf(name: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) {
    return value.map((one) => fieldOf(name, one) ?? "").join(", ");
  }
  throw new TypeError(
    `Expected the header '${name}' to be a string, got ${shown(value)}`,
  );
}

/** The rules of RFC 6455 section 4.2.1. Returns the key. */
function checkUpgradeRequest(
  request: { method?: string | undefined },
  field: Fields,
): string {
  if (request.method !== "GET") {
    throw new HandshakeError(
      405,
      `The method must be GET, got ${shown(request.method)}`,
    );
  }
  const httpVersion = (request as ParsedRequest).httpVersion;
  if (httpVersion !== undefined) checkVersion(String(httpVersion));
  if (!hasToken(field("upgrade"), "websocket")) {
    throw new HandshakeError(
      426,
      "The request does not ask for an upgrade to WebSocket",
    );
  }
  if (!hasToken(field("connection"), "upgrade")) {
    throw new HandshakeError(
      400,
      "The Connection header does not name Upgrade",
    );
  }
  const version = field("sec-websocket-version");
  if (version === null) {
    throw new HandshakeError(400, "Sec-WebSocket-Version is missing");
  }
  if (version !== "13") {
    throw new HandshakeError(426, "Sec-WebSocket-Version must be 13");
  }
  const key = field("sec-websocket-key");
  if (key === null || !isKey(key)) {
    throw new HandshakeError(
      400,
      "Sec-WebSocket-Key must be the base64 of 16 bytes",
    );
  }
  // A body would be taken for frames, or the frames for a body by something in between.
  if (
    field("transfer-encoding") !== null ||
    (field("content-length") ?? "0") !== "0"
  ) {
    throw new HandshakeError(400, "A handshake has no body");
  }
  return key;
}

/** RFC 6455 section 4.2.1: tokens, none of them twice. */
function offeredProtocols(header: string | null): string[] {
  const offered = listOf(header);
  if (!offered.every(isToken) || new Set(offered).size !== offered.length) {
    throw new HandshakeError(400, "Sec-WebSocket-Protocol is malformed");
  }
  return offered;
}

/**
 * Writes the response that refuses a request and ends the connection: write it, then
 * close the transport. 426 carries the version and protocol to upgrade to (RFC 6455
 * section 4.4), 405 the method.
 *
 * @param status The HTTP status, 300 to 599, such as that of a {@linkcode HandshakeError}:
 * below there is nothing that refuses
 * @param headers More headers for the response, such as `WWW-Authenticate`
 * @param body A text for people, sent as UTF-8; without a `Content-Type` of yours it is
 * plain text. With 304 there must be none (RFC 9110 section 15.4.5)
 * @returns The bytes to write
 * @throws {TypeError | RangeError} When an argument is not what it must be
 *
 * @example
 * ```ts
 * import { rejectUpgrade } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = rejectUpgrade(403, {}, "Not from this origin");
 * assertEquals(
 *   new TextDecoder().decode(bytes),
 *   "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 20\r\n" +
 *     "Content-Type: text/plain; charset=utf-8\r\n\r\nNot from this origin",
 * );
 * ```
 */
export function rejectUpgrade(
  status: number,
  headers: Record<string, string> = {},
  body = "",
): Uint8Array<ArrayBuffer> {
  checkRange(status, "status", 300, 599);
  if (typeof body !== "string") {
    throw new TypeError(`Expected 'body' to be a string, got ${shown(body)}`);
  }
  if (status === 304 && body !== "") {
    throw new RangeError(
      `Expected 'body' to be empty with status 304, got ${shown(body)}`,
    );
  }
  const more = checkHeaders(headers, [
    "connection",
    "content-length",
    "transfer-encoding",
  ]);
  const content = new TextEncoder().encode(body);
  const fields: [string, string][] = [
    ["Connection", status === 426 ? "Upgrade, close" : "close"],
  ];
  // With 304 it would be the length of what was not sent.
  if (status !== 304) fields.push(["Content-Length", String(content.length)]);
  const addUnlessGiven = (name: string, value: string) => {
    if (!more.some(([given]) => given.toLowerCase() === name.toLowerCase())) {
      fields.push([name, value]);
    }
  };
  if (body !== "") addUnlessGiven("Content-Type", "text/plain; charset=utf-8");
  if (status === 405) addUnlessGiven("Allow", "GET");
  if (status === 426) {
    addUnlessGiven("Upgrade", "websocket");
    addUnlessGiven("Sec-WebSocket-Version", "13");
  }
  const line = `HTTP/1.1 ${status} ${REASONS[status] ?? ""}`;
  const head = headBytes(writeHead(line, [...fields, ...more]));
  const bytes = new Uint8Array(head.length + content.length);
  bytes.set(head);
  bytes.set(content, head.length);
  return bytes;
}
