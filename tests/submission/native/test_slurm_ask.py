"""The program that asks the server for the plug-in of Slurm, and the rules that it shares with the others."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import missing
from tests.online.native.conftest import SANITIZERS, compiled, need
from tests.submission.native.environment_rules import HEADER, header
from tests.submission.strange_server import ANSWERS, KEY, RIGHT, before, signed, strange_server
from tests.torture import repeats

from luthier.spec.environment_rules import LONGEST_VALUE, MOST_VARIABLES, REFUSED, problem_of_variable
from luthier.submission.ask import read_answer
from luthier.submission.slurm_plugins import lua_rules

HERE = Path(__file__).parent
SOURCES = HEADER.parent
STRICT = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-O1", f"-I{SOURCES}", *SANITIZERS]
LUAS = [name for name in ("lua5.1", "lua5.3", "lua5.4", "luajit") if shutil.which(name)]

HARMLESS = """
    OMP_NUM_THREADS OMP_PROC_BIND OMP_STACKSIZE KMP_AFFINITY GOMP_SPINCOUNT MKL_NUM_THREADS OPENBLAS_NUM_THREADS
    OMPI_MCA_coll_tuned_bcast_algorithm OMPI_MCA_btl OMPI_MCA_btl_tcp_eager_limit I_MPI_ADJUST_BCAST I_MPI_FABRICS
    MPIR_CVAR_BCAST_INTRA_ALGORITHM UCX_TLS UCX_NET_DEVICES FI_PROVIDER NCCL_ALGO MALLOC_ARENA_MAX JULIA_NUM_THREADS
    HDF5_USE_FILE_LOCKING SBB_FLASH_CACHE KNOB_LEVEL a _x level LANGEVIN_STEPS R_CUT
    PGAS_SEGMENT_SIZE MANDELBROT_SIZE TERMINATION_TOLERANCE SPARK_EXECUTOR_MEMORY MAILBOX_COUNT
""".split()  # noqa: SIM905 - a list of words
"""Variables that experiments tune."""

DANGEROUS = """
    OMPI_MCA_orte_fork_agent OMPI_MCA_plm_rsh_agent OMPI_MCA_orte_launch_agent OMPI_MCA_mca_base_param_files
    TAR_OPTIONS SPARK_SUBMIT_OPTS HYDRA_LAUNCHER_EXEC I_MPI_HYDRA_BOOTSTRAP_EXEC OPAL_PREFIX OMPI_PREFIX OPENSSL_CONF
    CC OMPI_CC MPICH_CC CXX RSYNC_RSH CVS_RSH https_proxy HTTP_PROXY all_proxy LOCALDOMAIN HOSTALIASES RES_OPTIONS
    NODE_OPTIONS RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS GIT_SSH_COMMAND GIT_PAGER ENV BASH_ENV LUA_INIT LUA_INIT_5_4
    PERL5OPT PYTHONSTARTUP PYTHONPATH LD_PRELOAD ld_preload LD_AUDIT DARSHAN_PRELOAD PAGER MANPAGER LESSOPEN EDITOR
    VISUAL PATH HOME IFS PS4 PROMPT_COMMAND SHELL SHELLOPTS GCONV_PATH MAKEFLAGS CFLAGS RUSTC_WRAPPER TAPE TMPDIR
    HDF5_PLUGIN_PATH HDF5_VOL_CONNECTOR OMP_TOOL_LIBRARIES NCCL_NET_PLUGIN SLURM_CONF LUTHIER_URL PMIX_MCA_psec
    PRTE_MCA_plm_ssh_agent GCC_EXEC_PREFIX CUDA_INJECTION64_PATH MPLBACKEND R_PROFILE R_LIBS DASK_CONFIG PGOPTIONS
    PGHOST TERM LANG
""".split()  # noqa: SIM905 - a list of words
"""Variables that run something, read something or connect to somewhere else."""

ODD_NAMES = ["", "1A", "A B", "A-B", "A=B", "A\n", "\nA", "É", "A\0", "\0", "A" * 100, "A" * 101]
VALUES = ["1", "", "self", "x.y:z+1=@%^-_", "a b", "/x", "a;b", "$x", "`x`", "'", '"', "\\", "a\n", "\0", "é", "~"]

NAME = st.text(st.sampled_from("AZaz09_-=. é\0\n"), max_size=8)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
LINE = st.one_of(
    TEXT.map("say {}".format),
    st.sampled_from(["decision 7", "decision 12345678901", "decision ", "end", "run x", "say", "say hello", ""]),
    st.builds("set {}={}".format, st.sampled_from([*HARMLESS, *DANGEROUS]), TEXT),
    st.builds("set X{}={}".format, NAME, st.sampled_from(["", "1", "a b", "/x", "$(id)"])),
)


def variables() -> Iterator[tuple[str, str]]:
    """Names and values, thousands of them: those of the list, those beside them, and values of all kinds."""
    chance = random.Random(1)
    for pattern in REFUSED:
        for filling in ("", "_B_"):
            name = pattern.replace("*", filling)
            place = chance.randrange(len(name))
            yield from ((name, "1"), (name.lower(), "1"), (f"X{name}", "1"), (f"{name}X", "1"))
            yield (name[:place] + chance.choice("AZ_09") + name[place + 1 :], "1")
            yield (name[:place] + name[place + 1 :], "1")
    for name in (*HARMLESS, *DANGEROUS, *ODD_NAMES):
        yield from ((name, value) for value in VALUES)
    for length in (LONGEST_VALUE, LONGEST_VALUE + 1):
        yield "OMP_X", "1" * length
    for byte in range(256):
        yield "OMP_X", chr(byte).replace(",", "")  # a comma is allowed, but not in the plug-in
        yield f"O{chr(byte)}P", "1"


def by_program(argv: Sequence[str | Path], lines: Sequence[str]) -> list[bool]:
    """What a driver says to each line."""
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(argv, input=given, capture_output=True, text=True, env={}, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    said = done.stdout.split()
    assert len(said) == len(lines)
    return [one == "1" for one in said]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The rules of the C program."""
    need("cc")
    made = tmp_path_factory.mktemp("c") / "driver"
    return [compiled(made, *STRICT, HERE / "answer_driver.c", SOURCES / "answer.c")]


@pytest.fixture(scope="module", params=LUAS or ["lua5.1"])
def in_lua(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The rules of the plug-in, as it is installed, in a version of Lua."""
    if not LUAS:
        missing("lua5.1 is not installed; as root: sh tests/services.sh")
    plugin = tmp_path_factory.mktemp("lua") / "cli_filter.lua"
    text = (SOURCES / "cli_filter.lua").read_text(encoding="utf-8")
    plugin.write_text(text.replace("@FOLDER@", "/nowhere").replace("@RULES@", lua_rules()), encoding="utf-8")
    return [str(shutil.which(request.param)), HERE / "plugin_driver.lua", plugin]


def test_the_header_is_that_of_the_list() -> None:
    assert HEADER.read_text(encoding="utf-8") == header(), "run: python -m tests.submission.native.environment_rules"


def test_python_c_and_lua_refuse_the_same_variables(in_c: list[str | Path], in_lua: list[str | Path]) -> None:
    asked = sorted(set(variables()))
    lines = [f"v {name.encode().hex()} {value.encode().hex()}" for name, value in asked]
    allowed = [problem_of_variable(name, value) is None for name, value in asked]
    assert 300 < sum(allowed) < len(allowed) - 2000
    for said in (by_program(in_c, lines), by_program(in_lua, lines)):
        assert [one for one, own, other in zip(asked, allowed, said, strict=True) if own != other] == []


def test_only_the_plug_in_refuses_commas(in_c: list[str | Path], in_lua: list[str | Path]) -> None:
    line = f"v {b'OMP_PLACES'.hex()} {b'cores,threads'.hex()}"
    assert problem_of_variable("OMP_PLACES", "cores,threads") is None
    assert (by_program(in_c, [line]), by_program(in_lua, [line])) == ([True], [False])


@pytest.mark.parametrize("name", DANGEROUS)
def test_variables_that_are_never_set(name: str) -> None:
    assert problem_of_variable(name, "1") is not None


@pytest.mark.parametrize("name", HARMLESS)
def test_variables_that_may_be_approved(name: str) -> None:
    assert problem_of_variable(name, "1") is None


def is_read(body: bytes) -> bool:
    """Whether `luthier submit` uses such an answer."""
    try:
        read_answer((b"HTTP/1.1 201 Created\r\n\r\n" + body).decode("ascii"), [], "")
    except ValueError:
        return False
    return True


def bodies() -> list[bytes]:
    """Answers of which some are right."""
    made: list[bytes] = [
        b"",
        b"luthier 1\nend\n",
        b"luthier 1\ndecision 1\nend",
        RIGHT + b"x",
        RIGHT + b"\n",
        RIGHT[1:],
    ]

    @given(st.lists(LINE, max_size=4), st.booleans())
    def collect(lines: list[str], is_decided: bool) -> None:
        made.append("\n".join(["luthier 1", *["decision 5"] * is_decided, *lines, "end\n"]).encode())

    collect()
    for more in (0, 1):
        sets = "".join(f"set X{i}=1\n" for i in range(MOST_VARIABLES + more))
        made.append(f"luthier 1\ndecision 5\n{sets}end\n".encode())
    return [*made, *(RIGHT.replace(b"hello", bytes([byte])) for byte in range(256) if byte != 10)]


def test_python_and_lua_use_the_same_answers_and_c_lets_no_other_pass(
    in_c: list[str | Path], in_lua: list[str | Path]
) -> None:
    asked = bodies()
    lines = [f"a {body.hex()}" for body in asked]
    used = [is_read(body) for body in asked]
    assert 95 < sum(used) < len(asked) - 100
    lua, c = by_program(in_lua, lines), by_program(in_c, lines)
    assert [body for body, own, other in zip(asked, used, lua, strict=True) if own != other] == []
    assert [body for body, own, other in zip(asked, used, c, strict=True) if own and not other] == []
    unsafe = [not body.replace(b"\n", b"").decode("latin-1").isprintable() or not body.isascii() for body in asked]
    assert [body for body, is_unsafe, other in zip(asked, unsafe, c, strict=True) if is_unsafe and other] == []


class Asking:
    """The program, under the sanitizers, with what it is given."""

    def __init__(self, program: Sequence[str | Path], folder: Path, limit_ms: int = 2000) -> None:
        self.program, self.config, self.request = program, folder / "submit.conf", folder / "request"
        self.limit_ms = limit_ms
        self.request.write_bytes(b"text\0#!/bin/sh\nsrun x\n\0option\0--nodes=1\0")

    def __call__(self, url: str, key: str = KEY) -> bytes:
        """What it prints."""
        self.config.write_text(f"url {url}\ntoken t\nkey {key}\nlimit_ms {self.limit_ms}\n")
        # What it has allocated is left to the end of the process.
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        argv = [*self.program, self.config, self.request]
        done = subprocess.run(argv, capture_output=True, env=environment, check=False)
        assert done.stderr == b""
        return done.stdout

    def until_printed(self, url: str) -> bytes:
        """What it prints when the machine is not too busy for its time limit."""
        return next(filter(None, (self(url) for _ in range(20))), b"")


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    need("cc")
    folder = tmp_path_factory.mktemp("ask")
    sources = [SOURCES / "ask.c", SOURCES / "answer.c"]
    return Asking([compiled(folder / "luthier-ask", *STRICT, *sources, "-ldl")], folder)


def test_a_signed_answer_is_printed(ask: Asking) -> None:
    with strange_server(signed(RIGHT)) as url:
        assert ask.until_printed(url) == RIGHT
    with strange_server(before(signed(RIGHT), lambda answer: answer.replace(b"Luthier-S", b"luthier-s"))) as url:
        assert ask.until_printed(url) == RIGHT  # names of headers have no case


@pytest.mark.parametrize("kind", sorted(ANSWERS.keys() - {"hanging", "half an answer", "unknown line"}))
def test_nothing_is_printed(ask: Asking, kind: str) -> None:
    with strange_server(ANSWERS[kind]) as url:
        assert ask(url) == b""


@pytest.mark.parametrize(
    "key",
    ["", KEY[:-1], f"{KEY}0", f"A{KEY[1:]}", f"{KEY} ", "g" * 64, "0" * 2000],
    ids=["empty", "short", "long", "capital", "space after", "no digits", "very long"],
)
def test_without_a_key_nobody_is_asked(ask: Asking, key: str) -> None:
    asked: list[bytes] = []
    with strange_server(lambda request: asked.append(request) or b"") as url:  # type: ignore[func-returns-value]
        assert ask(url, key) == b""
    assert asked == []


def test_an_old_answer_is_of_no_use(ask: Asking) -> None:
    kept: list[bytes] = []

    def recorded(answer: bytes) -> bytes:
        kept.append(answer)
        return kept[0]

    with strange_server(before(signed(RIGHT), recorded)) as url:
        assert ask.until_printed(url) == RIGHT
        assert [ask(url) for _ in range(3)] == [b""] * 3


def test_damaged_answers(ask: Asking) -> None:
    """Whatever is changed: nothing is printed, or all that was signed."""
    chance = random.Random(2)

    def damaged(answer: bytes) -> bytes:
        changed = bytearray(answer)
        for _ in range(chance.randint(1, 4)):
            place, kind = chance.randrange(len(changed)), chance.randrange(4)
            if kind == 0:
                changed[place] ^= 1 << chance.randrange(8)
            elif kind == 1:
                changed[place:place] = chance.randbytes(chance.choice((1, 3, 200)))
            elif kind == 2:
                del changed[place : place + chance.choice((1, 3, 200))]
            else:
                changed[place:place] = changed[chance.randrange(len(changed)) :]
            changed = changed or bytearray(b"\n")
        return bytes(changed)

    with strange_server(before(signed(RIGHT), damaged)) as url:
        assert {ask(url) for _ in range(repeats(60, 3000))} <= {b"", RIGHT}


def test_valgrind_finds_no_error(tmp_path: Path) -> None:
    need("cc", "valgrind")
    text = (SOURCES / "ask.c").read_text(encoding="utf-8")
    (tmp_path / "ask.c").write_text(text.replace("LONGEST_LIMIT_MS = 2000", "LONGEST_LIMIT_MS = 600000"))
    sources = [tmp_path / "ask.c", SOURCES / "answer.c"]
    program = compiled(tmp_path / "luthier-ask", f"-I{SOURCES}", "-g", *sources, "-ldl")
    patient = Asking(["valgrind", "-q", "--error-exitcode=99", program], tmp_path, 600_000)
    with strange_server(signed(RIGHT)) as url:
        assert patient(url) == RIGHT
    for kind in sorted(ANSWERS.keys() - {"hanging", "half an answer", "unknown line"})[: repeats(1, len(ANSWERS))]:
        with strange_server(ANSWERS[kind]) as url:
            assert patient(url) == b""
