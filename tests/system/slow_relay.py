"""A relay of TCP that holds back what it passes on: `python slow_relay.py PORT HOST:PORT SECONDS`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

CHUNK_BYTES = 65_536

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Write each chunk so many seconds after it was read, until one of both ends."""
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop().time

    async def write() -> None:
        while True:
            due, chunk = await chunks.get()
            await asyncio.sleep(due - clock())
            if not chunk:
                return
            writer.write(chunk)
            await writer.drain()

    writing = asyncio.create_task(write())
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            chunks.put_nowait((clock() + seconds, chunk))
    finally:
        chunks.put_nowait((clock() + seconds, b""))
        await writing


def relay_to(host: str, port: int, seconds: float) -> Serve:
    """Return what serves one connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, port)
        ways = [asyncio.create_task(pass_on(*pair, seconds)) for pair in ((reader, back), (there, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for stream in (writer, back):
            stream.close()
        await asyncio.gather(*ways, return_exceptions=True)

    return serve


async def main(port: int, target: str, seconds: float) -> None:
    """Serve for ever."""
    host, _, target_port = target.rpartition(":")
    server = await asyncio.start_server(relay_to(host, int(target_port), seconds), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
