"""A small reverse proxy that logs people in, as a team's own one does: the cookie is the person.

It passes on bytes, so that the page gets requests and channels as a client sent them, but for the
headers that are the proxy's own.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread

_HEAD_END = b"\r\n\r\n"
_REFUSAL = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_NAME = "X-Forwarded-Email"


@contextmanager
def login_proxy(port: int, behind: int, own: Mapping[str, str]) -> Iterator[None]:
    """Serve at a port what a server behind it answers; `own` are headers that it adds."""
    ready, loop = Event(), asyncio.new_event_loop()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await _forward(reader, writer, behind, own)
        writer.close()

    def run() -> None:
        loop.run_until_complete(asyncio.start_server(connected, "127.0.0.1", port))
        ready.set()
        loop.run_forever()

    thread = Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, behind: int, own: Mapping[str, str]
) -> None:
    head = (await reader.readuntil(_HEAD_END)).decode("latin-1")
    request, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    person = _person(lines)
    if not person:
        writer.write(_REFUSAL)
        await writer.drain()
        return
    mine = {**own, _NAME: person}
    if not any(line.lower() == "upgrade: websocket" for line in lines):
        mine["Connection"] = "close"  # a request for each connection
    names = {name.lower() for name in mine}
    kept = [line for line in lines if line.partition(":")[0].lower() not in names]
    added = [f"{name}: {value}" for name, value in mine.items()]
    there, back = await asyncio.open_connection("127.0.0.1", behind)
    back.write("\r\n".join([request, *kept, *added, "", ""]).encode("latin-1"))
    await asyncio.gather(_pipe(reader, back), _pipe(there, writer))


def _person(lines: list[str]) -> str:
    """Return the value of the cookie `login`; "" without one."""
    cookies = [line.partition(":")[2] for line in lines if line.lower().startswith("cookie:")]
    pairs = (each.strip().partition("=") for line in cookies for each in line.split(";"))
    return next((value for name, _, value in pairs if name == "login"), "")


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
