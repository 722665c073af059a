"""Files that are kept in memory: the program sees the same, and nothing is written to their own folder."""

import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.io.io_runs import SOURCES, Ended, Libraries, compile_c

WRITER = """\
#include <stdio.h>
int main(void)
{
    static char data[600000];
    for (int i = 0; i < 4; i++) {
        char name[20];
        sprintf(name, "out/file%d", i);
        FILE *stream = fopen(name, "w");
        if (stream == NULL || fwrite(data, sizeof data, 1, stream) != 1 || fclose(stream) != 0)
            return 1;
    }
    return 0;
}
"""

SCRIPT = """\
import os, pathlib, shutil, sqlite3, tarfile
os.makedirs("out/a/b"); pathlib.Path("out/a/b/x").write_text("hi")
shutil.copytree("out/a", "out/copy"); print(sorted(p.name for p in pathlib.Path("out").rglob("*")))
print(sorted((e.name, e.is_dir(), e.is_dir() or e.stat().st_size) for e in os.scandir("out")))
shutil.rmtree("out/copy"); os.replace("out/in.txt", "out/moved"); print(os.path.exists("out/copy"))
table = sqlite3.connect("out/table"); table.execute("create table t(a)"); table.execute("insert into t values (7)")
table.commit(); print(table.execute("select a from t").fetchall()); table.close()
with tarfile.open("out/t.tar", "w") as archive: archive.add("out/a")
os.chdir("out/a"); print(os.path.basename(os.getcwd()), os.listdir(".")); os.chdir("../..")
os.symlink("old.txt", "out/link"); print(open("out/link").read(), os.readlink("out/link"))
os.utime("out/moved", (1, 1)); print(os.stat("out/moved").st_mtime)
"""
SHELL = """\
"$1" ../script.py && cp out/moved out/m && mv out/m out/n && cat out/n && rm -r out/a && ls out && find out -name 'o*'
tar tf out/t.tar && du -a out | wc -l && touch out/new && test -f out/new && grep -c zed out/sub/deep/z
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder; where it is does not matter to the library."""
    folder = tmp_path / "memory"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(SOURCES / "paths.c", tmp_path_factory.mktemp("paths") / "paths")


def content(folder: Path) -> dict[str, bytes | None]:
    """What is in a folder: the bytes of files, None for folders. Marks of the library are left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not str(path.relative_to(folder)).startswith((".removed", ".told", ".lists", ".outside"))
    }


def run(io: Libraries, memory: Path, place: Path, patterns: str, *command: object, **more: str) -> Ended:
    variables = {"LUTHIER_IO_MEMORY": patterns, "LUTHIER_IO_MEMORY_FOLDER": str(memory), **more}
    return io.run(command, place, env=variables)


def inputs(place: Path) -> Path:
    (place / "out" / "sub" / "deep").mkdir(parents=True)
    for name, text in (("in.txt", "hello\n"), ("old.txt", "old\n"), ("sub/deep/z", "zed\n")):
        (place / "out" / name).write_text(text)
    return place


def test_all_calls_with_paths_agree(io: Libraries, paths: Path, tmp_path: Path, memory: Path) -> None:
    plain, kept = inputs(tmp_path / "plain"), inputs(tmp_path / "kept")
    before = content(kept)
    expected = io.run([paths], plain)
    assert expected.returncode == 0, expected.stderr
    ended = run(io, memory, kept, "out", paths)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == expected.stdout.replace(str(plain), str(kept))
    shutil.rmtree(kept / "reports")
    assert content(kept) == before
    assert content(memory / str(kept / "out").lstrip("/")) == content(plain / "out")
    assert ended.posix(kept / "out" / "in.txt")["opens"] == expected.posix(plain / "out" / "in.txt")["opens"]


def test_other_programs_see_the_same(io: Libraries, tmp_path: Path, memory: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    plain, kept = inputs(tmp_path / "plain"), inputs(tmp_path / "kept")
    before = content(kept)
    expected = io.run(["sh", "-c", SHELL, "sh", sys.executable], plain, preload=False)
    assert expected.stdout.endswith("\n1\n"), expected.stderr
    ended = run(io, memory, kept, "out", "sh", "-c", SHELL, "sh", sys.executable)
    assert (ended.stdout, ended.stderr) == (expected.stdout, expected.stderr)
    shutil.rmtree(kept / "reports")
    assert content(kept) == before


@pytest.mark.parametrize("pattern", ["*.txt", "out", "out/*", "{place}/out", "{place}/*"])
def test_patterns(io: Libraries, tmp_path: Path, memory: Path, pattern: str) -> None:
    place = tmp_path / "place"
    (place / "out").mkdir(parents=True)
    ended = run(io, memory, place, pattern.format(place=place), "sh", "-c", "echo 1 > out/a.txt; ls out; cat out/a.txt")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "a.txt\n1\n", "")
    assert not list((place / "out").iterdir())


def test_other_files_stay_where_they_are(io: Libraries, tmp_path: Path, memory: Path) -> None:
    ended = run(io, memory, tmp_path, "*.h5:none", "sh", "-c", "echo 1 > a.txt; echo 2 > a.h5; ls *.h5 *.txt")
    assert ended.returncode != 2, ended.stderr
    assert (tmp_path / "a.txt").read_text() == "1\n"
    assert not (tmp_path / "a.h5").exists()
    assert (memory / str(tmp_path / "a.h5").lstrip("/")).read_text() == "2\n"


def test_serial_hdf5(io: Libraries, rows_columns: Path, tmp_path: Path, memory: Path) -> None:
    plain = io.run([rows_columns, "plain.h5", 64, 64], tmp_path)
    ended = run(io, memory, tmp_path, "*.h5", rows_columns, "kept.h5", 64, 64)
    assert ended.stdout == plain.stdout
    assert not (tmp_path / "kept.h5").exists()
    assert (memory / str(tmp_path / "kept.h5").lstrip("/")).read_bytes() == (tmp_path / "plain.h5").read_bytes()
    counted, expected = ended.posix(tmp_path / "kept.h5"), plain.posix(tmp_path / "plain.h5")
    assert [counted[name] for name in ("writes", "write_bytes")] == [
        expected[name] for name in ("writes", "write_bytes")
    ]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("way", ["mpi", "hdf5"])
@pytest.mark.parametrize("component", ["ompio", "romio321"])
def test_ranks_share_files(
    io: Libraries, parallel: Path, tmp_path: Path, memory: Path, ranks: int, way: str, component: str
) -> None:
    plain, kept = tmp_path / "plain", tmp_path / "kept"
    plain.mkdir()
    kept.mkdir()
    words = ["mpirun", "-n", ranks, parallel, way, "x.dat", *(["collective"] if ranks == 2 else [])]
    assert io.run(words, plain, env={"OMPI_MCA_io": component}).returncode == 0
    ended = run(io, memory, kept, "x.dat", *words, OMPI_MCA_io=component)
    assert ended.returncode == 0, ended.stderr
    assert not (kept / "x.dat").exists()
    copy, expected = memory / str(kept / "x.dat").lstrip("/"), plain / "x.dat"
    assert copy.stat().st_size == expected.stat().st_size
    if way == "hdf5":  # it also holds the time
        assert subprocess.run(["h5diff", copy, expected], check=False).returncode == 0
    else:
        assert copy.read_bytes() == expected.read_bytes()


def test_says_once_when_memory_is_short(io: Libraries, tmp_path: Path, memory: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "writer.c").write_text(WRITER)
    program = compile_c(tmp_path / "writer.c", tmp_path / "writer")
    ended = run(io, memory, tmp_path, "out", program, LUTHIER_IO_MEMORY_LIMIT="1M")
    assert ended.returncode == 0
    assert ended.stderr.count("\n") == 1
    assert "memory for files is short" in ended.stderr
    assert "file2" in ended.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["file2", "file3"]


def test_inputs_that_are_too_large_are_read_where_they_are(io: Libraries, tmp_path: Path, memory: Path) -> None:
    (tmp_path / "large").write_bytes(b"a" * 3_000_000)
    ended = run(io, memory, tmp_path, "large", "sh", "-c", "cat large | wc -c", LUTHIER_IO_MEMORY_LIMIT="1M")
    assert ended.stdout.strip() == "3000000"
    assert "memory for files is short" in ended.stderr


def test_needs_a_folder(io: Libraries, tmp_path: Path) -> None:
    for folder in ("", "relative", "/no/such/folder"):
        ended = run(io, Path(folder), tmp_path, "*.txt", "sh", "-c", "echo 1 > a.txt")
        assert "LUTHIER_IO_MEMORY_FOLDER must be the absolute path of a folder" in ended.stderr
        assert (tmp_path / "a.txt").read_text() == "1\n"


def test_modes_of_inputs_are_kept(io: Libraries, tmp_path: Path, memory: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "tool").chmod(0o750)
    assert run(io, memory, tmp_path, "tool", "sh", "-c", "echo >> tool").returncode == 0
    copy = memory / str(tmp_path / "tool").lstrip("/")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o750
