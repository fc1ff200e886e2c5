/**
 * Negotiation of permessage-deflate (RFC 7692 section 7.1) on both sides.
 *
 * @module
 */

import { checkFlag, checkOptions, checkRange, shown } from "../check.ts";
import { HandshakeError, isToken, listOf, trimBlanks } from "./http.ts";

/** The name under which the extension is offered and accepted. */
const NAME = "permessage-deflate";

const MIN_WINDOW_BITS = 8;
const MAX_WINDOW_BITS = 15;

/** What both ends agreed on about compression (RFC 7692 section 7.1). */
export interface DeflateParameters {
  /** The server compresses each message by itself. */
  serverNoContextTakeover: boolean;
  /** The client compresses each message by itself. */
  clientNoContextTakeover: boolean;
  /** The base-2 logarithm of the server's window in bytes, 8 to 15. */
  serverMaxWindowBits: number;
  /** The base-2 logarithm of the client's window in bytes, 8 to 15. */
  clientMaxWindowBits: number;
}

/**
 * Checks what one end wants: nothing (false or absent), the defaults (true), or these
 * parameters, of which absent ones become false and 15. Null: no compression wanted.
 */
export function deflateParameters(
  option: boolean | Partial<DeflateParameters> | null | undefined,
): DeflateParameters | null {
  if (option === undefined || option === null || option === false) return null;
  if (option !== true) checkOptions(option, "deflate");
  const wanted: Partial<DeflateParameters> = option === true ? {} : option;
  const flag = (name: keyof DeflateParameters) =>
    checkFlag(wanted[name], name, false);
  const bits = (name: keyof DeflateParameters) => {
    const { [name]: value = MAX_WINDOW_BITS } = wanted;
    return checkRange(value, name, MIN_WINDOW_BITS, MAX_WINDOW_BITS);
  };
  return {
    serverNoContextTakeover: flag("serverNoContextTakeover"),
    clientNoContextTakeover: flag("clientNoContextTakeover"),
    serverMaxWindowBits: bits("serverMaxWindowBits"),
    clientMaxWindowBits: bits("clientMaxWindowBits"),
  };
}

/**
 * The offer of a client. `client_max_window_bits` always stands in it: without it the
 * server could not ask for a smaller window (RFC 7692 section 7.1.2.2).
 */
export function writeDeflateOffer(wanted: DeflateParameters): string {
  let offer = writeDeflate(wanted, wanted.serverMaxWindowBits < 15, false);
  offer += "; client_max_window_bits";
  if (wanted.clientMaxWindowBits < 15) {
    offer += `=${wanted.clientMaxWindowBits}`;
  }
  return offer;
}

/**
 * Chooses among the offers of a client: the first whose parameters are all valid and
 * can be met. Null: all are declined.
 */
export function acceptDeflate(
  header: string | null,
  wanted: DeflateParameters | null,
): { parameters: DeflateParameters; answer: string } | null {
  for (const extension of parseExtensions(header, 400)) {
    if (wanted === null || extension.name !== NAME) continue;
    const offer = readParameters(extension, false);
    if (offer === null) continue;
    // A client that does not know the parameter must not be sent it, and keeps its 32 KiB.
    if (offer.clientBits === null && wanted.clientMaxWindowBits < 15) continue;
    const parameters = {
      serverNoContextTakeover: offer.serverNoContext ||
        wanted.serverNoContextTakeover,
      clientNoContextTakeover: offer.clientNoContext ||
        wanted.clientNoContextTakeover,
      serverMaxWindowBits: Math.min(
        offer.serverBits ?? 15,
        wanted.serverMaxWindowBits,
      ),
      clientMaxWindowBits: Math.min(
        offer.clientBits ?? 15,
        wanted.clientMaxWindowBits,
      ),
    };
    const answer = writeDeflate(
      parameters,
      offer.serverBits !== null || parameters.serverMaxWindowBits < 15,
      parameters.clientMaxWindowBits < 15,
    );
    return { parameters, answer };
  }
  return null;
}

/** Judges a server's answer to {@linkcode writeDeflateOffer} (RFC 7692 section 7.1). */
export function readDeflateAnswer(
  header: string | null,
  offered: DeflateParameters | null,
): DeflateParameters | null {
  const extensions = parseExtensions(header, 502);
  if (extensions.length === 0) return null;
  const answer =
    offered !== null && extensions.length === 1 && extensions[0]!.name === NAME
      ? readParameters(extensions[0]!, true)
      : null;
  if (
    offered === null || answer === null ||
    (offered.serverNoContextTakeover && !answer.serverNoContext) ||
    (answer.serverBits ?? 15) > offered.serverMaxWindowBits ||
    (answer.clientBits ?? 0) > offered.clientMaxWindowBits
  ) {
    throw new HandshakeError(
      502,
      "The server chose extensions that were not offered",
    );
  }
  return {
    serverNoContextTakeover: answer.serverNoContext,
    clientNoContextTakeover: answer.clientNoContext ||
      offered.clientNoContextTakeover,
    serverMaxWindowBits: answer.serverBits ?? 15,
    clientMaxWindowBits: answer.clientBits ?? offered.clientMaxWindowBits,
  };
}

function writeDeflate(
  p: DeflateParameters,
  serverBits: boolean,
  clientBits: boolean,
): string {
  return NAME +
    (p.serverNoContextTakeover ? "; server_no_context_takeover" : "") +
    (p.clientNoContextTakeover ? "; client_no_context_takeover" : "") +
    (serverBits ? `; server_max_window_bits=${p.serverMaxWindowBits}` : "") +
    (clientBits ? `; client_max_window_bits=${p.clientMaxWindowBits}` : "");
}

interface Extension {
  name: string;
  /** The value is null where the parameter has none. */
  parameters: [name: string, value: string | null][];
}

/** What one permessage-deflate of a header says; null bits: the parameter is absent. */
interface Parameters {
  serverNoContext: boolean;
  clientNoContext: boolean;
  serverBits: number | null;
  clientBits: number | null;
}

/** Null: a parameter is unknown, twice there, or has a value that it may not have. */
function readParameters(
  extension: Extension,
  isAnswer: boolean,
): Parameters | null {
  const result: Parameters = {
    serverNoContext: false,
    clientNoContext: false,
    serverBits: null,
    clientBits: null,
  };
  const seen = new Set<string>();
  for (const [name, value] of extension.parameters) {
    if (seen.has(name)) return null;
    seen.add(name);
    const bits = value !== null && /^([89]|1[0-5])$/.test(value)
      ? Number(value)
      : null;
    if (name === "server_no_context_takeover" && value === null) {
      result.serverNoContext = true;
    } else if (name === "client_no_context_takeover" && value === null) {
      result.clientNoContext = true;
    } else if (name === "server_max_window_bits" && bits !== null) {
      result.serverBits = bits;
    } else if (name === "client_max_window_bits" && bits !== null) {
      result.clientBits = bits;
    } else if (
      name === "client_max_window_bits" && value === null && !isAnswer
    ) {
      result.clientBits = 15;
    } else {
      return null;
    }
  }
  return result;
}

/**
 * Reads `Sec-WebSocket-Extensions` (RFC 6455 section 9.1). A value that does not follow
 * the grammar fails the handshake. What stands in quotes must be a token too, without
 * commas and semicolons, so the header may be cut at each of them.
 */
function parseExtensions(header: string | null, status: number): Extension[] {
  const token = (text: string): string => {
    if (isToken(text)) return text;
    throw new HandshakeError(
      status,
      `Sec-WebSocket-Extensions has ${shown(text)} where a token must be`,
    );
  };
  return listOf(header).map((element) => {
    const [name, ...parameters] = element.split(";").map(trimBlanks);
    return {
      name: token(name!),
      parameters: parameters.map((parameter) => {
        const equals = parameter.indexOf("=");
        if (equals < 0) return [token(parameter), null];
        const value = trimBlanks(parameter.slice(equals + 1));
        return [
          token(trimBlanks(parameter.slice(0, equals))),
          token(unquote(value)),
        ];
      }),
    };
  });
}

/** The text of a quoted-string (RFC 9110 section 5.6.4), or of what is none. */
function unquote(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"')
    ? text.slice(1, -1).replace(/\\(.)/g, "$1")
    : text;
}
