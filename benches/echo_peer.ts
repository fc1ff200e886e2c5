/**
 * The echo server that a runtime comes with, or npm `ws` on Node. Prints its
 * address; compresses when `deflate` is its argument and the client asks for it.
 */

const deflate = process.argv[2] === "deflate";

/** What this file uses of Bun's server; its types are not Deno's. */
interface BunServer {
  port: number;
  upgrade(request: Request): boolean;
}
interface BunSocket {
  send(data: string | Uint8Array): void;
}
interface BunServe {
  serve(options: {
    hostname: string;
    port: number;
    fetch(request: Request, server: BunServer): Response | undefined;
    websocket: {
      perMessageDeflate: boolean;
      message(socket: BunSocket, data: string | Uint8Array): void;
    };
  }): BunServer;
}

function listening(port: number): void {
  console.log(`ws://127.0.0.1:${port}/`);
}

if (process.versions.bun) {
  const { Bun } = globalThis as unknown as { Bun: BunServe };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response(null, { status: 426 }),
    websocket: {
      perMessageDeflate: deflate,
      message(socket, data) {
        socket.send(data);
      },
    },
  });
  listening(server.port);
} else if (process.versions.deno) {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => listening(port),
  }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => socket.send(data);
    return response;
  });
} else {
  const { WebSocketServer } = await import("ws");
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    perMessageDeflate: deflate && { threshold: 0 },
  });
  server.on("connection", (socket: EchoSocket) => {
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  server.on("listening", () => listening(server.address().port));
}

/** What this file uses of a `ws` socket. */
interface EchoSocket {
  on(
    event: "message",
    listener: (data: Uint8Array, binary: boolean) => void,
  ): void;
  send(data: Uint8Array, options: { binary: boolean }): void;
}
