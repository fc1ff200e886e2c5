/**
 * The opening handshake, RFC 6455 section 4, both sides, and the negotiation of
 * permessage-deflate, RFC 7692 section 7.1.
 */

import { describe, it } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import fc from "fast-check";
import {
  acceptKey,
  acceptUpgrade,
  createUpgradeRequest,
  type DeflateParameters,
  HandshakeError,
  readUpgradeRequest,
  readUpgradeResponse,
  rejectUpgrade,
} from "@wsframe/wsframe/connection";
import type {
  AcceptOptions,
  UpgradeRequestInit,
} from "@wsframe/wsframe/connection";
import { concat } from "./vectors.ts";

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/** Latin-1, so that a test can name any byte. */
function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function text(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

const FIELDS: Record<string, string> = {
  Host: "server.example.com",
  Upgrade: "websocket",
  Connection: "Upgrade",
  "Sec-WebSocket-Key": KEY,
  "Sec-WebSocket-Version": "13",
};

/** The request of RFC 6455 section 1.3, changed; null takes a header away. */
function request(
  changes: Record<string, string | null> = {},
  line = "GET /chat HTTP/1.1",
): string {
  const fields = Object.entries({ ...FIELDS, ...changes })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${fields.join("")}\r\n`;
}

/** What a server says about a request: its response, or the status it refuses with. */
async function judge(
  head: string,
  options?: Parameters<typeof acceptUpgrade>[1],
) {
  const read = readUpgradeRequest(bytes(head));
  assert(read, "The request is complete");
  return await acceptUpgrade(read.request, options);
}

async function statusOf(run: () => unknown): Promise<number> {
  const error = await assertRejects(async () => await run(), HandshakeError);
  return error.status;
}

const RESPONSE: Record<string, string> = {
  Upgrade: "websocket",
  Connection: "Upgrade",
  "Sec-WebSocket-Accept": ACCEPT,
};

function response(
  changes: Record<string, string | null> = {},
  line = "HTTP/1.1 101 Switching Protocols",
): string {
  const fields = Object.entries({ ...RESPONSE, ...changes })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${fields.join("")}\r\n`;
}

describe("acceptKey", () => {
  it("answers the key of RFC 6455 section 1.3", async () => {
    assertEquals(await acceptKey(KEY), ACCEPT);
  });
  it("refuses what is not a string", async () => {
    await assertRejects(() => acceptKey(1 as unknown as string), TypeError);
  });
});

describe("readUpgradeRequest", () => {
  it("reads the request of RFC 6455 section 1.3", () => {
    const head = request({
      Origin: "http://example.com",
      "Sec-WebSocket-Protocol": "chat, superchat",
    });
    const result = readUpgradeRequest(bytes(head));
    assertEquals(result?.request.method, "GET");
    assertEquals(result?.request.path, "/chat");
    assertEquals(result?.request.headers.get("origin"), "http://example.com");
    assertEquals(result?.bytesRead, head.length);
  });

  it("waits for each prefix of it, and leaves what follows alone", () => {
    const head = bytes(request());
    for (let length = 0; length < head.length; length++) {
      assertEquals(readUpgradeRequest(head.subarray(0, length)), undefined);
    }
    const read = readUpgradeRequest(concat([head, bytes("\x81\x00\r\n\r\n")]));
    assertEquals(read?.bytesRead, head.length);
  });

  it("reads other requests too: what they ask for is not judged here", () => {
    const read = readUpgradeRequest(
      bytes("POST /form?a=b HTTP/1.1\r\nHost:a\r\n\r\n"),
    );
    assertEquals(read?.request.method, "POST");
    assertEquals(read?.request.path, "/form?a=b");
  });

  it("takes blanks around values, no value, and names in any case", () => {
    const read = readUpgradeRequest(
      bytes(
        "GET / HTTP/1.1\r\nhOST: \t a \t\r\nX-Empty:\r\nX-EMPTY: b\r\n\r\n",
      ),
    );
    assertEquals(read?.request.headers.get("host"), "a");
    assertEquals(read?.request.headers.get("x-empty"), ", b");
  });

  it("takes names, addresses and ports as Host, and none", () => {
    for (
      const host of [
        "a",
        "a_b.example:8080",
        "127.0.0.1:",
        "[::1]:80",
        "[fe80::1%25en0]",
        "[v1.a:b]",
        "%c3%a4",
        "",
      ]
    ) {
      const read = readUpgradeRequest(bytes(request({ Host: host })));
      assertEquals(read?.request.headers.get("host"), host);
    }
  });

  it("passes over an empty line before the request", () => {
    const head = bytes("\r\n" + request());
    for (let length = 0; length < head.length; length++) {
      assertEquals(readUpgradeRequest(head.subarray(0, length)), undefined);
    }
    const read = readUpgradeRequest(head);
    assertEquals(read?.bytesRead, head.length);
    assertEquals(read?.request.path, "/chat");
  });

  it("makes no strings of an incomplete head, which may come byte by byte", () => {
    const line = `GET /${"p".repeat(5000)} HTTP/1.1`;
    const head = bytes(request({ ["N".repeat(5000)]: "a" }, line)).slice(0, -1);
    let characters = 0;
    const make = spy(String, "fromCharCode");
    try {
      assertEquals(readUpgradeRequest(head), undefined);
    } finally {
      make.restore();
    }
    for (const { args } of make.calls) characters += args.length;
    assert(characters < 50, `${characters} characters made`);
  });

  for (const target of ["*", "http://a.example/b", "HTTPS://a/?b", "/%20?*"]) {
    it(`reads the target ${target}`, () => {
      const read = readUpgradeRequest(
        bytes(request({}, `OPTIONS ${target} HTTP/1.1`)),
      );
      assertEquals(read?.request.path, target);
    });
  }

  for (
    const target of ["*", "http://", "https:///a", "http://:80/", "http://?"]
  ) {
    it(`refuses to get the target ${target}`, () => {
      const head = bytes(request({}, `GET ${target} HTTP/1.1`));
      assertThrows(() => readUpgradeRequest(head), HandshakeError, "malformed");
    });
  }

  it("takes bytes from 0x80 on in a value as Latin-1", () => {
    const read = readUpgradeRequest(bytes(request({ Cookie: "a=\xe4\xff" })));
    assertEquals(read?.request.headers.get("cookie"), "a=\xe4\xff");
  });

  for (
    const [name, head] of [
      ["two empty lines first", "\r\n\r\n"],
      ["half an empty line first", "\rG"],
      ["two spaces after the method", "GET  / HTTP/1.1\r\n"],
      ["a space at the end of the line", "GET / HTTP/1.1 \r\n"],
      ["no version", "GET /\r\n"],
      ["no target", "GET  HTTP/1.1\r\n"],
      ["a tab for a space", "GET\t/\tHTTP/1.1\r\n"],
      ["a method that is no token", "G(T / HTTP/1.1\r\n"],
      ["a version in lower case", "GET / http/1.1\r\n"],
      ["a version without a minor", "GET / HTTP/1\r\n"],
      ["a relative target", "GET chat HTTP/1.1\r\n"],
      ["a fragment", "GET /#a HTTP/1.1\r\n"],
      ["NUL in the line", "GET /\0"],
      ["non-ASCII in the line", "GET /\xe4 HTTP/1.1\r\n"],
      ["DEL in the line", "GET /\x7f"],
      ["LF without CR", "GET / HTTP/1.1\n"],
      ["CR without LF", "GET / HTTP/1.1\rH"],
      ["CR inside a value", "GET / HTTP/1.1\r\nHost: a\rb"],
      ["LF inside a value", "GET / HTTP/1.1\r\nHost: a\nb"],
      ["NUL in a value", "GET / HTTP/1.1\r\nHost: a\0"],
      ["NUL in a name", "GET / HTTP/1.1\r\nHo\0"],
      ["non-ASCII in a name", "GET / HTTP/1.1\r\nH\xf6st: a\r\n"],
      ["a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n"],
      ["a header without a colon", "GET / HTTP/1.1\r\nHost\r\n"],
      ["a header without a name", "GET / HTTP/1.1\r\n: a\r\n"],
      ["a folded line", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n"],
      ["a folded line with a colon", "GET / HTTP/1.1\r\nHost: a\r\n\tb: c\r\n"],
      ["no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n"],
      ["two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"],
      ["two empty Hosts", "GET / HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n"],
      ["a target that begins with *", "GET *a HTTP/1.1\r\n"],
      ["a line that goes on", "GET / HTTP/1.1 HTTP/1.1\r\n"],
      ["no method", " / HTTP/1.1\r\n"],
      ["a method alone", "GET\r\n"],
      ...[
        "a b",
        "a/b",
        "a?b",
        "a#b",
        "a@b",
        "a\\b",
        "a,b",
        "a\tb",
        "\xe4",
        "a:b",
        "a:1:2",
        "::1",
        "[::1",
        "[]",
        ":80",
      ].map((host) => [
        `the Host ${JSON.stringify(host)}`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      ]),
      ["a TLS hello", "\x16\x03\x01"],
    ]
  ) {
    it(`refuses ${name} with 400`, async () => {
      assertEquals(await statusOf(() => readUpgradeRequest(bytes(head))), 400);
    });
  }

  for (const version of ["1.0", "0.9", "2.0", "3.0"]) {
    it(`refuses HTTP/${version} with 505, on the line alone`, async () => {
      const line = bytes(`GET / HTTP/${version}\r\n`);
      assertEquals(await statusOf(() => readUpgradeRequest(line)), 505);
    });
  }

  it("refuses a head over 16 KiB as soon as that shows", async () => {
    const start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    const fits = start + "x".repeat(16384 - 4 - start.length) + "\r\n\r\n";
    assertEquals(readUpgradeRequest(bytes(fits))?.bytesRead, 16384);
    const long = start + "x".repeat(16384 - start.length);
    assertEquals(readUpgradeRequest(bytes(long.slice(0, 16383))), undefined);
    assertEquals(await statusOf(() => readUpgradeRequest(bytes(long))), 431);
  });

  it("refuses more than 100 headers as soon as that shows", async () => {
    const hundred = "GET / HTTP/1.1\r\nHost: a\r\n" + "X: y\r\n".repeat(99);
    const read = readUpgradeRequest(bytes(hundred + "\r\n"));
    assertEquals(read?.bytesRead, hundred.length + 2);
    assertEquals(readUpgradeRequest(bytes(hundred + "\r")), undefined);
    const more = bytes(hundred + "X");
    assertEquals(await statusOf(() => readUpgradeRequest(more)), 431);
  });

  it("keeps to limits of the caller's", async () => {
    const head = bytes(request());
    const limits = { maxHeaderBytes: head.length, maxHeaders: 5 };
    assertEquals(readUpgradeRequest(head, limits)?.bytesRead, head.length);
    for (
      const smaller of [
        { maxHeaderBytes: head.length - 1 },
        { maxHeaders: 4 },
        { maxHeaders: 0 },
        { maxHeaderBytes: 0 },
      ]
    ) {
      assertEquals(
        await statusOf(() => readUpgradeRequest(head, smaller)),
        431,
      );
    }
    assertThrows(
      () => readUpgradeRequest(head, { maxHeaders: -1 }),
      RangeError,
    );
    assertThrows(
      () => readUpgradeRequest(head, { maxHeaderBytes: "1" as never }),
      TypeError,
    );
  });

  it("looks at no more than the limit of a 10 MB header", async () => {
    const huge = new Uint8Array(10_000_000).fill(0x78);
    huge.set(bytes("GET / HTTP/1.1\r\nHost: a\r\nX: "));
    // What lies behind the limit is never read: it would be a fault.
    huge.fill(0, 16384);
    assertEquals(await statusOf(() => readUpgradeRequest(huge)), 431);
  });

  it("refuses 100 000 headers", async () => {
    const many = bytes(
      "GET / HTTP/1.1\r\nHost: a\r\n" + "X: y\r\n".repeat(100_000) + "\r\n",
    );
    assertEquals(await statusOf(() => readUpgradeRequest(many)), 431);
    const limits = { maxHeaderBytes: many.length, maxHeaders: 100_001 };
    assertEquals(readUpgradeRequest(many, limits)?.bytesRead, many.length);
  });

  it("refuses what is not bytes", () => {
    assertThrows(() => readUpgradeRequest("GET" as never), TypeError);
  });

  it("says the same for every prefix and any bytes, and throws nothing else", () => {
    const pieces = fc.constantFrom(
      "GET / HTTP/1.1",
      "\r\n",
      "\r",
      "\n",
      "Host: a",
      "X",
      ":",
      " ",
      "\0",
      "\xff",
    );
    const outcome = (input: Uint8Array): string => {
      try {
        const read = readUpgradeRequest(input, {
          maxHeaderBytes: 60,
          maxHeaders: 3,
        });
        return read === undefined ? "more" : `read ${read.bytesRead}`;
      } catch (error) {
        if (!(error instanceof HandshakeError)) throw error;
        return `refused ${error.status}`;
      }
    };
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
        const input = bytes(parts.join(""));
        let decided = "more";
        for (let length = 0; length <= input.length; length++) {
          const now = outcome(input.subarray(0, length));
          if (decided !== "more") assertEquals(now, decided);
          decided = now;
        }
      }),
    );
  });
});

describe("acceptUpgrade", () => {
  it("answers the request of RFC 6455 section 1.3", async () => {
    const answer = await judge(
      request({ "Sec-WebSocket-Protocol": "chat, superchat" }),
      { protocol: "chat" },
    );
    assertEquals(
      text(answer.bytes),
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n" +
        `Connection: Upgrade\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n` +
        "Sec-WebSocket-Protocol: chat\r\n\r\n",
    );
    assertEquals(answer.protocol, "chat");
    assertEquals(answer.deflate, null);
  });

  it("takes tokens in any case and among others", async () => {
    await judge(
      request({
        Upgrade: "h2c,\tWebSocket",
        Connection: "keep-alive , UPGRADE",
      }),
    );
    // Several Connection headers.
    await judge(
      request({ Connection: null }).replace(
        "\r\n\r\n",
        "\r\nConnection: keep-alive\r\nconnection: upgrade\r\n\r\n",
      ),
    );
  });

  it("passes over empty elements of lists", async () => {
    const answer = await judge(
      request({
        Upgrade: ",websocket, ",
        Connection: ", upgrade",
        "Sec-WebSocket-Protocol": "chat,, ,\t",
        "Sec-WebSocket-Extensions": ", ,permessage-deflate,",
      }),
      { protocol: "chat", deflate: true },
    );
    assertEquals(answer.protocol, "chat");
    assert(answer.deflate);
    for (const deflate of [true, false]) {
      const none = await judge(
        request({
          "Sec-WebSocket-Protocol": "",
          "Sec-WebSocket-Extensions": "",
        }),
        { protocol: "chat", deflate },
      );
      assertEquals([none.protocol, none.deflate], [null, null]);
    }
  });

  it("takes an extension's value of any length", async () => {
    for (const value of ["x".repeat(10_000_000), "\\x".repeat(5_000_000)]) {
      const answer = await acceptUpgrade({
        method: "GET",
        headers: { ...FIELDS, "Sec-WebSocket-Extensions": `a; b="${value}"` },
      }, { deflate: true });
      assertEquals(answer.deflate, null);
    }
  });

  for (
    const [name, status, changes] of [
      ["no Upgrade", 426, { Upgrade: null }],
      ["another Upgrade", 426, { Upgrade: "websockets" }],
      ["a no-break space in Upgrade", 426, { Upgrade: "a,\xa0websocket" }],
      ["no Connection", 400, { Connection: null }],
      ["another Connection", 400, { Connection: "upgrades" }],
      ["version 8", 426, { "Sec-WebSocket-Version": "8" }],
      ["version 013", 426, { "Sec-WebSocket-Version": "013" }],
      ["version 13, 13", 426, { "Sec-WebSocket-Version": "13, 13" }],
      ["no version", 400, { "Sec-WebSocket-Version": null }],
      ["no key", 400, { "Sec-WebSocket-Key": null }],
      ["an empty key", 400, { "Sec-WebSocket-Key": "" }],
      ["a key of 15 bytes", 400, {
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25j",
      }],
      ["a key of 17 bytes", 400, {
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQA=",
      }],
      ["a key in base64url", 400, {
        "Sec-WebSocket-Key": "_-hlIHNhbXBsZSBub25jZQ==",
      }],
      ["two keys", 400, { "Sec-WebSocket-Key": `${KEY}, ${KEY}` }],
      ["a body", 400, { "Content-Length": "5" }],
      ["a chunked body", 400, { "Transfer-Encoding": "chunked" }],
      ["a protocol that is no token", 400, { "Sec-WebSocket-Protocol": "a b" }],
      ["a protocol twice", 400, { "Sec-WebSocket-Protocol": "a, b, a" }],
      ["extensions that end too early", 400, {
        "Sec-WebSocket-Extensions": "a;",
      }],
      ["extensions with an open quote", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c',
      }],
      ["extensions with a quoted blank", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c d"',
      }],
      ["an extension with a value", 400, { "Sec-WebSocket-Extensions": "a=b" }],
      ["extensions without commas", 400, { "Sec-WebSocket-Extensions": "a b" }],
      ["an extension that is not one", 400, {
        "Sec-WebSocket-Extensions": ", ;a",
      }],
      ["extensions with a quoted comma", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c,d"',
      }],
      ["extensions with a quoted semicolon", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c;d=e"',
      }],
      ["extensions with a quoted quote", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c\\""',
      }],
      ["extensions with nothing in quotes", 400, {
        "Sec-WebSocket-Extensions": 'a; b=""',
      }],
      ["extensions with an escaped end quote", 400, {
        "Sec-WebSocket-Extensions": 'a; b="c\\"',
      }],
      ["extensions with one quote", 400, {
        "Sec-WebSocket-Extensions": 'a; b="',
      }],
    ] as [string, number, Record<string, string | null>][]
  ) {
    it(`refuses ${name} with ${status}`, async () => {
      assertEquals(await statusOf(() => judge(request(changes))), status);
    });
  }

  it("refuses another method with 405", async () => {
    for (const method of ["POST", "get", "HEAD", "CONNECT"]) {
      const head = request({}, `${method} / HTTP/1.1`);
      assertEquals(await statusOf(() => judge(head)), 405);
    }
  });

  it("leaves out a subprotocol that was not offered", async () => {
    const none = await judge(request(), { protocol: "chat" });
    assertEquals(none.protocol, null);
    const other = await judge(
      request({ "Sec-WebSocket-Protocol": "Chat" }),
      { protocol: "chat" },
    );
    assertEquals(other.protocol, null);
    assert(!text(other.bytes).includes("Sec-WebSocket-Protocol"));
  });

  it("finds a subprotocol in a second header", async () => {
    const head = request().replace(
      "\r\n\r\n",
      "\r\nSec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n\r\n",
    );
    assertEquals((await judge(head, { protocol: "b" })).protocol, "b");
  });

  it("adds headers of the caller's", async () => {
    const { bytes } = await judge(request(), {
      headers: { "Set-Cookie": "a=\xe4" },
    });
    assert(text(bytes).endsWith("\r\nSet-Cookie: a=\xe4\r\n\r\n"));
  });

  it("lets nothing be injected", async () => {
    for (
      const options of [
        { headers: { A: "b\r\nC: d" } },
        { headers: { A: "b\nC: d" } },
        { headers: { A: "b\0" } },
        { headers: { A: "\u0100" } },
        { headers: { "A\r\nB": "c" } },
        { headers: { "A B": "c" } },
        { headers: { "": "c" } },
        { headers: { upgrade: "h2c" } },
        { headers: { "SEC-WebSocket-Accept": ACCEPT } },
        { headers: { "Content-Length": "1" } },
        { protocol: "a\r\nB: c" },
        { protocol: "" },
        { deflate: { serverMaxWindowBits: 16 } },
        { deflate: { clientMaxWindowBits: 7 } },
      ] as AcceptOptions[]
    ) {
      await assertRejects(() => judge(request(), options), RangeError);
    }
    for (
      const options of [
        { headers: { A: 1 } },
        { headers: new Headers({ A: "b" }) }, // without names of its own
        { protocol: 1 },
        { deflate: "yes" },
        { deflate: { serverMaxWindowBits: "9" } },
        { deflate: { serverNoContextTakeover: 1 } },
      ]
    ) {
      await assertRejects(() => judge(request(), options as never), TypeError);
    }
  });

  it("takes a Fetch request", async () => {
    const { Host: _, ...headers } = FIELDS;
    const answer = await acceptUpgrade({
      method: "GET",
      url: "http://a/chat",
      headers: new Headers({ ...headers, "Sec-WebSocket-Protocol": "chat" }),
    }, { protocol: "chat" });
    assertEquals(answer.protocol, "chat");
    const plain = new Request("http://a/chat");
    assertEquals(await statusOf(() => acceptUpgrade(plain)), 426);
  });

  it("takes a request of Node's", async () => {
    const answer = await acceptUpgrade({
      method: "GET",
      url: "/chat",
      httpVersion: "1.1",
      headers: {
        upgrade: "websocket",
        Connection: "keep-alive, Upgrade",
        "sec-websocket-key": KEY,
        "sec-websocket-version": "13",
        "sec-websocket-protocol": ["a", "b"],
        "x-absent": undefined,
      },
    }, { protocol: "b" });
    assertEquals(answer.protocol, "b");
    const old = { method: "GET", httpVersion: "1.0", headers: {} };
    assertEquals(await statusOf(() => acceptUpgrade(old)), 505);
  });

  it("takes headers of any form, from names in lower case to values", async () => {
    const fields = Object.entries(FIELDS).map(([name, value]) =>
      [name.toLowerCase(), value] as [string, unknown]
    );
    const more = { "sec-websocket-version": 13, "x-absent": null };
    const protocols = { "sec-websocket-protocol": ["a", "b"] };
    const all = [...fields, ...Object.entries({ ...more, ...protocols })];
    for (const headers of [new Map(all), Object.fromEntries(all)]) {
      const request = { method: "GET", headers } as never;
      const { protocol } = await acceptUpgrade(request, { protocol: "b" });
      assertEquals(protocol, "b");
    }
  });

  it("refuses what is not a request", async () => {
    const headers = { ...FIELDS };
    for (
      const [request, message] of [
        [null, "'request' to be an object with headers, got null"],
        [{}, "'request' to be an object with headers, got an instance"],
        ["GET / HTTP/1.1", "'request' to be an object with headers"],
        [{ method: "GET", headers: [["upgrade", "websocket"]] }, "'headers'"],
        [
          { method: "GET", headers: { ...headers, Upgrade: {} } },
          "the header 'Upgrade' to be a string, got an instance of Object",
        ],
        [
          { method: "GET", headers: new Map([["upgrade", Symbol()]]) },
          "the header 'upgrade' to be a string, got a symbol",
        ],
      ] as [never, string][]
    ) {
      await assertRejects(() => acceptUpgrade(request), TypeError, message);
    }
    for (
      const [request, status] of [
        [{ method: "GET", headers: new Map() }, 426],
        [{ method: "GET", headers: {} }, 426],
        [{ headers }, 405],
        [{ method: 1, headers }, 405],
        [{ method: "GET", headers, httpVersion: 2 }, 505],
        [{ method: "GET", headers, httpVersion: null }, 505],
      ] as [never, number][]
    ) {
      assertEquals(await statusOf(() => acceptUpgrade(request)), status);
    }
  });
});

describe("rejectUpgrade", () => {
  it("writes a response that ends the connection", () => {
    assertEquals(
      text(rejectUpgrade(404)),
      "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    );
    assertEquals(text(rejectUpgrade(499)).split("\r\n")[0], "HTTP/1.1 499 ");
  });

  it("counts the body in bytes", () => {
    assertEquals(
      text(rejectUpgrade(401, { "content-type": "text/html" }, "\u20ac")),
      "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 3\r\n" +
        "content-type: text/html\r\n\r\n\xe2\x82\xac",
    );
  });

  it("has no body with 304, nor its length", () => {
    assertEquals(
      text(rejectUpgrade(304, { ETag: '"a"' })),
      'HTTP/1.1 304 \r\nConnection: close\r\nETag: "a"\r\n\r\n',
    );
    assertThrows(
      () => rejectUpgrade(304, {}, "x"),
      RangeError,
      "Expected 'body' to be empty with status 304, got \"x\"",
    );
  });

  it("names the version with 426 and the method with 405", () => {
    const fields = text(rejectUpgrade(426)).split("\r\n");
    assert(fields.includes("Sec-WebSocket-Version: 13"));
    assert(fields.includes("Upgrade: websocket"));
    assert(fields.includes("Connection: Upgrade, close"));
    assert(text(rejectUpgrade(405)).includes("\r\nAllow: GET\r\n"));
  });

  it("lets nothing be injected", () => {
    assertThrows(() => rejectUpgrade(400, { A: "b\r\n\r\n" }), RangeError);
    assertThrows(() => rejectUpgrade(400, { "A:": "b" }), RangeError);
    assertThrows(
      () => rejectUpgrade(400, { "content-length": "1" }),
      RangeError,
    );
    assertThrows(() => rejectUpgrade(101), RangeError);
    assertThrows(
      () => rejectUpgrade(600),
      RangeError,
      "Expected 'status' to be a whole number from 300 to 599, got 600",
    );
    assertThrows(() => rejectUpgrade(400.5), RangeError);
    assertThrows(() => rejectUpgrade("400" as never), TypeError);
    assertThrows(
      () => rejectUpgrade(undefined as never),
      TypeError,
      "Expected 'status' to be a number, got undefined",
    );
    assertThrows(() => rejectUpgrade(400, {}, 1 as never), TypeError);
    // A body cannot: it lies behind the head, and its length is counted.
    const bytes = text(rejectUpgrade(400, {}, "\r\n\r\nHTTP/1.1 101 A\r\n"));
    assert(bytes.includes("\r\nContent-Length: 20\r\n"));
  });
});

describe("createUpgradeRequest", () => {
  it("asks for what it was told to", () => {
    const { bytes, key } = createUpgradeRequest({
      host: "[::1]:8080",
      path: "/a?b=%20",
      origin: "https://a.example",
      protocols: ["v2", "v1"],
      headers: { Cookie: "a=b" },
      deflate: true,
    });
    assertEquals(
      text(bytes),
      "GET /a?b=%20 HTTP/1.1\r\nHost: [::1]:8080\r\nUpgrade: websocket\r\n" +
        `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\n` +
        "Sec-WebSocket-Version: 13\r\nOrigin: https://a.example\r\n" +
        "Sec-WebSocket-Protocol: v2, v1\r\nSec-WebSocket-Extensions: " +
        "permessage-deflate; client_max_window_bits\r\nCookie: a=b\r\n\r\n",
    );
  });

  it("makes a key of 16 random bytes each time", () => {
    const keys = Array.from(
      { length: 20 },
      () => createUpgradeRequest({ host: "a" }).key,
    );
    assertEquals(new Set(keys).size, 20);
    for (const key of keys) assertEquals(atob(key).length, 16);
  });

  it("lets nothing be injected", () => {
    const base = { host: "a" };
    for (
      const init of [
        { host: "" },
        { host: "a\r\nB: c" },
        { host: "a b" },
        { host: "a/b" },
        { host: "\xe4" },
        { host: "::1" },
        { host: ":80" },
        { ...base, path: "" },
        { ...base, path: "a" },
        { ...base, path: "/ HTTP/1.1\r\nA: b" },
        { ...base, path: "/\u20ac" },
        { ...base, path: "/#a" },
        { ...base, origin: "a\nb" },
        { ...base, origin: "" },
        { ...base, protocols: ["a\r\nB: c"] },
        { ...base, protocols: ["a,b"] },
        { ...base, protocols: [""] },
        { ...base, protocols: ["a", "a"] },
        { ...base, headers: { A: "b\r\n" } },
        { ...base, headers: { "Sec-WebSocket-Key": KEY } },
        { ...base, headers: { HOST: "b" } },
        { ...base, origin: "a", headers: { oRIGIN: "b" } },
      ] as UpgradeRequestInit[]
    ) {
      assertThrows(() => createUpgradeRequest(init), RangeError);
    }
    for (
      const init of [
        {},
        { ...base, path: 1 },
        { ...base, protocols: "a" },
        { ...base, protocols: [1] },
        { ...base, headers: { A: null } },
        { ...base, headers: new Map([["A", "b"]]) },
      ]
    ) {
      assertThrows(() => createUpgradeRequest(init as never), TypeError);
    }
  });

  it("says what was expected and what it got", () => {
    for (
      const [init, message] of [
        [{ host: "" }, 'a name or address, and a port if need be, got ""'],
        [{ host: "a", path: "x" }, 'begins with "/"'],
        [{ host: "a", path: "x" }, 'got "x"'],
        [
          { host: "a", origin: "a b" },
          'an origin in ASCII without blanks, got "a b"',
        ],
        [
          { host: "a", deflate: { serverMaxWindowBits: -1 } },
          "'serverMaxWindowBits' to be a whole number from 8 to 15, got -1",
        ],
      ] as [UpgradeRequestInit, string][]
    ) {
      assertThrows(() => createUpgradeRequest(init), RangeError, message);
    }
  });

  it("takes an Origin among the headers", () => {
    const { bytes } = createUpgradeRequest({
      host: "a",
      headers: { Origin: "b" },
    });
    assert(text(bytes).includes("\r\nOrigin: b\r\n"));
  });
});

describe("readUpgradeResponse", () => {
  const read = (head: string, sent = {}) =>
    readUpgradeResponse(bytes(head), { key: KEY, ...sent });

  it("reads the response of RFC 6455 section 1.3", async () => {
    const head = response({ "Sec-WebSocket-Protocol": "chat" });
    const opened = await read(head + "\x81\x00", {
      protocols: ["superchat", "chat"],
    });
    assertEquals(opened?.bytesRead, head.length);
    assertEquals(opened?.protocol, "chat");
    assertEquals(opened?.deflate, null);
    assertEquals(opened?.headers.get("upgrade"), "websocket");
  });

  it("waits for each prefix of it", async () => {
    const head = response();
    for (let length = 0; length < head.length; length++) {
      assertEquals(await read(head.slice(0, length)), undefined);
    }
  });

  it("passes over interim responses", async () => {
    const head = "HTTP/1.1 100 Continue\r\n\r\n" +
      "HTTP/1.1 103\r\nLink: </a>\r\nUpgrade: h2c\r\n\r\n" + response();
    for (let length = 0; length < head.length; length++) {
      assertEquals(await read(head.slice(0, length)), undefined);
    }
    const opened = await read(head + "\x81\x00");
    assertEquals(opened?.bytesRead, head.length);
    assertEquals(opened?.headers.get("link"), null);
    assertEquals(
      await statusOf(() =>
        read("HTTP/1.1 103 A\r\n\r\nHTTP/1.1 403 B\r\n\r\n")
      ),
      403,
    );
    const interim = "HTTP/1.1 100\r\n\r\n";
    assert(await read(interim.repeat(16) + response()));
    assertEquals(await read(interim.repeat(17).slice(0, -1)), undefined);
    assertEquals(await statusOf(() => read(interim.repeat(17))), 502);
    // The limit of bytes is one for all.
    const long = `HTTP/1.1 103\r\nLink: ${"a".repeat(8172)}\r\n\r\n`;
    assertEquals(await read((long + long).slice(0, 16383)), undefined);
    assertEquals(await statusOf(() => read(long + long)), 502);
  });

  it("passes over empty elements of lists", async () => {
    const opened = await read(
      response({
        Upgrade: ", WebSocket,",
        Connection: ",,upgrade",
        "Sec-WebSocket-Extensions": ",permessage-deflate, ,",
      }),
      { deflate: true },
    );
    assert(opened?.deflate);
    const none = await read(response({ "Sec-WebSocket-Extensions": "" }));
    assertEquals(none?.deflate, null);
  });

  it("takes tokens in any case, and no reason", async () => {
    assert(
      await read(
        response(
          { Upgrade: "WebSocket", Connection: "keep-alive, uPgrade" },
          "HTTP/1.1 101",
        ),
      ),
    );
  });

  for (
    const [name, changes] of [
      ["no Upgrade", { Upgrade: null }],
      ["another Upgrade", { Upgrade: "h2c" }],
      ["no Connection", { Connection: null }],
      ["no accept", { "Sec-WebSocket-Accept": null }],
      ["another accept", { "Sec-WebSocket-Accept": ACCEPT.toLowerCase() }],
      ["a protocol not asked for", { "Sec-WebSocket-Protocol": "chat" }],
      ["an extension not asked for", {
        "Sec-WebSocket-Extensions": "permessage-deflate",
      }],
      ["extensions that are malformed", { "Sec-WebSocket-Extensions": "=" }],
    ] as [string, Record<string, string | null>][]
  ) {
    it(`refuses ${name}`, async () => {
      assertEquals(await statusOf(() => read(response(changes))), 502);
    });
  }

  it("refuses a protocol that is not one of those offered", async () => {
    for (const chosen of ["c", "a, b", "A", ""]) {
      const head = response({ "Sec-WebSocket-Protocol": chosen });
      assertEquals(
        await statusOf(() => read(head, { protocols: ["a", "b"] })),
        502,
      );
    }
  });

  it("tells the status and the headers of a refusal", async () => {
    const head = bytes("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n");
    const error = await assertRejects(
      () => readUpgradeResponse(head, { key: KEY }),
      HandshakeError,
    );
    assertEquals(error.status, 302);
    assertEquals(error.headers?.get("location"), "/b");
    assertEquals(
      await statusOf(() => read("HTTP/1.0 501 Not Implemented\r\n\r\n")),
      501,
    );
    assertEquals(
      await statusOf(() =>
        readUpgradeResponse(rejectUpgrade(426), { key: KEY })
      ),
      426,
    );
  });

  it("refuses what is not HTTP/1.1, and heads that are too large", async () => {
    for (
      const head of [
        "HTTP/1.0 101 A\r\n",
        "HTTP/2 101 A\r\n",
        "HTTP/1.1 10 A\r\n",
        "HTTP/1.1 1010\r\n",
        "ICY 101 A\r\n",
        "\x15\x03",
        "HTTP/1.1 101 A\r\n" + "X: y\r\n".repeat(101),
        "HTTP/1.1 101 A\r\nX: " + "y".repeat(16384),
      ]
    ) {
      assertEquals(await statusOf(() => read(head)), 502);
    }
  });

  it("refuses wrong arguments", async () => {
    await assertRejects(() => read("", { key: "a" }), RangeError);
    await assertRejects(() => read("", { key: 1 }), TypeError);
    await assertRejects(() => read("", { protocols: ["a b"] }), RangeError);
    await assertRejects(
      () => readUpgradeResponse("" as never, { key: KEY }),
      TypeError,
    );
  });
});

describe("permessage-deflate, the server's choice", () => {
  const negotiate = async (
    offer: string,
    deflate: boolean | Partial<DeflateParameters> = true,
  ) => {
    const answer = await judge(
      request({ "Sec-WebSocket-Extensions": offer }),
      { deflate },
    );
    const line = text(answer.bytes).split("\r\n").find((field) =>
      field.startsWith("Sec-WebSocket-Extensions: ")
    );
    return { answer: line?.slice(26) ?? null, deflate: answer.deflate };
  };
  const PMD = "permessage-deflate";
  const snct = "server_no_context_takeover";
  const cnct = "client_no_context_takeover";
  const smwb = "server_max_window_bits";
  const cmwb = "client_max_window_bits";

  for (
    const [offer, deflate, answer] of [
      [PMD, true, PMD],
      [PMD, {}, PMD],
      [PMD, false, null],
      [`x-unknown, ${PMD}`, true, PMD],
      [`${PMD}; ${cmwb}`, true, PMD],
      [`${PMD}; ${cmwb}`, { clientMaxWindowBits: 9 }, `${PMD}; ${cmwb}=9`],
      [`${PMD}; ${cmwb}=10`, true, `${PMD}; ${cmwb}=10`],
      [`${PMD}; ${cmwb}=10`, { clientMaxWindowBits: 12 }, `${PMD}; ${cmwb}=10`],
      [`${PMD}; ${cmwb}=15`, { clientMaxWindowBits: 8 }, `${PMD}; ${cmwb}=8`],
      [PMD, { clientMaxWindowBits: 9 }, null],
      [`${PMD}; ${smwb}=10`, true, `${PMD}; ${smwb}=10`],
      [`${PMD}; ${smwb}=15`, true, `${PMD}; ${smwb}=15`],
      [`${PMD}; ${smwb}=8`, true, `${PMD}; ${smwb}=8`],
      [`${PMD}; ${smwb}=12`, { serverMaxWindowBits: 9 }, `${PMD}; ${smwb}=9`],
      [PMD, { serverMaxWindowBits: 9 }, `${PMD}; ${smwb}=9`],
      [`${PMD}; ${snct}`, true, `${PMD}; ${snct}`],
      [PMD, { serverNoContextTakeover: true }, `${PMD}; ${snct}`],
      [`${PMD}; ${cnct}`, true, `${PMD}; ${cnct}`],
      [PMD, { clientNoContextTakeover: true }, `${PMD}; ${cnct}`],
      [
        `${PMD}; ${cmwb}; ${smwb}=9; ${cnct}; ${snct}`,
        { clientMaxWindowBits: 10 },
        `${PMD}; ${snct}; ${cnct}; ${smwb}=9; ${cmwb}=10`,
      ],
      [`${PMD};${smwb}="10"`, true, `${PMD}; ${smwb}=10`],
      [`${PMD} ; ${smwb} = "1\\0"`, true, `${PMD}; ${smwb}=10`],
      // One offer after the other: the first that can be met.
      [`${PMD}; ${smwb}=7, ${PMD}; ${smwb}=11`, true, `${PMD}; ${smwb}=11`],
      [`${PMD}; foo, ${PMD}`, true, PMD],
      [
        `${PMD}, ${PMD}; ${cmwb}`,
        { clientMaxWindowBits: 9 },
        `${PMD}; ${cmwb}=9`,
      ],
      // Invalid offers are declined, RFC 7692 section 7.1.
      [`${PMD}; foo`, true, null],
      [`${PMD}; ${smwb}`, true, null],
      [`${PMD}; ${smwb}=7`, true, null],
      [`${PMD}; ${smwb}=16`, true, null],
      [`${PMD}; ${smwb}=08`, true, null],
      [`${PMD}; ${smwb}=+9`, true, null],
      [`${PMD}; ${cmwb}=7`, true, null],
      [`${PMD}; ${cmwb}=16`, true, null],
      [`${PMD}; ${snct}=1`, true, null],
      [`${PMD}; ${cnct}=true`, true, null],
      [`${PMD}; ${snct}; ${snct}`, true, null],
      [`${PMD}; ${cmwb}; ${cmwb}=9`, true, null],
      ["x-webkit-deflate-frame", true, null],
    ] as [string, boolean | Partial<DeflateParameters>, string | null][]
  ) {
    it(`answers "${offer}" under ${JSON.stringify(deflate)} with ${answer}`, async () => {
      const result = await negotiate(offer, deflate);
      assertEquals(result.answer, answer);
      assertEquals(result.deflate === null, answer === null);
    });
  }

  it("tells what was agreed on", async () => {
    const { deflate } = await negotiate(
      `${PMD}; ${cmwb}=12; ${smwb}=9; ${snct}`,
      { clientMaxWindowBits: 10 },
    );
    assertEquals(deflate, {
      serverNoContextTakeover: true,
      clientNoContextTakeover: false,
      serverMaxWindowBits: 9,
      clientMaxWindowBits: 10,
    });
  });
});

describe("permessage-deflate, the client's judgement", () => {
  const judgeAnswer = (
    answer: string,
    deflate: boolean | Partial<DeflateParameters> = true,
  ) =>
    readUpgradeResponse(
      bytes(response({ "Sec-WebSocket-Extensions": answer })),
      { key: KEY, deflate },
    );
  const PMD = "permessage-deflate";

  it("offers what it wants", () => {
    const offer = (deflate: Partial<DeflateParameters>) =>
      text(createUpgradeRequest({ host: "a", deflate }).bytes)
        .match(/Extensions: (.*)/)?.[1];
    assertEquals(
      offer({
        serverNoContextTakeover: true,
        clientNoContextTakeover: true,
        serverMaxWindowBits: 9,
        clientMaxWindowBits: 10,
      }),
      `${PMD}; server_no_context_takeover; client_no_context_takeover; ` +
        "server_max_window_bits=9; client_max_window_bits=10",
    );
    assertEquals(offer({}), `${PMD}; client_max_window_bits`);
  });

  it("takes a valid answer", async () => {
    const opened = await judgeAnswer(
      `${PMD}; server_no_context_takeover; server_max_window_bits=9; ` +
        'client_max_window_bits="8"',
    );
    assertEquals(opened?.deflate, {
      serverNoContextTakeover: true,
      clientNoContextTakeover: false,
      serverMaxWindowBits: 9,
      clientMaxWindowBits: 8,
    });
    assertEquals((await judgeAnswer(PMD))?.deflate?.clientMaxWindowBits, 15);
    const own = await judgeAnswer(PMD, { clientMaxWindowBits: 11 });
    assertEquals(own?.deflate?.clientMaxWindowBits, 11);
    // What the client announced holds, whether the server repeats it or not.
    const announced = await judgeAnswer(PMD, { clientNoContextTakeover: true });
    assertEquals(announced?.deflate?.clientNoContextTakeover, true);
  });

  for (
    const [answer, deflate] of [
      [`${PMD}; client_max_window_bits`, true],
      [`${PMD}; client_max_window_bits=7`, true],
      [`${PMD}; client_max_window_bits=12`, { clientMaxWindowBits: 11 }],
      [`${PMD}; server_max_window_bits`, true],
      [`${PMD}; server_max_window_bits=16`, true],
      [PMD, { serverMaxWindowBits: 10 }],
      [`${PMD}; server_max_window_bits=11`, { serverMaxWindowBits: 10 }],
      [PMD, { serverNoContextTakeover: true }],
      [`${PMD}; server_no_context_takeover=1`, true],
      [`${PMD}; foo`, true],
      [`${PMD}; server_no_context_takeover; server_no_context_takeover`, true],
      [`${PMD}, ${PMD}`, true],
      [`${PMD}, foo`, true],
      ["foo", true],
    ] as [string, boolean | Partial<DeflateParameters>][]
  ) {
    it(`refuses "${answer}" after ${JSON.stringify(deflate)}`, async () => {
      assertEquals(await statusOf(() => judgeAnswer(answer, deflate)), 502);
    });
  }

  it("agrees with the server, whatever both want", async () => {
    const bits = fc.integer({ min: 8, max: 15 });
    const wishes = fc.record({
      serverNoContextTakeover: fc.boolean(),
      clientNoContextTakeover: fc.boolean(),
      serverMaxWindowBits: bits,
      clientMaxWindowBits: bits,
    }, { requiredKeys: [] });
    await fc.assert(
      fc.asyncProperty(wishes, wishes, async (client, server) => {
        const { bytes, key } = createUpgradeRequest({
          host: "a",
          deflate: client,
        });
        const read = readUpgradeRequest(bytes);
        assert(read);
        const answer = await acceptUpgrade(read.request, { deflate: server });
        const opened = await readUpgradeResponse(answer.bytes, {
          key,
          deflate: client,
        });
        assert(answer.deflate);
        assertEquals(opened?.deflate, answer.deflate);
      }),
    );
  });
});
