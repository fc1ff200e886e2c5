/**
 * The client's side of the opening handshake (RFC 6455 section 4.1).
 *
 * @module
 */

import { checkBytes, checkOptions, shown } from "../check.ts";
import { acceptKey, generateKey, isKey } from "./accept_key.ts";
import {
  type DeflateParameters,
  deflateParameters,
  readDeflateAnswer,
  writeDeflateOffer,
} from "./deflate_parameters.ts";
import type { Upgrade } from "./handshake_server.ts";
import {
  checkHeaders,
  checkProtocol,
  checkText,
  findHead,
  HandshakeError,
  hasToken,
  type Head,
  headBytes,
  type HeadRules,
  HOST,
  latin1,
  listOf,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  parseHead,
  writeHead,
} from "./http.ts";

/** What a client asks for. */
export interface UpgradeRequestInit {
  /** The value of `Host`: a name or address, with the port unless it is the default one. */
  host: string;
  /** The path and query, percent-encoded. Default "/". */
  path?: string | undefined;
  /** The value of `Origin`, which browsers send and others may. */
  origin?: string | undefined;
  /** Subprotocols to offer, the preferred one first. */
  protocols?: string[] | undefined;
  /** More headers, such as `Authorization` or `Cookie`. */
  headers?: Record<string, string> | undefined;
  /** Offers permessage-deflate with these parameters. */
  deflate?: boolean | Partial<DeflateParameters> | undefined;
}

/** What of a request is needed to judge its response. */
export interface SentRequest {
  /** The key that {@linkcode createUpgradeRequest} returned. */
  key: string;
  /** The subprotocols that were offered. */
  protocols?: string[] | undefined;
  /** The compression that was offered. */
  deflate?: boolean | Partial<DeflateParameters> | undefined;
}

/** How many interim responses may come before the final one: each is read at every call. */
const MAX_INTERIM = 16;

/** Headers that the request sets itself. */
const RESERVED: readonly string[] = [
  "connection",
  "content-length",
  "host",
  "sec-websocket-extensions",
  "sec-websocket-key",
  "sec-websocket-protocol",
  "sec-websocket-version",
  "transfer-encoding",
  "upgrade",
];

/**
 * Writes the request that asks a server to open a connection, with a fresh random key.
 *
 * @param init What to ask for
 * @returns The bytes to write, and the key for {@linkcode readUpgradeResponse}
 * @throws {TypeError | RangeError} When a part is not what it must be; nothing that could
 * end a line or a header gets through
 *
 * @example
 * ```ts
 * import { createUpgradeRequest, readUpgradeRequest } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const { bytes, key } = createUpgradeRequest({ host: "a.example:8080", path: "/chat?room=1" });
 * const { request } = readUpgradeRequest(bytes)!;
 * assertEquals(request.path, "/chat?room=1");
 * assertEquals(request.headers.get("sec-websocket-key"), key);
 * ```
 */
export function createUpgradeRequest(
  init: UpgradeRequestInit,
): { bytes: Uint8Array<ArrayBuffer>; key: string } {
  checkOptions(init, "init");
  const { host, path = "/", origin, protocols = [], headers = {} } = init;
  checkText("host", host, HOST, "a name or address, and a port if need be");
  checkText(
    "path",
    path,
    /^\/[\x21\x22\x24-\x7e]*$/,
    'a path that begins with "/", in ASCII without blanks and "#"',
  );
  if (origin !== undefined) {
    checkText(
      "origin",
      origin,
      /^[\x21-\x7e]+$/,
      "an origin in ASCII without blanks",
    );
  }
  checkProtocols(protocols);
  const more = checkHeaders(
    headers,
    origin === undefined ? RESERVED : [...RESERVED, "origin"],
  );
  const wanted = deflateParameters(init.deflate);

  const key = generateKey();
  const fields: [string, string][] = [
    ["Host", host],
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Key", key],
    ["Sec-WebSocket-Version", "13"],
  ];
  if (origin !== undefined) fields.push(["Origin", origin]);
  if (protocols.length > 0) {
    fields.push(["Sec-WebSocket-Protocol", protocols.join(", ")]);
  }
  if (wanted !== null) {
    fields.push(["Sec-WebSocket-Extensions", writeDeflateOffer(wanted)]);
  }
  return {
    bytes: headBytes(writeHead(`GET ${path} HTTP/1.1`, [...fields, ...more])),
    key,
  };
}

/**
 * Reads the response to a request and judges it by RFC 6455 section 4.1. Up to 16 interim
 * responses (100, 103) before it are passed over. More than 16 KiB in all, or 100 headers
 * in one of them, are refused. Call it again with all bytes from the start when more have
 * arrived.
 *
 * @param bytes What was received, from the first byte of the response on
 * @param sent The key, and what was offered
 * @returns What was agreed on, the headers, and how many bytes were read, or undefined when
 * more are needed. The bytes after those are the first frames: pass them to `Connection`
 * @throws {HandshakeError} When the server refused (its status, its headers) or broke the
 * rules (502)
 *
 * @example
 * ```ts
 * import {
 *   acceptUpgrade,
 *   createUpgradeRequest,
 *   readUpgradeRequest,
 *   readUpgradeResponse,
 * } from "@wsframe/wsframe/connection";
 * import { assertEquals } from "@std/assert";
 *
 * const offer = { protocols: ["chat"], deflate: true };
 * const { bytes, key } = createUpgradeRequest({ host: "a.example", ...offer });
 * const { request } = readUpgradeRequest(bytes)!;
 * const answer = await acceptUpgrade(request, { protocol: "chat", deflate: true });
 * const opened = await readUpgradeResponse(answer.bytes, { key, ...offer });
 * assertEquals(opened?.protocol, "chat");
 * assertEquals(opened?.deflate, answer.deflate);
 * ```
 */
export async function readUpgradeResponse(
  bytes: Uint8Array,
  sent: SentRequest,
): Promise<(Upgrade & { bytesRead: number; headers: Headers }) | undefined> {
  checkBytes(bytes, "bytes");
  checkOptions(sent, "sent");
  const { key, protocols = [] } = sent;
  if (typeof key !== "string") {
    throw new TypeError(`Expected 'key' to be a string, got ${shown(key)}`);
  }
  if (!isKey(key)) {
    throw new RangeError(
      `Expected 'key' to be the base64 of 16 bytes, got ${shown(key)}`,
    );
  }
  checkProtocols(protocols);
  const offered = deflateParameters(sent.deflate);

  const head = readFinalHead(bytes);
  if (head === undefined) return undefined;
  const { line, headers, status, bytesRead } = head;
  if (status !== 101) {
    throw new HandshakeError(
      status,
      `The server answered ${line.slice(9)}`,
      headers,
    );
  }
  if (listOf(headers.get("upgrade")).join().toLowerCase() !== "websocket") {
    throw new HandshakeError(502, "The server did not upgrade to WebSocket");
  }
  if (!hasToken(headers.get("connection"), "upgrade")) {
    throw new HandshakeError(
      502,
      "The Connection header does not name Upgrade",
    );
  }
  if (headers.get("sec-websocket-accept") !== await acceptKey(key)) {
    throw new HandshakeError(
      502,
      "Sec-WebSocket-Accept does not answer the key",
    );
  }
  const protocol = headers.get("sec-websocket-protocol");
  if (protocol !== null && !protocols.includes(protocol)) {
    throw new HandshakeError(
      502,
      "The server chose a subprotocol that was not offered",
    );
  }
  const deflate = readDeflateAnswer(
    headers.get("sec-websocket-extensions"),
    offered,
  );
  return { bytesRead, protocol, deflate, headers };
}

/** What fits and how faults are named at a client. */
const RULES: HeadRules = {
  malformed: 502,
  tooLarge: 502,
  maxHeaderBytes: MAX_HEADER_BYTES,
  maxHeaders: MAX_HEADERS,
  checkLine: checkStatusLine,
};

/** Reads the head of the final response behind the interim ones (RFC 9110 section 15.2). */
function readFinalHead(
  bytes: Uint8Array,
): (Head & { status: number; bytesRead: number }) | undefined {
  let start = 0;
  for (let interim = 0; interim <= MAX_INTERIM; interim++) {
    const bytesRead = findHead(bytes, RULES, start);
    if (bytesRead === undefined) return undefined;
    const status = Number(latin1(bytes, start + 9, start + 12));
    if (status >= 200 || status === 101) {
      return { ...parseHead(bytes, start, bytesRead), status, bytesRead };
    }
    start = bytesRead;
  }
  throw new HandshakeError(
    502,
    `There are more than ${MAX_INTERIM} interim responses`,
  );
}

/** RFC 9112 section 4. A server of HTTP/1.0 can refuse, and cannot upgrade. */
function checkStatusLine(
  bytes: Uint8Array,
  start: number,
  stop: number,
): void {
  const line = latin1(bytes, start, Math.min(stop, start + 13));
  if (!/^HTTP\/1\.(?:[1-9]|0(?! 101)) [1-5]\d\d(?: |$)/.test(line)) {
    throw new HandshakeError(502, "The status line is not one of HTTP/1.1");
  }
}

/** RFC 6455 section 4.1: tokens, none of them twice. */
function checkProtocols(protocols: string[]): void {
  if (!Array.isArray(protocols)) {
    throw new TypeError(
      `Expected 'protocols' to be an array, got ${shown(protocols)}`,
    );
  }
  for (const protocol of protocols) checkProtocol(protocol);
  if (new Set(protocols).size !== protocols.length) {
    throw new RangeError(
      `Expected 'protocols' to differ from each other, got ${
        shown(protocols.join(", "))
      }`,
    );
  }
}
