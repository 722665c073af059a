"""Small C programs and ordinary commands with and without each preload library: same output, exit codes and files."""

import difflib
import functools
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.native.preloaded.commands import COMMANDS, NEEDS, make_inputs
from tests.torture import repeats

from testbeds.real import sbb

SOURCES = Path(__file__).with_name("preloaded")
BOUND_S = 60
IS_ROOT = os.geteuid() == 0
# Not wrong data: what is on its way to the file would replace what such a process wrote directly.
REFUSED = "libsbb: the user of this process may not ask the daemon in SBB_FOLDER; start it as that user\n"
PERSON = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
          (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "2000-01-01T00:00:00Z"))}  # fmt: skip
FIXED = {"LC_ALL": "C", "TZ": "UTC", "LUTHIER_IO_QUIET": "1", "PYTHONDONTWRITEBYTECODE": "1", **PERSON}
COMPILED = ["-O1", "-O2 -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64", "-O0 -fsanitize=undefined"]
"""Flags choose which functions of the C library a program calls. The short form has the first."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program has left."""

    code: int
    out: str
    err: str
    files: dict[str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Preload:
    """A way to run programs: with these variables, in folders below `root`."""

    root: Path
    variables: Mapping[str, str]
    drain: Callable[[], None]
    proof: Callable[[], int]
    """How much the library has seen so far. One that does nothing would pass every comparison."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Programs that cannot do the same, with what they say instead."""
    every: int = 1
    """The short form runs so many of the commands: each, each second, ..."""


@dataclass(frozen=True, slots=True)
class Work:
    """Programs by name, the files that they work on, and what they leave without a library."""

    programs: Mapping[str, Sequence[object]]
    inputs: Path | None
    left: Mapping[str, Outcome]


def content(path: Path) -> tuple[object, ...]:
    """What can be compared of a file."""
    status = path.lstat()
    data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
    target = str(path.readlink()) if path.is_symlink() else ""
    return (stat.filemode(status.st_mode), status.st_nlink, len(data), hash(data), data[:200], target)


def run(words: Sequence[object], folder: Path, variables: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a program in a folder; the libraries are preloaded into it, not into `env`."""
    command = [
        "env",
        "-C",
        str(folder),
        *(f"{name}={value}" for name, value in {**FIXED, **variables}.items()),
        *map(str, words),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            err += b"did not end"
    texts = [text.decode("utf-8", "replace").replace(str(folder), "FOLDER") for text in (out, err)]
    return process.returncode, texts[0], re.sub(r" *\b\d{3,}\b", " N", texts[1])


def run_all(
    preload: Preload, programs: Mapping[str, Sequence[object]], inputs: Path | None = None
) -> dict[str, Outcome]:
    """Run every program in a folder of its own, two at a time; compare the files after everything was drained."""

    def run_one(name: str) -> tuple[int, str, str]:
        folder = preload.root / name
        if inputs is None:
            folder.mkdir()
        else:
            shutil.copytree(inputs, folder)
        return run(programs[name], folder, preload.variables)

    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(programs, pool.map(run_one, programs), strict=True))
    preload.drain()
    found = {}
    for name, (code, out, err) in ended.items():
        folder = preload.root / name
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
        found[name] = Outcome(code, out, err, {str(path.relative_to(folder)): content(path) for path in paths})
        shutil.rmtree(folder)
    return found


def lines_of(outcome: Outcome) -> list[str]:
    """For a comparison that people read."""
    files = [f"{name}: {found}" for name, found in outcome.files.items()]
    return [f"exit code {outcome.code}", *outcome.out.splitlines(), *outcome.err.splitlines(), *files]


def differences(plain: Mapping[str, Outcome], preloaded: Mapping[str, Outcome]) -> str:
    """Empty, or what the programs did differently."""
    return "\n".join(
        line
        for name in preloaded
        if plain[name] != preloaded[name]
        for line in difflib.unified_diff(lines_of(plain[name]), lines_of(preloaded[name]), name, "preloaded", n=1)
    )


@pytest.fixture(scope="module", params=COMPILED[: repeats(1, 3)], ids=lambda flags: flags.split()[0])
def small_programs(request: pytest.FixtureRequest, plain: Preload, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """One executable contains them all."""
    if shutil.which("cc") is None:
        missing("a C compiler (cc) is not installed; as root: sh tests/services.sh")
    program = tmp_path_factory.mktemp("programs") / "programs"
    flags = ["-std=gnu11", "-w", "-pthread", *request.param.split()]  # -w: many are wrong on purpose
    subprocess.run(["cc", *flags, "-o", program, *sorted(SOURCES.glob("*.c"))], check=True)
    names = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    programs = {name: [program, name] for name in names}
    return Work(programs, None, run_all(plain, programs))


@pytest.fixture(scope="module")
def commands(plain: Preload, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Those that are installed here."""
    inputs = tmp_path_factory.mktemp("inputs")
    make_inputs(inputs)
    here = {name: ["bash", "-c", text] for name, text in COMMANDS.items() if shutil.which(NEEDS.get(name, "sh"))}
    if "cc" not in here or "git" not in here:
        missing("gcc or git is not installed; as root: sh tests/services.sh")
    return Work(here, inputs, run_all(plain, here, inputs))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Preload:
    return Preload(tmp_path_factory.mktemp("plain"), {}, lambda: None, lambda: 0)


@pytest.fixture(scope="module", params=["sbb flash", "sbb ram", "sro", "io"])
def preload(
    request: pytest.FixtureRequest, built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Preload]:
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    root = folder / "target"
    root.mkdir()
    if request.param == "sro":
        lines = folder / "stats"
        lines.touch()
        variables = {"LD_PRELOAD": str(built("sro")), "SRO_STATS": str(lines)}
        yield Preload(root, variables, lambda: None, lambda: lines.read_bytes().count(b"\n"), every=4)
    elif request.param == "io":
        (folder / "reports").mkdir()
        variables = {"LD_PRELOAD": str(built("io")), "LUTHIER_IO_COUNT": str(folder / "reports")}
        yield Preload(root, variables, lambda: None, lambda: len(list((folder / "reports").iterdir())), every=4)
    else:
        settings = {"SBB_MODE": request.param.split()[1], "SBB_RAM_CACHE": "8M", "SBB_FLASH_CACHE": "16M"}
        with sbb.daemon(built("sbbd"), folder / "f", root, settings) as running:
            variables = running.preload(built("sbb"))
            seen = functools.partial(running.counter, "writes")
            every = 1 if settings["SBB_MODE"] == "flash" else 3
            yield Preload(root, variables, running.drain, seen, {"user_changed": REFUSED} if IS_ROOT else {}, every)


def test_small_programs_do_the_same(small_programs: Work, preload: Preload) -> None:
    before = preload.proof()
    found = run_all(preload, small_programs.programs)
    others = {name: found.pop(name) for name in preload.others}
    assert len(found) > 100
    assert differences(small_programs.left, found) == ""
    assert preload.proof() > before + len(found) / 2
    for name, outcome in others.items():
        assert preload.others[name] in outcome.out + outcome.err


def test_commands_do_the_same(commands: Work, preload: Preload) -> None:
    before = preload.proof()
    names = list(commands.programs)[:: repeats(preload.every, 1)]
    found = run_all(preload, {name: commands.programs[name] for name in names}, commands.inputs)
    assert differences(commands.left, found) == ""
    assert preload.proof() > before + len(found)


def test_every_command_does_something(commands: Work) -> None:
    """One that only says "not found" would pass every comparison."""
    assert len(commands.left) > 40
    assert [name for name, outcome in commands.left.items() if outcome.code == 127 or "not found" in outcome.err] == []
    assert all(outcome.files for outcome in commands.left.values())
