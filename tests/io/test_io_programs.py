"""Programs that people use, under the preload libraries: the same output, files and exit codes as without them."""

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import Libraries

SETTINGS = "alignment=64k,sieve_buffer=1M,chunk=16x16,cb_nodes=1,metadata_cache=1M"
PYTHON = """
import mmap, multiprocessing, os, subprocess, tempfile, threading
print(subprocess.run(["tail", "-n1", "numbers"], capture_output=True).stdout)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(len, [[1], [1, 2]]))
print(multiprocessing.get_context("spawn").Process(target=print).start())
print(os.popen("head -n1 numbers").read(), os.system("exit 3"))
with open("new", "w+b") as file, tempfile.TemporaryFile() as other:
    file.write(b"x" * 100_000)
    file.seek(50)
    file.write(b"y")
    file.flush()
    with mmap.mmap(file.fileno(), 0) as mapped:
        print(mapped[49:52])
    other.write(b"z")
threads = [threading.Thread(target=lambda: open("numbers").read()) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
os.closerange(0, 3)
fds = [os.open(f"low{i}", os.O_WRONLY | os.O_CREAT) for i in range(3)]
[os.write(fd, b"data") for fd in fds]
"""
GIT = """
git init -q r && cd r && cp ../numbers . && git add . &&
git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline && git gc -q && git fsck &&
rm -rf .git/index .git/logs .git/objects/pack .git/objects/info
"""
COMMANDS = {
    "coreutils": "cat numbers text > x; cp -r d e; sort -rn numbers > y; split -l 500 numbers; wc x; false",
    "text tools": "sed -i s/1/2/ numbers; awk '{s += $1} END {print s}' numbers; grep -c 9 numbers; find d",
    "archives": "tar --mtime=@0 -cf t.tar d && tar -xf t.tar -C d && gzip -n numbers && zcat numbers.gz | md5sum",
    "shell": "exec 3> q; echo a >&3; exec 3>&-; (echo b >> q); cat q; env -i /bin/echo c; x=$(cat q | wc -l); exit $x",
    "signals": "sh -c 'kill -SEGV $$' 2>/dev/null; echo $?; yes | head -1; echo ${PIPESTATUS[@]}; kill -TERM $$",
    "gcc": "gcc -O1 a.c -o a; ./a; echo $?; rm a",
    "python": "python3 python.py",
    "git": GIT,
    "sqlite3": 'sqlite3 x.db "create table t(a); insert into t select 1; pragma integrity_check"; sqlite3 x.db .dump',
    "fio": "fio --name=j --size=512k --rw=randwrite --bs=4k --filename=f --output=/dev/null --buffer_pattern=7 "
    "--thread --numjobs=4 && rm -f *.state",
    "libaio": "fio --name=j --size=512k --rw=write --filename=f --output=x --buffer_pattern=7 --ioengine=libaio; rm x",
    "hdf5 tools": "h5dump m.h5 | md5sum; h5ls -r m.h5; h5stat m.h5; h5diff m.h5 m.h5; h5repack m.h5 n.h5; "
    "h5diff m.h5 n.h5; h5copy -i m.h5 -o c.h5 -s matrix -d copy; h5dump -H c.h5; rm n.h5 c.h5; h5dump nothing.h5",
}


@pytest.fixture(scope="module")
def inputs(io: Libraries, rows_columns: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files to work on."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "numbers").write_text("".join(f"{number}\n" for number in range(2000)))
    (folder / "text").write_bytes(b"some text without end of line" * 1000)
    (folder / "a.c").write_text('#include <stdio.h>\nint main(void) { puts("hi"); return 3; }\n')
    (folder / "python.py").write_text(
        f"if __name__ == '__main__':\n{re.sub('^', '    ', PYTHON, flags=re.MULTILINE)}\n"
    )
    (folder / "d").mkdir()
    (folder / "d" / "file").write_bytes(os.urandom(20_000))
    io.run([rows_columns, folder / "m.h5", 64, 64], folder, preload=False)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and "reports" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", COMMANDS)
def test_programs_do_the_same(io: Libraries, inputs: Path, tmp_path: Path, name: str) -> None:
    programs = {"hdf5 tools": "h5dump", "libaio": "fio", "git": "git", "sqlite3": "sqlite3", "fio": "fio", "gcc": "gcc"}
    if shutil.which(programs.get(name, "sh")) is None:
        missing(f"{programs[name]} is not installed; as root: sh tests/services.sh")
    date = "2000-01-01T00:00:00Z"
    fixed = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "LUTHIER_IO_QUIET": "1", "LC_ALL": "C"}
    seen = []
    for preload in (False, True):
        folder = tmp_path / "work"  # the same name, for it is in the output
        shutil.copytree(inputs, folder)
        words = ["bash", "-c", COMMANDS[name]]
        words = words if preload else ["env", *(f"{key}={value}" for key, value in fixed.items()), *words]
        ended = io.run(words, folder, SETTINGS, fixed, preload)
        seen.append((ended.returncode, ended.stdout, re.sub(r"\d{3,}", "N", ended.stderr), contents(folder)))
        assert bool(ended.reports) == preload
        shutil.rmtree(folder)
    assert seen[0] == seen[1]


def test_a_program_of_mpi_does_the_same(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    written = []
    for preload in (False, True):
        file = tmp_path / "x.dat"
        file.unlink(missing_ok=True)
        ended = io.run(
            ["mpirun", "-n", 2, parallel, "mpi", file], tmp_path, SETTINGS, {"LUTHIER_IO_QUIET": "1"}, preload
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        written.append(file.read_bytes())
    assert written[0] == written[1]


def test_mpirun_itself_may_be_preloaded(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    command = f"mpirun -n 2 {parallel} hdf5 {tmp_path / 'x.h5'}"
    ended = io.run(["bash", "-c", command], tmp_path, "alignment=64k,cb_nodes=1", {"LUTHIER_IO_QUIET": "1"})
    assert ended.returncode == 0, ended.stderr
    ranks = [report for report in ended.reports if Path(report["program"]).name == "parallel"]
    assert [set(report["settings"]["applied"]) for report in ranks] == [{"alignment", "cb_nodes"}] * 2
