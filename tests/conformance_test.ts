/**
 * The rules of RFC 6455 and RFC 7692 as an endpoint on the wire shows them: an echo is
 * sent frames, and answers. Laid out in the categories that the Autobahn suite names (1
 * to 7, 9, 10, 12, 13); each case is run against a server and a client, with its bytes
 * whole, in pieces of 7, and one by one.
 */

import { describe, it } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  type FrameInit,
  FrameReader,
  isValidCloseCode,
  type Opcode,
  writeFrame,
} from "@wsframe/wsframe";
import {
  acceptUpgrade,
  Connection,
  type ConnectionOptions,
  createUpgradeRequest,
  type DeflateParameters,
  readUpgradeRequest,
  readUpgradeResponse,
} from "@wsframe/wsframe/connection";
import { bytesOf, concat, hex, randomBytes, seeded } from "./vectors.ts";

type Role = "client" | "server";
const other = (role: Role): Role => role === "client" ? "server" : "client";

/** Short for a frame. */
function frame(
  opcode: number,
  payload: Uint8Array | string = "",
  rest: Partial<FrameInit> = {},
): FrameInit {
  return { opcode: opcode as Opcode, payload, ...rest };
}
const part = (opcode: number, payload: Uint8Array | string = "") =>
  frame(opcode, payload, { fin: false });
const text = (payload: Uint8Array | string = "") => frame(1, payload);
const binary = (payload: Uint8Array | string = "") => frame(2, payload);
const ping = (payload: Uint8Array | string = "") => frame(9, payload);
const pong = (payload: Uint8Array | string = "") => frame(10, payload);
const close = (code: number, reason = "") =>
  frame(
    8,
    concat([
      Uint8Array.of(code >> 8, code & 255),
      new TextEncoder().encode(reason),
    ]),
  );

function echoOf(connection: Connection, chunk: Uint8Array): void {
  for (const event of connection.receive(chunk)) {
    if (event.type === "text" || event.type === "binary") {
      connection.send(event.data);
    }
  }
}

/** What frames mean, for comparing. */
function shape(frames: Iterable<FrameInit>): string[] {
  return Array.from(frames, ({ opcode, payload = "", fin = true }) => {
    const bytes = typeof payload === "string"
      ? new TextEncoder().encode(payload)
      : payload;
    const data = bytes.length > 200
      ? `${bytes.length} bytes, sum ${sumOf(bytes)}`
      : hex(bytes);
    return `${fin ? "" : "part of "}${opcode}: ${data}`;
  });
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum = (sum * 31 + byte) | 0;
  return sum;
}

/** Sends frames to an echo of each role and compares what comes back. */
function expect(
  frames: FrameInit[],
  answers: FrameInit[],
  options: Partial<ConnectionOptions> = {},
  steps: number[] = [Infinity, 7, 1],
): void {
  for (const role of ["server", "client"] as const) {
    const bytes = concat(
      frames.map((one) =>
        writeFrame(one, { role: other(role), checks: "none" })
      ),
    );
    for (const step of steps) {
      const echo = new Connection({ role, ...options });
      const reader = new FrameReader({ role: other(role) });
      const got: FrameInit[] = [];
      for (let at = 0; at < bytes.length; at += step) {
        echoOf(echo, bytes.slice(at, at + step));
        got.push(...reader.push(echo.takeOutput()));
      }
      reader.end();
      assertEquals(shape(got), shape(answers), `${role}, steps of ${step}`);
      const closed = answers.some(({ opcode }) => opcode === 8);
      assertEquals(echo.state, closed ? "closed" : "open");
    }
  }
}

const letters = (length: number) => "*".repeat(length);
const bytes = (length: number) => new Uint8Array(length).fill(0xfe);

describe("1 framing", () => {
  for (const length of [0, 125, 126, 127, 128, 65535, 65536]) {
    const steps = length > 1000 ? [Infinity, 997] : undefined;
    it(`1.1 text of ${length} bytes`, () => {
      expect([text(letters(length))], [text(letters(length))], {}, steps);
    });
    it(`1.2 binary of ${length} bytes`, () => {
      expect([binary(bytes(length))], [binary(bytes(length))], {}, steps);
    });
  }
});

describe("2 pings and pongs", () => {
  for (const payload of ["", "Hello", letters(125)]) {
    it(`2.1-5 a ping of ${payload.length} bytes is answered with the same`, () => {
      expect([ping(payload)], [pong(payload)]);
    });
  }
  it("2.3 also of bytes that are no text", () => {
    expect([ping(bytesOf("00fffefdfcfb00ff"))], [
      pong(bytesOf("00fffefdfcfb00ff")),
    ]);
  });
  it("2.5 a ping of 126 bytes fails", () => {
    expect([ping(letters(126))], [close(1002)]);
  });
  it("2.7-9 pongs nobody asked for are taken", () => {
    expect([pong(), pong("x"), ping("y"), pong("z")], [pong("y")]);
  });
  it("2.10-11 ten pings get ten pongs, in order", () => {
    const list = Array.from({ length: 10 }, (_, i) => `payload-${i}`);
    expect(list.map((one) => ping(one)), list.map((one) => pong(one)));
  });
});

describe("3 reserved bits", () => {
  for (let bits = 1; bits < 8; bits++) {
    const rsv = {
      rsv1: (bits & 4) !== 0,
      rsv2: (bits & 2) !== 0,
      rsv3: (bits & 1) !== 0,
    };
    for (const opcode of [1, 2, 9, 8]) {
      it(`3.${bits} RSV ${bits} on opcode ${opcode} fails, what came before is answered`, () => {
        expect([text("a"), frame(opcode, "", rsv), ping()], [
          text("a"),
          close(1002),
        ]);
      });
    }
  }
});

describe("4 opcodes", () => {
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) {
    it(`4 opcode ${opcode} fails, what came before is answered`, () => {
      expect([text("a"), frame(opcode), ping()], [text("a"), close(1002)]);
      expect([text("a"), frame(opcode, "payload"), ping()], [
        text("a"),
        close(1002),
      ]);
    });
  }
});

describe("5 fragmentation", () => {
  it("5.1-2 control frames may not be fragmented", () => {
    expect([part(9, "a"), frame(0, "b")], [close(1002)]);
    expect([part(10, "a"), frame(0, "b")], [close(1002)]);
    expect([part(8)], [close(1002)]);
  });
  it("5.3-5 a text of two fragments", () => {
    expect([part(1, "fragment1"), frame(0, "fragment2")], [
      text("fragment1fragment2"),
    ]);
  });
  it("5.6-8 a ping between them is answered first", () => {
    expect([part(1, "a"), ping("p"), frame(0, "b")], [pong("p"), text("ab")]);
  });
  it("5.9-14 a continuation of nothing fails", () => {
    expect([frame(0, "a"), text("b")], [close(1002)]);
    expect([part(0, "a"), text("b")], [close(1002)]);
    expect([part(1, "a"), frame(0, "b"), frame(0, "c")], [
      text("ab"),
      close(1002),
    ]);
  });
  it("5.15 a continuation after the end fails", () => {
    expect([part(1, "a"), frame(0, "b"), part(0, "c"), frame(0, "d")], [
      text("ab"),
      close(1002),
    ]);
  });
  it("5.18 a message inside a message fails", () => {
    expect([part(1, "a"), text("b")], [close(1002)]);
    expect([part(2, "a"), part(2, "b")], [close(1002)]);
  });
  it("5.19-20 many fragments and pings between them", () => {
    expect(
      [
        part(1, "1"),
        part(0, "2"),
        ping("p1"),
        part(0, "3"),
        part(0, "4"),
        ping("p2"),
        frame(0, "5"),
      ],
      [pong("p1"), pong("p2"), text("12345")],
    );
  });
  it("5 empty fragments", () => {
    expect([part(1), part(0), frame(0)], [text("")]);
    expect([part(2), part(0, "a"), frame(0)], [binary("a")]);
  });
});

describe("6 UTF-8", () => {
  /** Section 6.x of the suite names these; they follow from RFC 3629 and Unicode's table 3-7. */
  const valid = [
    "",
    "48656c6c6f2dc2b540c39fc3b6c3a4c3bcc3a0c3a12d5554462d382121", // Hello-µ@ßöäüàá-UTF-8!!
    "cebae1bdb9cf83cebcceb5", // κόσμε
    "00",
    "c280",
    "e0a080",
    "f0908080",
    "7f",
    "dfbf",
    "efbfbf",
    "f48fbfbf",
    "ed9fbf",
    "ee8080",
    "efbfbd",
    "efbfbe", // noncharacters
    "f09fbfbe",
    "f3bfbfbf",
    "efbbbf61", // a byte order mark is a character like others
  ];
  const invalid = [
    "cebae1bdb9cf83cebcceb5eda080656469746564",
    "cebae1bdb9cf83cebcceb5f4908080656469746564",
    "f8888080 80".replaceAll(" ", ""),
    "fc8480808080",
    "f7bfbfbf",
    "fbbfbfbfbf",
    "fdbfbfbfbfbf",
    "f4908080",
    "80",
    "bf",
    "80bf",
    "80bf80bf80bf",
    "c020",
    "e0a020",
    "f0908020",
    "c3",
    "e282",
    "f09f98",
    "fe",
    "ff",
    "c0af",
    "c1bf",
    "e080af",
    "e09fbf",
    "f08080af",
    "f08fbfbf",
    "eda080",
    "edadbf",
    "edbfbf",
    "eda080edb080",
  ];
  for (const one of valid) {
    it(`6 valid ${one}`, () => {
      const all = bytesOf(one);
      expect([text(all)], [text(all)]);
      // Every byte a fragment of its own.
      expect(
        [
          part(1),
          ...Array.from(all, (byte) => part(0, Uint8Array.of(byte))),
          frame(0),
        ],
        [text(all)],
      );
    });
  }
  for (const one of invalid) {
    it(`6 invalid ${one}`, () => {
      const all = bytesOf(one);
      expect([text(all)], [close(1007)]);
      // Behind much that is valid, and at each place of a word.
      for (const before of [61, 62, 63, 64, 200]) {
        expect(
          [text(concat([new Uint8Array(before).fill(0x61), all]))],
          [close(1007)],
          {},
          [
            Infinity,
            50,
          ],
        );
      }
      expect(
        [
          part(1),
          ...Array.from(all, (byte) => part(0, Uint8Array.of(byte))),
          frame(0),
        ],
        [close(1007)],
      );
    });
  }

  it("6.3-4 fails at the first wrong byte, before the frame or message ends", () => {
    const wrong: [valid: string, byte: string][] = [
      ["cebae1bdb9cf83cebcceb5", "ff"],
      ["f4", "90"],
      ["ed", "a0"],
      ["e0", "9f"],
      ["f0", "8f"],
      ["c3", "28"],
      ["e282", "c0"],
      ["", "c1"],
    ];
    for (const [good, bad] of wrong) {
      const length = (good.length / 2) + 1 + 5;
      for (const first of ["81", "01"]) {
        const client = new Connection({ role: "client" });
        const head = first + length.toString(16).padStart(2, "0");
        assertEquals([...client.receive(bytesOf(head + good))], []);
        const [event] = client.receive(bytesOf(bad));
        assert(event.type === "close" && event.code === 1007, `${good} ${bad}`);
      }
    }
  });
});

describe("7 closing", () => {
  it("7.1 nothing is answered after a Close", () => {
    expect([text("a"), close(1000), text("b"), ping(), close(1000)], [
      text("a"),
      close(1000),
    ]);
  });
  it("7.1 a Close inside a message ends it", () => {
    expect([part(1, "a"), close(1000), frame(0, "b")], [close(1000)]);
  });
  it("7.3 payloads of a Close", () => {
    expect([frame(8)], [frame(8)]);
    expect([frame(8, "\x03")], [close(1002)]);
    expect([close(1000)], [close(1000)]);
    expect([close(1000, "Hello World!")], [close(1000, "Hello World!")]);
    expect([close(1000, letters(123))], [close(1000, letters(123))]);
    expect([close(1000, letters(124))], [close(1002)]);
  });
  it("7.5 a reason that is no UTF-8 fails", () => {
    expect([frame(8, bytesOf("03e8cebaeda080"))], [close(1007)]);
  });
  for (
    const code of [
      ...[
        0,
        999,
        1000,
        1001,
        1002,
        1003,
        1004,
        1005,
        1006,
        1007,
        1008,
        1009,
        1010,
      ],
      ...[
        1011,
        1012,
        1013,
        1014,
        1015,
        1016,
        1100,
        2000,
        2999,
        3000,
        3999,
        4000,
        4999,
      ],
      ...[5000, 65535],
    ]
  ) {
    it(`7.7-13 code ${code}`, () => {
      expect([close(code)], [close(isValidCloseCode(code) ? code : 1002)]);
    });
  }
});

describe("9 limits and sizes", () => {
  const MiB = 2 ** 20;
  for (const size of [MiB / 16, MiB / 4, MiB, 4 * MiB, 16 * MiB]) {
    it(`9.1-2 a message of ${size} bytes, in one frame`, () => {
      expect([text(letters(size))], [text(letters(size))], {}, [65536]);
      expect([binary(bytes(size))], [binary(bytes(size))], {}, [65536]);
    });
  }
  for (const size of [64, 4096, 65536, MiB]) {
    it(`9.3-4 4 MiB in fragments of ${size} bytes`, () => {
      const all = randomBytes(4 * MiB, seeded(size)).map((byte) => byte & 0x7f);
      for (const opcode of [1, 2]) {
        const list: FrameInit[] = [];
        for (let at = 0; at < all.length; at += size) {
          const last = at + size >= all.length;
          list.push(
            frame(at === 0 ? opcode : 0, all.subarray(at, at + size), {
              fin: last,
            }),
          );
        }
        expect(list, [frame(opcode, all)], { maxFragments: 65536 }, [65536]);
      }
    });
  }
  for (const step of [64, 256, 1024, 4096]) {
    it(`9.5-6 1 MiB in writes of ${step} bytes`, () => {
      expect([text(letters(MiB))], [text(letters(MiB))], {}, [step]);
      expect([binary(bytes(MiB))], [binary(bytes(MiB))], {}, [step]);
    });
  }
  it("9.7-8 a thousand messages of each size", () => {
    for (const size of [0, 16, 64, 256, 1024, 4096]) {
      const list = new Array<FrameInit>(1000).fill(text(letters(size)));
      expect(list, list, {}, [65536]);
    }
  });
});

describe("10 fragments of 1300 bytes", () => {
  it("10.1 a message of 65536 bytes", () => {
    const all = new TextEncoder().encode(letters(65536));
    const list: FrameInit[] = [];
    for (let at = 0; at < all.length; at += 1300) {
      list.push(
        frame(at === 0 ? 1 : 0, all.subarray(at, at + 1300), {
          fin: at + 1300 >= 65536,
        }),
      );
    }
    expect(list, [text(all)], {}, [Infinity, 1000]);
  });
});

/** Both ends of a connection as the handshake agreed on it. */
async function connect(
  deflate: Partial<DeflateParameters>,
): Promise<{ client: Connection; server: Connection }> {
  const { bytes, key } = createUpgradeRequest({ host: "a", deflate });
  const { request } = readUpgradeRequest(bytes)!;
  const answer = await acceptUpgrade(request, { deflate: true });
  const opened = await readUpgradeResponse(answer.bytes, { key, deflate });
  assert(opened?.deflate);
  const options = { deflateThreshold: 0 };
  return {
    client: new Connection({
      role: "client",
      deflate: opened.deflate,
      ...options,
    }),
    server: new Connection({
      role: "server",
      deflate: answer.deflate,
      ...options,
    }),
  };
}

describe("12 and 13 permessage-deflate", () => {
  const random = seeded(13);
  const words = Array.from({ length: 200 }, () => random(2 ** 30).toString(36));
  const prose = (size: number) => {
    let all = "";
    while (all.length < size) all += words[random(words.length)] + " ";
    return all.slice(0, size);
  };
  const sizes = [
    16,
    64,
    256,
    1024,
    4096,
    8192,
    16384,
    32768,
    65536,
    131072,
  ];
  const bits = [undefined, 8, 9, 15] as const;
  const parameters: Partial<DeflateParameters>[] = bits.flatMap((server) =>
    bits.flatMap((client) =>
      [false, true].flatMap((serverNoContextTakeover) =>
        [false, true].map((clientNoContextTakeover) => ({
          serverNoContextTakeover,
          clientNoContextTakeover,
          ...server && { serverMaxWindowBits: server },
          ...client && { clientMaxWindowBits: client },
        }))
      )
    )
  );
  for (const [i, wanted] of parameters.entries()) {
    it(`echoes compressed messages under ${JSON.stringify(wanted)}`, async () => {
      const { client, server } = await connect(wanted);
      // All sizes take long: some under each combination.
      for (const size of sizes.filter((_, n) => n % 8 === i % 8)) {
        const messages: (string | Uint8Array)[] = [];
        for (let i = 0; i < 3; i++) {
          messages.push(prose(size), randomBytes(size, random));
        }
        for (const message of messages) {
          // In one frame, and in fragments.
          client.send(message);
          const third = Math.floor(size / 3);
          client.send(message.slice(0, third), { fin: false });
          client.ping();
          client.send(message.slice(third, 2 * third), { fin: false });
          client.send(message.slice(2 * third));
          const sent = client.takeOutput();
          for (let at = 0; at < sent.length; at += 5000) {
            echoOf(server, sent.slice(at, at + 5000));
          }
          const got = [...client.receive(server.takeOutput())]
            .flatMap((event) =>
              event.type === "text" || event.type === "binary"
                ? [event.data]
                : []
            );
          assertEquals(got, [message, message]);
        }
      }
    });
  }
});
