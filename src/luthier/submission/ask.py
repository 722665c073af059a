"""`luthier submit`: ask a server which configuration a job gets, then call sbatch with the script as it is.

A job is never delayed or broken: whatever goes wrong with the question, the job is submitted without a configuration.
Only the standard library is imported, and little of it, because this runs before every job.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from luthier.errors import InvalidInputError, LuthierError, NotFoundError
from luthier.spec.environment_rules import MOST_VARIABLES, problem_of_variable
from luthier.submission.answer_signature import (
    KEY_BYTES,
    NONCE_BYTES,
    NONCE_HEADER,
    SIGNATURE_HEADER,
    check_with,
    signed_text,
)

TIME_LIMIT_MS = 200
"""How long the server may take by default, from looking up its address to the last byte of the answer."""

LONGEST_LIMIT_MS = 2000

_FOR_THE_START_S = 0.06
"""How much the start of this process may take in addition; what is above it is taken from the time for the server."""

_SHORTEST_WAIT_S = 0.03

LONGEST_SCRIPT = 256 * 1024
CONFIG = "luthier-submit.conf"
"""The file beside slurm.conf that names the server and the token."""

KEY = f"[0-9a-f]{{{2 * KEY_BYTES}}}"
"""How the public key of a server is written."""

_LONGEST_ANSWER = 64 * 1024
_OFF = frozenset(["off", "0", "no", "false"])
_COMMENT = re.compile(r"--comment(=|$)")
_SIGNATURE = rb"(?im)^%s: ([0-9a-f]{128})\r?$" % SIGNATURE_HEADER.encode()


def main(words: Sequence[str]) -> NoReturn:
    """Submit a job; an error is one line and exit code 2."""
    try:
        submit(words)
    except LuthierError as error:
        print(f"luthier: {error}", file=sys.stderr)  # noqa: T201 - the command line does so
    sys.exit(2)


def submit(words: Sequence[str]) -> None:
    """Submit a job: SCRIPT, options of sbatch, and after `--` arguments of the script. Returns only if that fails."""
    script, options, arguments = split(words)
    asks = "--no-tuning" not in words[: len(words) - len(arguments)]
    environment = dict(os.environ)
    if asks and not is_off(environment, options):
        answer = asked(script, options, environment)
        for line in answer.said:
            print(f"luthier: {line}", file=sys.stderr)  # noqa: T201 - the one line for the user
        # The plug-in of Slurm does not ask again where this variable is set.
        environment |= answer.environment or {"LUTHIER_DECISION": "none"}
        options = [*answer.options, *options]
    elif not asks:
        environment["LUTHIER"] = "off"  # for the plug-in of Slurm
    try:
        os.execvpe("sbatch", ["sbatch", *options, script, *arguments], environment)  # noqa: S606 - the user's own job
    except OSError as error:
        raise NotFoundError(f"sbatch: {error.strerror}; luthier submit needs the commands of Slurm") from None


def split(words: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """The script, the options of sbatch, and the arguments of the script."""
    end = words.index("--") if "--" in words else len(words)
    before, arguments = [word for word in words[:end] if word != "--no-tuning"], list(words[end + 1 :])
    if not before or before[0].startswith("-"):
        raise InvalidInputError(
            "submit: the script comes first, then options of sbatch: luthier submit job.sh --nodes=4 -- ARGUMENTS"
        )
    return before[0], before[1:], arguments


def is_off(environment: Mapping[str, str], options: Sequence[str]) -> bool:
    """Whether the user wants the job to be left alone."""
    said = [option for option in options if "luthier:off" in option]
    return environment.get("LUTHIER", "").lower() in _OFF or bool(said)


class AnswerToJob:
    """What is to be done for a job: variables and options to add, and a line for the user."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.options: list[str] = []
        self.said: list[str] = []


class Server(NamedTuple):
    """Where to ask, with which key it signs, and how long to wait for the answer."""

    host: str
    port: int
    token: str
    key: bytes
    limit_s: float


def asked(script: str, options: Sequence[str], environment: Mapping[str, str]) -> AnswerToJob:
    """The decision of the server; an empty answer if it does not come in time."""
    try:
        server = server_of(environment)
    except (OSError, ValueError):
        return AnswerToJob()
    found: list[AnswerToJob] = []
    # A thread, because looking up an address or reading a file on a dead file system has no time limit of its own.
    asking = threading.Thread(target=lambda: found.append(_asked(script, options, environment, server)), daemon=True)
    threading.excepthook = lambda _: None
    asking.start()
    asking.join(min(server.limit_s, max(_SHORTEST_WAIT_S, server.limit_s + _FOR_THE_START_S - _age_s())))
    return found[0] if found else AnswerToJob()


def _asked(script: str, options: Sequence[str], environment: Mapping[str, str], server: Server) -> AnswerToJob:
    import json
    import pwd
    import socket

    give_up_at = time.monotonic() + server.limit_s
    text = script_text(script)
    job = {
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "script": text,
        "options": [_sendable(option) for option in (*_from_environment(environment), *options)],
        "file": _sendable(script),
        "variables": sorted(name for name in environment if name.isascii())[:5_000],
        "utc_offset_s": time.localtime().tm_gmtoff,
    }
    body = json.dumps(job).encode()
    nonce, check = os.urandom(NONCE_BYTES), check_with(server.key)
    if check is None:
        return AnswerToJob()  # an answer could not be checked
    head = (
        f"POST /api/v1/submissions?form=lines HTTP/1.0\r\nHost: {server.host}\r\n"
        f"Authorization: Bearer {server.token}\r\n{NONCE_HEADER}: {nonce.hex()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((server.host, server.port), timeout=_left(give_up_at)) as connection:
        connection.sendall(head.encode() + body)
        received = b""
        while len(received) < _LONGEST_ANSWER:
            connection.settimeout(_left(give_up_at))
            part = connection.recv(_LONGEST_ANSWER)
            if not part:
                break
            received += part
    head_of_answer, _, answer = received.partition(b"\r\n\r\n")
    signature = re.search(_SIGNATURE, head_of_answer)
    if signature is None or not check(bytes.fromhex(signature[1].decode()), signed_text(nonce, body, answer)):
        return AnswerToJob()
    return read_answer(received.decode("ascii"), options, text)


def _age_s() -> float:
    """How long this process has existed."""
    try:
        with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123 - importing pathlib takes long
            began = int(stat.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError):
        return 0.0


def _sendable(text: str) -> str:
    """The text without bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _left(give_up_at: float) -> float:
    return max(0.001, give_up_at - time.monotonic())


def _from_environment(environment: Mapping[str, str]) -> list[str]:
    """The options that sbatch reads from variables, as far as they matter here."""
    names = {"SBATCH_EXPORT": "--export", "SBATCH_JOB_NAME": "--job-name"}
    return [f"{option}={environment[name]}" for name, option in names.items() if name in environment]


def script_text(path: str) -> str:
    """The text of a script; a pipe, or a file that is too long, raises `OSError` or `ValueError`."""
    import stat

    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as readable:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("not a file")
        contents = readable.read(LONGEST_SCRIPT + 1)
    if len(contents) > LONGEST_SCRIPT or b"\0" in contents:
        raise ValueError("not a script")
    return contents.decode("utf-8", "replace")


def server_of(environment: Mapping[str, str]) -> Server:
    """The server to ask: from LUTHIER_URL, LUTHIER_TOKEN and LUTHIER_KEY, else from the file beside slurm.conf."""
    values = {name: environment.get(f"LUTHIER_{name.upper()}", "") for name in ("url", "token", "key")}
    if not values["url"]:
        folder = environment.get("SLURM_CONF", "").rpartition("/")[0] or "/etc/slurm"
        with open(f"{folder}/{CONFIG}", encoding="ascii") as file:  # noqa: PTH123 - importing pathlib takes long
            values = dict(line.rstrip("\n").split(" ", 1) for line in file if " " in line)
    url, token, key = (values.get(name, "") for name in ("url", "token", "key"))
    found = re.fullmatch(r"http://(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})/?", url)
    if found is None or not re.fullmatch(r"[\w.~+/=-]{1,512}", token, re.ASCII) or not re.fullmatch(KEY, key):
        raise ValueError("no server")
    limit = values.get("limit_ms", "")
    limit_ms = min(int(limit), LONGEST_LIMIT_MS) if re.fullmatch("[1-9][0-9]{0,5}", limit) else TIME_LIMIT_MS
    return Server(found[1].strip("[]"), int(found[2]), token, bytes.fromhex(key), limit_ms / 1000)


def read_answer(received: str, options: Sequence[str], script: str) -> AnswerToJob:
    """What the server said, checked as if it came from a stranger."""
    head, _, body = received.partition("\r\n\r\n")
    lines = body.split("\n")
    if not re.match(r"HTTP/1\.[01] 201 ", head) or lines[:1] != ["luthier 1"] or lines[-2:] != ["end", ""]:
        raise ValueError("no answer")
    answer, decision = AnswerToJob(), ""
    for line in lines[1:-2]:
        key, space, value = line.partition(" ")
        if key == "decision" and re.fullmatch(r"[0-9]{1,10}", value, re.ASCII):
            decision = value
        elif key == "set":
            name, equals, text = value.partition("=")
            if not equals or problem_of_variable(name, text) is not None or name in os.environ:
                raise ValueError("not a variable to set")
            answer.environment[name] = text
        elif key == "say" and space and value.isascii() and value.isprintable():
            answer.said.append(value)
        else:
            raise ValueError("not an answer")
    if len(answer.environment) > MOST_VARIABLES or not decision:
        raise ValueError("not an answer")
    answer.environment["LUTHIER_DECISION"] = decision
    commented = any(map(_COMMENT.match, options)) or re.search(r"^#SBATCH\s.*--comment\b", script, re.MULTILINE)
    answer.options = [] if commented else [f"--comment=luthier:{decision}"]
    return answer
