/**
 * Our server with clients that are not ours: npm `ws`, with and without deflate, the
 * WebSocket of Node 26, Deno and Bun, headless Chromium, and Python's websockets.
 *
 * The server is `examples/echo_server.ts` under the runtime that runs this test; each
 * client runs where it is at home. What they do is in `interop/client.mjs` and
 * `interop/peer.py`; they check every echo themselves.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { describe, it } from "node:test";
import { assertEquals } from "@std/assert";
import {
  CHROMIUM,
  needs,
  Program,
  PYTHON,
  RUNTIMES,
  startServer,
} from "./interop/programs.ts";
import { Server } from "./interop/server.ts";

const SIZES = [0, 1, 125, 126, 65535, 65536, 1 << 20, 16 << 20];

/** What a client says that it did. */
interface Report {
  binary: number[];
  text: number[];
  extensions: string;
  extras: string[];
  closed: unknown;
  ordered: unknown;
  closedByServer: unknown;
}

/** What a client is expected to have done beyond what all do. */
interface Expected {
  deflate: boolean;
  extras: string[];
}

/**
 * Runs the server and one that follows orders, and a client of both that calls `waiting`
 * when the server is to go away.
 */
async function withServer(
  client: (urls: string[], waiting: () => void) => Promise<string>,
  { deflate, extras }: Expected,
): Promise<void> {
  const ordered = new Server();
  const { program, port } = await startServer("echo_server.ts");
  try {
    const urls = [await ordered.listen(), port].map((port) =>
      `ws://127.0.0.1:${port}/`
    );
    const said = await client(urls, () => program.signal("SIGINT"));
    const report = JSON.parse(said) as Report;
    assertEquals(report.binary, SIZES);
    assertEquals(report.text, SIZES);
    assertEquals(/permessage-deflate/.test(report.extensions), deflate);
    assertEquals(report.extras, ["many", ...extras]);
    assertEquals(report.closed, {
      code: 4001,
      reason: "bye, später",
      wasClean: true,
    });
    assertEquals(report.ordered, {
      code: 4002,
      reason: "auf Wiedersehen, привет",
      wasClean: true,
    });
    const [answered, closed] = ordered.closed;
    // The answer to a Close has its code; the reason is missing from Node's.
    assertEquals([answered.code, answered.clean], [4002, true]);
    assertEquals(closed, {
      type: "close",
      code: 4003,
      reason: "до свидания",
      clean: true,
    });
    assertEquals(report.closedByServer, {
      code: 1001,
      reason: "The server goes away",
      wasClean: true,
    });
    const { code, stderr } = await program.ended;
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
  } finally {
    ordered.stop();
    await program.stop();
  }
}

/** A client that is a program and reports on its standard output. */
function testProgram(command: string[], expected: Expected): Promise<void> {
  return withServer(async (urls, waiting) => {
    const client = new Program([...command, ...urls]);
    try {
      await client.printed(/^\{"waiting": ?true\}$/m);
      waiting();
      const { code, stdout, stderr } = await client.ended;
      assertEquals(code, 0, stderr);
      return stdout.trim().split("\n").pop()!;
    } finally {
      await client.stop();
    }
  }, expected);
}

const SCRIPT = "tests/interop/client.mjs";
const PEER = "tests/interop/peer.py";

const PAGE = `<!doctype html><script type="module">
import { run } from "/client.mjs";
const say = (what) =>
  fetch("/said", { method: "POST", body: JSON.stringify(what) });
run(WebSocket, ...location.hash.slice(1).split(","), undefined, say)
  .catch((error) => say({ error: String(error) }));
</script>`;

/** Has Chromium open a page that runs the client; what it says comes by HTTP. */
async function runChromium(
  urls: string[],
  waiting: () => void,
): Promise<string> {
  const script = readFileSync(new URL("interop/client.mjs", import.meta.url));
  let tell: (report: string) => void;
  const told = new Promise<string>((resolve) => tell = resolve);
  const pages = createServer(async (request, response) => {
    if (request.url === "/said") {
      let body = "";
      for await (const chunk of request) body += chunk;
      response.end();
      if (body === '{"waiting":true}') waiting();
      else tell(body);
    } else if (request.url === "/client.mjs") {
      response.setHeader("content-type", "text/javascript").end(script);
    } else {
      response.setHeader("content-type", "text/html").end(PAGE);
    }
  });
  const folder = mkdtempSync(`${tmpdir()}/test-`);
  let chromium: Program | undefined;
  try {
    await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
    const { port } = pages.address() as { port: number };
    chromium = new Program([
      CHROMIUM,
      ..."--headless --no-sandbox --disable-gpu --disable-quic".split(" "),
      ..."--no-first-run --disable-background-networking".split(" "),
      ..."--disable-component-update --disable-sync".split(" "),
      `--user-data-dir=${folder}`,
      `http://127.0.0.1:${port}/#${urls}`,
    ]);
    const over = chromium.ended.then(({ code, stderr }) => {
      throw new Error(`Chromium ended, ${code}: ${stderr}`);
    });
    return await Promise.race([told, over]);
  } finally {
    pages.close();
    await chromium?.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

describe("our server", () => {
  it("with ws", () =>
    testProgram([...RUNTIMES.node(), SCRIPT, "--ws"], {
      deflate: false,
      extras: ["ping", "fragments"],
    }));

  it("with ws, compressed", () =>
    testProgram([...RUNTIMES.node(), SCRIPT, "--ws-deflate"], {
      deflate: true,
      extras: ["ping", "fragments"],
    }));

  it("with the WebSocket of Node 26", () =>
    testProgram([...RUNTIMES.node26(), SCRIPT], { deflate: true, extras: [] }));

  it("with the WebSocket of Deno", () =>
    testProgram([...RUNTIMES.deno(), SCRIPT], { deflate: false, extras: [] }));

  it("with the WebSocket of Bun", () =>
    testProgram([...RUNTIMES.bun(), SCRIPT], {
      deflate: true,
      extras: ["ping"],
    }));

  it(
    "with Chromium",
    needs(CHROMIUM),
    () => withServer(runChromium, { deflate: true, extras: [] }),
  );

  it(
    "with Python's websockets",
    needs(PYTHON),
    () =>
      testProgram([PYTHON, PEER, "client"], {
        deflate: false,
        extras: ["ping", "fragments"],
      }),
  );

  it(
    "with Python's websockets, compressed",
    needs(PYTHON),
    () =>
      testProgram([PYTHON, PEER, "client", "--deflate"], {
        deflate: true,
        extras: ["ping", "fragments"],
      }),
  );
});
