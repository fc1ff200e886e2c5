/**
 * An echo server that is not ours: npm `ws` under Node, Deno.serve, Bun.serve. It prints
 * its port. Some texts are orders: "close CODE REASON", "ping", whose pong it tells of,
 * and "fragments".
 *
 * @module
 */

const HOST = "127.0.0.1";
const MAX_LENGTH = 64 << 20;

/** Follows an order; whether it was one. */
function obey(socket, data) {
  if (typeof data !== "string") return false;
  const [order, code, ...reason] = data.split(" ");
  if (order === "close") socket.close(Number(code), reason.join(" "));
  else if (order === "ping") socket.ping("there?");
  else if (order === "fragments") {
    socket.send("frag", { fin: false });
    socket.ping("between");
    socket.send("", { fin: false });
    socket.send("mented", { fin: true });
  } else return false;
  return true;
}

async function nodeServer() {
  const { WebSocketServer } = await import("ws");
  const server = new WebSocketServer({
    host: HOST,
    port: 0,
    perMessageDeflate: { threshold: 0 },
    maxPayload: MAX_LENGTH,
  });
  server.on("listening", () => console.log(server.address().port));
  server.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => {
      const message = isBinary ? data : String(data);
      if (!obey(socket, message)) socket.send(message);
    });
    socket.on("pong", (data) => {
      if (String(data) === "there?") socket.send(`pong ${data}`);
    });
    socket.on("error", () => {});
  });
}

function denoServer() {
  Deno.serve({
    hostname: HOST,
    port: 0,
    onListen: ({ port }) => console.log(port),
  }, (request) => {
    // Deno itself sends a Ping after half of this time, in seconds, and no other.
    const idleTimeout = request.url.endsWith("/idle") ? 2 : 0;
    const { socket, response } = Deno.upgradeWebSocket(request, {
      idleTimeout,
    });
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (!obey(socket, data)) socket.send(data);
    };
    return response;
  });
}

function bunServer() {
  const server = Bun.serve({
    hostname: HOST,
    port: 0,
    fetch: (request, self) => void self.upgrade(request),
    websocket: {
      perMessageDeflate: true,
      maxPayloadLength: MAX_LENGTH,
      backpressureLimit: MAX_LENGTH,
      message: (socket, data) => {
        if (!obey(socket, data)) socket.send(data, true);
      },
      pong: (socket, data) => void socket.send(`pong ${data}`),
    },
  });
  console.log(server.port);
}

if ("Bun" in globalThis) bunServer();
else if ("Deno" in globalThis) denoServer();
else nodeServer();
