"""Servers that answer submitted jobs in all ways but the right one, and one on the way to a real server."""

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Answering = Callable[[bytes], bytes]
"""The whole answer to a whole request."""

OWN = Ed25519PrivateKey.generate()
KEY = OWN.public_key().public_bytes_raw().hex()
"""The public key that clients of these servers have."""

HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
RIGHT = b"luthier 1\ndecision 5\nset KNOB_LEVEL=42\nsay hello\nend\n"


def signed(
    body: bytes,
    *,
    nonce: bytes | None = None,
    request: bytes | None = None,
    key: Ed25519PrivateKey = OWN,
    instead: bytes | None = None,
) -> Answering:
    """An answer with the right signature, unless it is that of something else."""

    def answer(received: bytes) -> bytes:
        head, _, sent = received.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)luthier-nonce: ([0-9a-f]{64})", head)
        assert found is not None, head
        of_request = hashlib.sha256(sent if request is None else request).digest()
        text = b"luthier submission 1\n" + (nonce or bytes.fromhex(found[1].decode())) + of_request
        signature = key.sign(text + (body if instead is None else instead)).hex().encode()
        return b"%bLuthier-Signature: %b\r\n\r\n%b" % (HEAD, signature, body)

    return answer


def line(text: bytes) -> Answering:
    """A signed answer with this line."""
    return signed(RIGHT.replace(b"say hello", text))


def before(answer: Answering, change: Callable[[bytes], bytes]) -> Answering:
    """The answer, changed on its way."""
    return lambda request: change(answer(request))


FORGED: dict[str, Answering] = {
    "unsigned": lambda _: HEAD + b"\r\n" + RIGHT,
    "signed by another": signed(RIGHT, key=Ed25519PrivateKey.generate()),
    "signed for another nonce": signed(RIGHT, nonce=bytes(32)),
    "signed for another request": signed(RIGHT, request=b"{}"),
    "another answer signed": signed(RIGHT, instead=RIGHT.replace(b"42", b"43")),
    "changed": before(signed(RIGHT), lambda answer: answer.replace(b"=42", b"=43")),
    "lengthened": before(signed(RIGHT), lambda answer: answer + b"\n"),
    "cut off": before(signed(RIGHT), lambda answer: answer[:-1]),
    "half a signature": before(signed(RIGHT), lambda answer: re.sub(rb"(Signature: .{64}).*\r", rb"\1\r", answer)),
    "no hexadecimal signature": before(signed(RIGHT), lambda answer: re.sub(rb"(Signature: ).", rb"\1g", answer)),
    "signature of zeros": before(
        signed(RIGHT), lambda answer: re.sub(rb"(Signature: ).{128}", rb"\g<1>" + b"0" * 128, answer)
    ),
    "other status": before(signed(RIGHT), lambda answer: answer.replace(b" 201 ", b" 200 ")),
}
"""What somebody on the network can send."""

WRONG: dict[str, Answering | bytes | None] = {
    "garbage": b"\x00\xff no HTTP at all",
    "endless": HEAD + b"\r\n" + b"set KNOB_LEVEL=42\n" * 100_000,
    "endless head": b"HTTP/1.1 201 Created\r\n" + b"Luthier-Signature: 00\r\n" * 100_000,
    "hanging": None,
    "closed": b"",
    "variable that loads a library": line(b"set LD_PRELOAD=evil.so"),
    "variable that is a program": line(b"set OMPI_MCA_orte_fork_agent=rm"),
    "half an answer": signed(RIGHT.removesuffix(b"end\n")),
    "shell": line(b"set KNOB_MODE=$(touch pwned)"),
    "unknown line": line(b"run x"),
    "empty": signed(b""),
    "NUL": line(b"say a\0b"),
    "long": signed(RIGHT.replace(b"hello", b"x" * 70_000)),
    "escape sequence": line(b"say \x1b[31mred"),
    "C1 control character": line("say \x9b31mred".encode()),
    "C1 byte": line(b"say \x9b31mred"),
    "order of writing": line("say \u202egnp.exe".encode()),
    "carriage return": line(b"say all is well\rluthier: "),
}
"""What a broken or hostile server can send: what needs a signature has a right one."""

ANSWERS: dict[str, Answering | bytes | None] = {**FORGED, **WRONG}


def on_the_way(url: str, change: Callable[[bytes], bytes]) -> Answering:
    """What the server at this address answers, changed."""
    place = urlsplit(url)

    def answer(request: bytes) -> bytes:
        with socket.create_connection((place.hostname or "", place.port or 80), timeout=30) as server:
            server.sendall(request)
            return change(b"".join(iter(lambda: server.recv(65536), b"")))

    return answer


@contextmanager
def strange_server(answer: Answering | bytes | None) -> Iterator[str]:
    """A server that gives every client this answer; None: it never answers."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        kept: list[socket.socket] = []

        def serve() -> None:
            while not stopped.is_set():
                try:
                    client, _ = listening.accept()
                except TimeoutError:
                    continue
                kept.append(client)
                if answer is not None:
                    threading.Thread(target=_say, args=(client, answer)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stopped.set()
            thread.join()
            for client in kept:
                client.close()


def _say(client: socket.socket, answer: Answering | bytes) -> None:
    try:
        client.settimeout(30)
        client.sendall(client.recv(100) and answer if isinstance(answer, bytes) else answer(_request(client)))
        client.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the client did not want to hear it all


def _request(client: socket.socket) -> bytes:
    received = b""
    while True:
        head, _, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if length is not None and len(body) >= int(length[1]):
            return received
        if not (part := client.recv(65536)):
            raise ConnectionError("the client has gone")
        received += part
