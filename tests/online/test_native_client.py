"""The client for C, Fortran and MPI is installed: from a clone, from a wheel, with and without compilers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.conftest import missing

from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.native_client import client_sources, install_client

ROOT = Path(__file__).parents[2]
NEEDED = ("cc", "ar", "sh", "rm", "cp", "mkdir", "make")


def tools(folder: Path, *names: str) -> str:
    """A search path with these programs only."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        if found is None:
            missing(f"{name} is not installed; as root: sh tests/services.sh")
        (folder / name).symlink_to(found)
    return str(folder)


def test_parts_without_a_compiler_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", *NEEDED, "as", "ld"))
    monkeypatch.setenv("DESTDIR", "/nowhere")  # what is set for other programs does not matter
    monkeypatch.setenv("MAKEFLAGS", "n")
    installed = install_client(tmp_path / "client")
    assert list(installed.left_out) == [
        "left out: the MPI library, since mpicc is not installed",
        "left out: the Fortran module, since gfortran is not installed",
    ]
    names = {path.relative_to(tmp_path / "client").as_posix() for path in installed.files}
    assert {"include/luthier_online.h", "lib/libluthier_online.a", "lib/libluthier_online.so"} < names
    assert {name for name in names if name.endswith(".pc")} == {"lib/pkgconfig/luthier-online.pc"}
    assert not {name for name in names if name.endswith((".mod", "_mpi.a", "_fortran.a"))}
    assert {path for path in (tmp_path / "client").rglob("*") if path.is_file()} == set(installed.files)


@pytest.mark.parametrize("absent", ["make", "cc"])
def test_without_make_or_a_c_compiler_the_sources_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", *(name for name in NEEDED if name != absent)))
    installed = install_client(tmp_path / "client")
    (line,) = installed.left_out
    assert line.startswith(f"left out: all libraries, since {absent} is not installed; run later: make -C ")
    monkeypatch.undo()
    subprocess.run(line.partition("later: ")[2].split(), check=True, capture_output=True)
    assert (tmp_path / "client" / "lib" / "libluthier_online.so").exists()


@pytest.mark.parametrize("name", ["a b", "a$(touch x)", "a;b", "a'b", "a:b", "a#b", "a%b"])
def test_names_that_make_would_misread_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="choose another folder"):
        install_client(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="choose another folder"):
        install_client(tmp_path / "file")


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "luthier", "online", "--install-client", str(tmp_path / "client")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert str(tmp_path / "client" / "lib" / "pkgconfig" / "luthier-online.pc") in ended.stdout.splitlines()
    assert f"export PKG_CONFIG_PATH={tmp_path / 'client' / 'lib' / 'pkgconfig'}" in ended.stderr
    refused = subprocess.run([*command[:-1], str(tmp_path / "a b")], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_the_wheel_has_the_sources(tmp_path: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(tmp_path), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    shipped = {path.name for path in (tmp_path / "site" / "luthier" / "native" / "online").iterdir()}
    assert shipped == {path.name for path in client_sources().iterdir() if path.is_file()}
    assert "luthier_online.c" in shipped
    code = "from luthier.online.native_client import client_sources\nprint(client_sources())"
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tmp_path / "site" / "luthier" / "native" / "online"
