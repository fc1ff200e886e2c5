"""A peer that is not ours: Python's websockets, as client or as echo server.

    peer.py client [--deflate] ORDERS URL
    peer.py server

They do what client.mjs and server.mjs do.
"""

import asyncio
import json
import sys

import websockets

SIZES = [0, 1, 125, 126, 65535, 65536, 1 << 20, 16 << 20]
MAX_SIZE = 64 << 20


def pattern(length):
    part = bytes((i * 31 + length) & 0xFF for i in range(65521))
    return (part * (length // len(part) + 1))[:length]


def say(what):
    print(json.dumps(what), flush=True)


async def client(orders, url, compression):
    options = {"max_size": MAX_SIZE, "compression": compression, "ping_interval": None}
    report = {"binary": [], "text": [], "extras": []}
    socket = await websockets.connect(url, **options)
    report["extensions"] = ", ".join(ext.name for ext in socket.extensions)
    for size in SIZES:
        for kind in "binary", "text":
            message = pattern(size)
            if kind == "text":
                message = "é" * (size // 2) + "x" * (size % 2)
            await socket.send(message)
            assert await socket.recv() == message, (kind, size)
            report[kind].append(size)

    many = [f"{i} " * (i % 50) for i in range(1000)]
    for message in many:
        await socket.send(message)
    for message in many:
        assert await socket.recv() == message, "many"
    report["extras"].append("many")

    await (await socket.ping("there?"))
    report["extras"].append("ping")

    await socket.send(["frag", "", "mented"])
    assert await socket.recv() == "fragmented"
    report["extras"].append("fragments")

    await socket.close(4001, "bye, später")
    report["closed"] = closed(socket)

    socket = await websockets.connect(orders, **options)
    await socket.send("ping")
    assert await socket.recv() == "pong there?"
    await socket.send("fragments")
    assert await socket.recv() == "fragmented 🧩"
    assert len(await socket.recv()) == 70_000
    await socket.send("close 4002 auf Wiedersehen, привет")
    await socket.wait_closed()
    report["ordered"] = closed(socket)
    socket = await websockets.connect(orders, **options)
    await socket.close(4003, "до свидания")

    socket = await websockets.connect(url, **options)
    await socket.send("still there")
    assert await socket.recv() == "still there"
    say({"waiting": True})
    await socket.wait_closed()
    report["closedByServer"] = closed(socket)
    say(report)


def closed(socket):
    clean = socket.close_code != 1006
    return {"code": socket.close_code, "reason": socket.close_reason, "wasClean": clean}


async def serve(socket, _path=None):
    try:
        async for message in socket:
            order = message.split(" ") if isinstance(message, str) else [""]
            if order[0] == "close":
                await socket.close(int(order[1]), " ".join(order[2:]))
            elif order[0] == "ping":
                asyncio.create_task(ping(socket))
            elif order[0] == "fragments":
                await socket.send(["frag", "", "mented"])
            else:
                await socket.send(message)
    except websockets.ConnectionClosed:
        pass  # which the client caused


async def ping(socket):
    await (await socket.ping("there?"))
    await socket.send("pong there?")


async def server():
    # No pings by the clock: a slow machine would get them amid what is asked for.
    options = {"max_size": MAX_SIZE, "ping_interval": None}
    async with websockets.serve(serve, "127.0.0.1", 0, **options) as listening:
        print(listening.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


if sys.argv[1] == "client":
    asyncio.run(client(*sys.argv[-2:], "deflate" if "--deflate" in sys.argv else None))
else:
    asyncio.run(server())
