"""`luthier io profile` with real programs: plain ones, HDF5, MPI."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.native.command_line import Luthier

MPI_PROGRAM = """\
#include <mpi.h>
int main(int count, char **words)
{
    int rank, ranks;
    char block[512] = {0};
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 600; i++)
        MPI_File_write_at(file, (MPI_Offset)512 * (i * ranks + rank), block, 512, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"""


def dd(size: str, count: int) -> list[str]:
    return ["dd", "if=/dev/zero", "of=data", f"bs={size}", f"count={count}"]


def test_a_plain_program_as_tables(luthier: Luthier) -> None:
    shown = luthier("io", "profile", "--", *dd("64", 2000)).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["POSIX", "1", "0", "-", "-", "2,000", "125", "KiB"] in [line[:8] for line in lines]
    assert ["0-100", "B", "0", "2,000"] in [line[:4] for line in lines]
    assert any(line[:6] == ["POSIX", "0", "-", "-", "2,000", "125"] and line[-1].endswith("/data") for line in lines)
    assert "2,000 of 2,000 writes (100 %) are smaller than 10 kB: write larger blocks, or through a buffer" in shown


def test_json_holds_only_the_profile(luthier: Luthier) -> None:
    ended = luthier("io", "profile", "--json", "--", "sh", "-c", "echo hello; head -c 5000 /dev/zero > data")
    plain = json.loads(ended.stdout)
    assert "hello" in ended.stderr
    assert (plain["exit_code"], plain["layers"]["posix"]["write_bytes"]) == (0, 5000)
    assert [(Path(file["path"]).name, file["write_bytes"]) for file in plain["files"]] == [("data", 5000)]


def test_the_exit_code_of_the_program_is_passed_on(luthier: Luthier) -> None:
    ended = luthier("io", "profile", "--", "sh", "-c", "exit 7", code=7)
    assert "luthier: sh: exit code 7" in ended.stderr
    killed = luthier("io", "profile", "--", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL)
    assert "no I/O was counted: statically linked programs, and programs killed by a signal, may write no counters" in (
        killed.stdout
    )
    luthier("io", "profile", "--", "sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)


def test_counters_are_kept_on_request(luthier: Luthier, home: Path) -> None:
    luthier("io", "profile", "--keep", "kept", "--", *dd("64", 10))
    (path,) = (home / "kept").glob("*.json")
    assert json.loads(path.read_text())["layers"]["posix"]["writes"] == 10
    again = luthier("io", "profile", "--keep", "kept", "--", *dd("64", 10), code=2)
    assert "--keep kept: it contains counters of another run; choose an empty folder" in again.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "no command; put it after --"),
        (["--set", "sieve_bufer=4M", "--", "true"], "unknown setting; did you mean 'sieve_buffer'?"),
        (["--set", "chunk", "--", "true"], "write NAME=VALUE, for example sieve_buffer=4M"),
        (["--set", "chunk=1,2", "--", "true"], "a value must be printable and without a comma"),
        (["--", "no-such-program"], "no-such-program: no such program; check its name or give its full path"),
        (["--", "/etc/passwd"], "/etc/passwd: cannot be started: Permission denied"),
        (["--keep", "/proc/x", "--", "true"], "--keep /proc/x: "),
    ],
)
def test_bad_arguments_are_one_line(luthier: Luthier, words: list[str], problem: str) -> None:
    said = luthier("io", "profile", *words, code=2).stderr
    assert problem in said
    assert said.count("\n") == 1


def test_an_interrupt_stops_the_program_and_shows_what_it_did(home: Path) -> None:
    code = (
        "import time, sys\nopen('data', 'wb', 0).write(b'x' * 3000)\ntry:\n print('go', flush=True)\n time.sleep(100)\n"
        "except KeyboardInterrupt:\n sys.exit(5)"
    )
    profile = [sys.executable, "-m", "luthier", "io", "profile", "--", sys.executable, "-c", code]
    command = ["env", "--default-signal=INT", *profile]  # also if the tests run in the background
    with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        os.killpg(process.pid, signal.SIGINT)
        shown = process.stdout.read()
    assert process.returncode == 5
    assert "2.93 KiB" in shown


def test_injected_settings_change_what_an_hdf5_program_does(luthier: Luthier, rows_columns: Path) -> None:
    def profile(*settings: str) -> dict[str, object]:
        return luthier.json("io", "profile", "--json", *settings, "--", rows_columns, "m.h5", "300", "300")

    plain, tuned = profile(), profile("--set", "sieve_buffer=4M")
    counts = [one["layers"]["posix"]["reads"] for one in (plain, tuned)]  # type: ignore[index]  # plain JSON
    assert counts[0] > 4 * counts[1]
    assert any("were read from files for" in hint["observed"] for hint in plain["hints"])  # type: ignore[attr-defined]
    assert tuned["settings"] == {"applied": {"sieve_buffer": "4M"}, "without_effect": {}, "unknown": []}
    assert plain["used_layer"] == "hdf5"


def test_a_setting_without_effect_is_told_once(luthier: Luthier, rows_columns: Path) -> None:
    words = ["--set", "cb_nodes=2", "--", str(rows_columns), "m.h5", "8", "8"]
    shown = luthier("io", "profile", *words).stdout
    assert shown.count("the program opened no file through MPI-IO") == 1, shown


def test_each_setting_has_a_variable_of_its_own(
    luthier: Luthier, rows_columns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def applied(**variables: str) -> object:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            plain = luthier.json("io", "profile", "--json", "--", rows_columns, "m.h5", "20", "20")
        assert plain["warnings"] == []
        return plain["settings"]["applied"]

    assert applied(LUTHIER_IO_SIEVE_BUFFER="4M") == {"sieve_buffer": "4M"}
    assert applied(LUTHIER_IO="chunk=4x4,sieve_buffer=1M", LUTHIER_IO_SIEVE_BUFFER="default") == {"chunk": "4x4"}
    assert applied(LUTHIER_IO="chunk=4x4", LUTHIER_IO_CHUNK="5x5") == {"chunk": "5x5"}
    assert applied(LUTHIER_IO="chunk=4x4", LUTHIER_IO_CHUNK="") == {"chunk": "4x4"}


def test_all_ranks_of_an_mpi_program(luthier: Luthier, home: Path) -> None:
    if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
        missing("Open MPI (mpirun, mpicc) is not installed; as root: sh tests/services.sh")
    (home / "write.c").write_text(MPI_PROGRAM)
    subprocess.run(["mpicc", "-O2", "write.c", "-o", "write"], cwd=home, check=True)
    plain = luthier.json("io", "profile", "--json", "--", "mpirun", "-n", "2", "./write", "out")
    assert plain["layers"]["mpiio"]["writes"] == 1200
    assert plain["ranks"]["ranks"] == 2
    assert plain["ranks"]["most_bytes"] == 600 * 512
    assert any(hint["observed"] == "1,200 of 1,200 MPI-IO writes are independent" for hint in plain["hints"])


def test_the_profile_of_many_files_shows_the_largest(luthier: Luthier) -> None:
    code = "for i in range(30): open(f'file{i:02}', 'wb').write(b'x' * 1000 * (i + 1))"
    shown = luthier("io", "profile", "--files", "3", "--", sys.executable, "-c", code).stdout
    listed = [line.split("/")[-1].strip() for line in shown.splitlines() if "/file" in line]
    assert listed == ["file29", "file28", "file27"]
    assert "(the 3 largest of " in shown
