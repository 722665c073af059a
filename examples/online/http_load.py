"""A steady load of HTTP requests: `python http_load.py URL [CLIENTS]`; ends on SIGTERM and prints what it counted.

Each client waits for its answer, and a moment more, before its next request: the load is bounded. A request that is
refused, breaks off or is not answered with 200 is an error.
"""

import asyncio
import json
import signal
import sys
from urllib.parse import urlsplit

PAUSE_S = 0.001
TIMEOUT_S = 30.0
MOST_SHOWN = 5


async def get(url: str) -> None:
    """Make one request on a connection of its own; a ValueError or OSError tells what went wrong."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        lines = [f"GET {parts.path or '/'} HTTP/1.1", f"Host: {parts.hostname}", "Accept-Encoding: gzip"]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        answer = await reader.read(-1)
    finally:
        writer.close()
    status, _, rest = answer.partition(b"\r\n")
    if b" 200 " not in status + b" " or not rest.endswith(b"0\r\n\r\n"):  # the last chunk
        raise ValueError(f"{status.decode(errors='replace')!r} and {len(answer)} bytes")


async def client(url: str, ended: asyncio.Event, requests: list[str]) -> None:
    """Make one request after the other; each adds an empty text, or what went wrong."""
    while not ended.is_set():
        try:
            await asyncio.wait_for(get(url), TIMEOUT_S)
            requests.append("")
        except (OSError, ValueError) as error:
            requests.append(f"{type(error).__name__}: {error}")
        await asyncio.sleep(PAUSE_S)


async def main(url: str, clients: int) -> None:
    """Serve as the users of a server until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    requests: list[str] = []
    await asyncio.gather(*(client(url, ended, requests) for _ in range(clients)))
    errors = [text for text in requests if text]
    print(json.dumps({"requests": len(requests), "errors": len(errors), "first": errors[:MOST_SHOWN]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2))
