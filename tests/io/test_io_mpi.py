"""Hints injected into MPI-IO, and parallel HDF5, with four real ranks: what changes in the system calls."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.io.io_runs import SOURCES, Ended, Libraries, compile_c
from tests.io.test_io_hdf5 import layout

RANKS = 4
BYTES = 512 * 1024  # of each rank


def mpi(io: Libraries, program: Path, folder: Path, settings: str, *arguments: str) -> Ended:
    """Four ranks write and read `x.dat` and find in it what they wrote."""
    (folder / "x.dat").unlink(missing_ok=True)
    ended = io.run(
        ["mpirun", "-n", RANKS, program, arguments[0], folder / "x.dat", *arguments[1:]], folder, settings,
        {"LUTHIER_IO_QUIET": "1"},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(report["rank"] for report in ended.reports) == list(range(RANKS))
    assert {report["ranks"] for report in ended.reports} == {RANKS}
    return ended


def by_rank(ended: Ended, path: Path, name: str) -> list[int]:
    """A counter of the file's calls of the operating system, for each rank."""
    found = [0] * RANKS
    for report in ended.reports:
        for file in report["files"]:
            if file["layer"] == "posix" and file["path"] == str(path):
                found[report["rank"]] = file[name]
    return found


def test_cb_nodes_decides_how_many_ranks_write(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    for nodes in (1, 2, 4):
        settings = f"cb_nodes={nodes},cb_buffer_size=128k,romio_cb_write=enable"
        ended = mpi(io, parallel, tmp_path, settings, "mpi", "collective")
        written = by_rank(ended, tmp_path / "x.dat", "write_bytes")
        assert written == [RANKS * BYTES // nodes] * nodes + [0] * (RANKS - nodes)


def test_cb_buffer_size_is_the_size_of_the_writes(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    for size in (64, 512):
        ended = mpi(
            io, parallel, tmp_path, f"cb_buffer_size={size}k,cb_nodes=1,romio_cb_write=enable", "mpi", "collective"
        )
        assert ended.posix(tmp_path / "x.dat")["writes"] == RANKS * BYTES // (size * 1024)
        assert ended.layer("mpiio", tmp_path / "x.dat")["collective_writes"] == RANKS


@pytest.mark.parametrize("way", ["write", "read"])
def test_collective_buffering_can_be_switched_off(io: Libraries, parallel: Path, tmp_path: Path, way: str) -> None:
    """With data sieving off as well, each piece of each rank is a call."""
    common = f"romio_ds_{way}=disable,cb_nodes=1"
    on, off = (
        mpi(io, parallel, tmp_path, f"romio_cb_{way}={state},{common}", "mpi", "collective").posix(tmp_path / "x.dat")
        for state in ("enable", "disable")
    )
    assert on[f"{way}s"] < 10
    assert off[f"{way}s"] == RANKS * 64


@pytest.mark.parametrize("way", ["write", "read"])
def test_data_sieving_joins_pieces(io: Libraries, parallel: Path, tmp_path: Path, way: str) -> None:
    common = "romio_cb_read=disable,romio_cb_write=disable"
    on, off = (
        mpi(io, parallel, tmp_path, f"romio_ds_{way}={state},{common}", "mpi").posix(tmp_path / "x.dat")
        for state in ("enable", "disable")
    )
    assert off[f"{way}s"] >= RANKS * 64
    assert on[f"{way}s"] * 4 < off[f"{way}s"]
    assert on[f"{way}_bytes"] > off[f"{way}_bytes"]  # pieces of others are in between


def test_striping_needs_a_striped_file_system(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    ended = mpi(io, parallel, tmp_path, "striping_factor=4,striping_unit=1M", "mpi")
    for report in ended.reports:
        assert "striped file system" in report["settings"]["without_effect"]["striping_unit"]
        assert "striped file system" in report["settings"]["without_effect"]["striping_factor"]


def test_says_that_ompio_ignores_hints(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    ended = io.run(
        ["mpirun", "-n", 2, parallel, "mpi", tmp_path / "x.dat"], tmp_path, "cb_nodes=1", {"OMPI_MCA_io": "ompio"}
    )
    assert ended.returncode == 0
    assert ended.stderr.count("ompio ignores hints") == 1  # of one rank
    assert all("ompio" in report["settings"]["without_effect"]["cb_nodes"] for report in ended.reports)


def test_transfer_makes_hdf5_write_together(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.dat"
    alone = mpi(io, parallel, tmp_path, "romio_ds_write=disable", "hdf5")
    together = mpi(io, parallel, tmp_path, "transfer=collective,romio_ds_write=disable", "hdf5")
    assert alone.layer("hdf5", file)["collective_writes"] == 0
    assert together.layer("hdf5", file)["collective_writes"] == RANKS
    assert together.layer("hdf5", file)["collective_reads"] == RANKS  # the program reads with the default list
    assert together.posix(file)["writes"] * 4 < alone.posix(file)["writes"]
    back = mpi(io, parallel, tmp_path, "transfer=independent,romio_ds_write=disable", "hdf5", "collective")
    assert back.layer("hdf5", file)["collective_writes"] == 0
    assert back.posix(file)["writes"] == alone.posix(file)["writes"]


def test_collective_metadata_is_written_together(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.dat"
    alone = mpi(io, parallel, tmp_path, "collective_metadata=off", "hdf5").layer("mpiio", file)
    together = mpi(io, parallel, tmp_path, "collective_metadata=on", "hdf5").layer("mpiio", file)
    assert alone["collective_writes"] == 0
    assert together["collective_writes"] > 0
    assert together["independent_writes"] < alone["independent_writes"]


def test_settings_of_the_file_hold_in_parallel(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    settings = "alignment=256k,metadata_block=64k,sieve_buffer=1M,chunk=32k,chunk_cache_bytes=1M,alloc_time=late"
    ended = mpi(io, parallel, tmp_path, settings, "hdf5", "collective")
    outcome = ended.reports[0]["settings"]
    assert set(outcome["applied"]) == {"alignment", "metadata_block", "chunk"}
    assert set(outcome["without_effect"]) == {"sieve_buffer", "chunk_cache_bytes", "alloc_time"}
    assert "CHUNKED ( 32768 )" in layout(tmp_path / "x.dat")


def test_counts_what_the_program_asked_of_each_layer(io: Libraries, parallel: Path, tmp_path: Path) -> None:
    ended = mpi(io, parallel, tmp_path, "", "mpi", "collective")
    counted = ended.layer("mpiio", tmp_path / "x.dat")
    assert [counted[name] for name in ("opens", "writes", "reads", "syncs", "seeks")] == [RANKS] * 5
    assert counted["write_bytes"] == counted["read_bytes"] == RANKS * BYTES
    assert counted["collective_writes"] == 4
    assert counted["independent_writes"] == 0
    assert ended.posix(tmp_path / "x.dat")["write_bytes"] >= RANKS * BYTES


def test_fortran_is_injected_and_counted(io: Libraries, tmp_path: Path) -> None:
    if shutil.which("mpif90") is None or shutil.which("gfortran") is None:
        pytest.skip("mpif90 or gfortran is not installed")
    program = tmp_path / "fortran"
    subprocess.run(["mpif90", "-o", program, SOURCES / "fortran.f90"], cwd=tmp_path, check=True)
    ended = io.run(["mpirun", "-n", 2, program], tmp_path, "cb_nodes=1,cb_buffer_size=4000,romio_cb_write=enable")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.posix(tmp_path / "fortran.dat")["writes"] == 4
    counted = ended.layer("mpiio", tmp_path / "fortran.dat")
    assert (counted["opens"], counted["collective_writes"], counted["write_bytes"]) == (2, 2, 16_000)


def test_nonblocking_collective_calls_work_with_hints(io: Libraries, tmp_path: Path) -> None:
    program = compile_c(SOURCES / "nonblocking.c", tmp_path / "nonblocking", compiler="mpicc")
    seen = []
    for settings in ("", "cb_nodes=1"):
        file = tmp_path / "x.dat"
        file.unlink(missing_ok=True)
        ended = io.run(["mpirun", "-n", 2, program, file], tmp_path, settings)
        assert (ended.returncode, ended.stdout) == (0, "1000 1000 1000 1000 999\n"), ended.stderr
        counts = ended.layer("mpiio", file)
        seen.append((file.read_bytes(), counts["collective_writes"], counts["write_bytes"], counts["collective_reads"]))
    assert seen[0] == seen[1]
    assert seen[0][1:] == (4, 16000, 4)
