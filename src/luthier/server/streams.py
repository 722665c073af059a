"""Server-sent events: each listener has a short queue, and the server can close all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from luthier.errors import LuthierError
from luthier.result.serial import json_text

KEEP_ALIVE_S = 15.0
"""How often an idle stream sends a comment, and how often the rights of its user are checked."""

_MOST_BEHIND = 64


def event(kind: str, data: object, number: int | None = None) -> bytes:
    """One server-sent event."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json_text(data)}\n\n".encode()


class Listener:
    """The queue of one client; a client that is too slow is disconnected and reconnects for what it missed."""

    def __init__(self) -> None:
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_BEHIND)

    def tell(self, part: bytes) -> None:
        """Add a part to the stream."""
        try:
            self._parts.put_nowait(part)
        except asyncio.QueueFull:
            self.close_stream()

    def close_stream(self) -> None:
        """End the stream: after the parts in the queue if there is room, else immediately."""
        if self._parts.full():
            while not self._parts.empty():
                self._parts.get_nowait()
        self._parts.put_nowait(None)

    async def parts(self, may_go_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The parts from now on, until the stream is closed or `may_go_on` returns False."""
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        while True:
            try:
                part = await asyncio.wait_for(self._parts.get(), KEEP_ALIVE_S)
            except TimeoutError:
                part = b": still here\n\n"
            if clock() - asked_at >= KEEP_ALIVE_S:
                asked_at = clock()
                if not await run_in_threadpool(_asked, may_go_on):
                    return
            if part is None:
                return
            yield part


def _asked(may_go_on: Callable[[], bool]) -> bool:
    try:
        return may_go_on()
    except LuthierError:
        return False
