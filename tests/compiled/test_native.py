"""The parts written in C are built when they are first used, once for the same sources and compiler."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.conftest import missing

from luthier import compiled as native
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError

ROOT = Path(__file__).parents[2]
DECLARED = """\
[answer]
purpose = "prints a number"
compiler = "cc"
sources = ["answer.c"]
output = "answer"
"""
PROGRAM = '#include <stdio.h>\n#include "number.h"\nint main(void) { printf("%d\\n", NUMBER); return 0; }\n'


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small program, declared as one of luthier's, and an empty data directory."""
    if shutil.which("cc") is None:
        missing("a C compiler (cc) is not installed; as root: sh tests/services.sh")
    folder = tmp_path / "sources" / "answer"
    folder.mkdir(parents=True)
    (folder / "build.toml").write_text(DECLARED)
    (folder / "answer.c").write_text(PROGRAM)
    (folder / "number.h").write_text("#define NUMBER 42\n")
    monkeypatch.setattr(native, "_sources", lambda: (tmp_path / "sources", tmp_path / "testbeds"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return folder


def answer() -> str:
    return subprocess.run([native.library("answer")], capture_output=True, text=True, check=True).stdout.strip()


def test_it_is_built_once_and_again_when_a_source_changes(sources: Path) -> None:
    assert native.part("answer").built() is None
    first = native.library("answer")
    made_at = first.stat().st_mtime_ns
    assert (answer(), native.library("answer"), first.stat().st_mtime_ns) == ("42", first, made_at)
    (sources / "number.h").write_text("#define NUMBER 43\n")
    assert answer() == "43"
    assert native.library("answer") != first
    assert first.exists()  # a run that is under way may need it


def test_another_compiler_or_flag_is_another_build(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = native.library("answer")
    wrapper = tmp_path / "mycc"
    wrapper.write_text('#!/bin/sh\n[ "$1" != --version ] || { echo my compiler 7; exit; }\nexec cc -DNUMBER=7 "$@"\n')
    wrapper.chmod(0o755)
    (sources / "number.h").write_text("#ifndef NUMBER\n#define NUMBER 42\n#endif\n")
    monkeypatch.setenv("CC", str(wrapper))
    assert answer() == "7"
    monkeypatch.delenv("CC")
    monkeypatch.setenv("CFLAGS", "-DNUMBER=8")
    assert answer() == "8"
    assert first.exists()


def test_many_processes_build_it_at_once(sources: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from luthier import compiled as native; "
        f"native._sources = lambda: (Path({str(sources.parent)!r}),); print(native.library('answer'))"
    )

    def build(_: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(6) as pool:
        ended = list(pool.map(build, range(6)))
    assert [one.returncode for one in ended] == [0] * 6, ended[0].stderr
    assert {one.stdout for one in ended} == {f"{native.library('answer')}\n"}
    assert [path.name for path in (Path(os.environ["XDG_DATA_HOME"]) / "luthier" / "native").iterdir()] == [
        native.library("answer").parent.name
    ]


def test_what_is_missing_is_one_line(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-cc -m64")
    with pytest.raises(UnavailableError, match="and CC names 'no-such-cc', which is not installed"):
        native.library("answer")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(sources))
    expected = (
        r"answer: needs a C compiler, and cc is not installed; install it \(Debian: gcc and libc6-dev\), or set CC"
    )
    with pytest.raises(UnavailableError, match=expected):
        native.library("answer")
    (sources / "build.toml").write_text(DECLARED.replace('"cc"', '"mpicc"'))
    native._declared.cache_clear()
    with pytest.raises(UnavailableError, match="needs the compiler of an MPI, and mpicc is not installed"):
        native.library("answer")
    with pytest.raises(NotFoundError, match="unknown native part 'anser'; did you mean 'answer'"):
        native.library("anser")


def test_without_a_compiler_what_was_built_ahead_is_used(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = native.library("answer")
    monkeypatch.setenv("PATH", str(sources))
    assert native.library("answer") == ahead
    (sources / "number.h").write_text("#define NUMBER 43\n")  # that is another source
    with pytest.raises(UnavailableError, match="needs a C compiler"):
        native.library("answer")


def test_a_source_that_does_not_compile_names_the_line(sources: Path) -> None:
    (sources / "answer.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(UnavailableError, match=r"^answer: cannot be built: answer\.c:1:\d+: error: .nothing. "):
        native.library("answer")
    assert not list((Path(os.environ["XDG_DATA_HOME"]) / "luthier" / "native").iterdir())


def test_a_folder_that_cannot_be_written_is_one_line(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sources / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(sources / "file"))
    with pytest.raises(UnavailableError, match=r"answer: cannot be kept in .*: Not a directory"):
        native.library("answer")


def test_a_path_that_cannot_be_preloaded_is_refused(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.preload(["answer", "answer"]) == ":".join([str(native.library("answer"))] * 2)
    monkeypatch.setenv("XDG_DATA_HOME", str(sources / "a folder"))
    with pytest.raises(InvalidInputError, match="cannot be preloaded; set XDG_DATA_HOME"):
        native.preload(["answer"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_it_is_built_where_the_wheel_is_installed(wheel: Path, tmp_path: Path) -> None:
    """Installed into a new environment without the repository, and used from there."""
    if shutil.which("cc") is None:
        missing("a C compiler (cc) is not installed; as root: sh tests/services.sh")
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(site)]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    others = [path for path in map(Path, sys.path) if path.name == "site-packages"]
    assert others
    (site / "others.pth").write_text("".join(f"{path}\n" for path in others))
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def luthier(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(python), "-m", "luthier", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    where = subprocess.run(
        [str(python), "-c", "import luthier; print(luthier.__file__)"], capture_output=True, text=True, check=True
    )
    assert where.stdout.startswith(str(site))
    listed = luthier("native", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert [one["name"] for one in json.loads(listed.stdout)] == ["io", "io-mpi", "slurm-ask"]
    for name in ("io", "slurm-ask"):
        path = Path(luthier("native", "path", name).stdout.strip())
        assert path.is_file()
        assert path.stat().st_mode & stat.S_IXUSR
        assert path.is_relative_to(tmp_path / "data")
    refused = luthier("native", "path", "sbbd")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.rstrip() == (
        "luthier: unknown native part 'sbbd'; known: io, io-mpi, slurm-ask; the systems of testbeds/ are built from a "
        "clone only: clone the repository and run pip install -e . in its folder"
    )


def test_a_clone_has_the_systems_to_tune_too() -> None:
    folders = {name: part.folder.relative_to(ROOT).parts[0] for name, part in native.parts().items()}
    assert {name for name, folder in folders.items() if folder == "native"} == {"io", "io-mpi", "slurm-ask"}
    assert {name for name, folder in folders.items() if folder == "testbeds"} >= {"sro", "sbb", "sbbd", "collbench"}


def test_a_header_of_another_folder_counts_as_a_source(sources: Path) -> None:
    first = native.library("answer")
    shared = sources.parent / "shared" / "number.h"
    shared.parent.mkdir()
    (sources / "number.h").rename(shared)
    (sources / "build.toml").write_text(f'{DECLARED}flags = ["-I../shared"]\n')
    native._declared.cache_clear()
    assert answer() == "42"
    second = native.library("answer")
    shared.write_text("#define NUMBER 43\n")
    assert answer() == "43"
    assert len({first, second, native.library("answer")}) == 3


def test_the_wheel_has_the_sources_of_native_and_no_testbeds(wheel: Path) -> None:
    packed = set(ZipFile(wheel).namelist())
    assert not [name for name in packed if re.search("testbed|sbb|sro|fakeapp|collbench", name)]
    assert "luthier/native/quantity.h" in packed
    shipped = [part for part in native.parts().values() if part.folder.is_relative_to(ROOT / "native")]
    assert shipped
    for part in shipped:
        needed = [*(part.folder / name for name in part.sources), *part.folder.glob("*.h"), part.folder / "build.toml"]
        for path in needed:
            assert f"luthier/native/{path.relative_to(ROOT / 'native')}" in packed
