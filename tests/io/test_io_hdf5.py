"""Settings injected into HDF5: what each changes in the file and in the calls that reach it."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.io.io_runs import SOURCES, Libraries, compile_c
from tests.native.native_fixtures import hdf5_options


def layout(path: Path) -> str:
    """How HDF5's own tool describes the datasets of a file."""
    return subprocess.run(["h5dump", "-p", "-H", path], capture_output=True, text=True, check=True).stdout


def offsets(path: Path) -> dict[str, int]:
    """Where each contiguous dataset begins in the file."""
    return {
        name: int(offset) for name, offset in re.findall(r'DATASET "(\w+)".*?OFFSET (\d+)', layout(path), re.DOTALL)
    }


def test_alignment_moves_datasets(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    io.run([hdf5_program, "two_sizes", file], tmp_path)
    assert all(offset % 65536 for offset in offsets(file).values())
    ended = io.run([hdf5_program, "two_sizes", file], tmp_path, "alignment=64k")
    assert all(offset % 65536 == 0 for offset in offsets(file).values())
    assert ended.of("hdf5_program")["settings"]["applied"] == {"alignment": "64k"}


def test_alignment_threshold_leaves_small_datasets_alone(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    io.run([hdf5_program, "two_sizes", file], tmp_path, "alignment=64k,alignment_threshold=10k")
    assert offsets(file)["large"] % 65536 == 0
    assert offsets(file)["small"] % 65536 != 0


def test_sieve_buffer_joins_the_reads_of_columns(io: Libraries, rows_columns: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    default = io.run([rows_columns, file, 256, 512], tmp_path)
    tuned = io.run([rows_columns, file, 256, 512], tmp_path, "sieve_buffer=2M")
    assert tuned.stdout == default.stdout
    assert default.posix(file)["reads"] > 1000
    assert tuned.posix(file)["reads"] < 20
    assert tuned.posix(file)["writes"] < default.posix(file)["writes"]


def test_chunk_shape_changes_layout_and_calls(io: Libraries, rows_columns: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    default = io.run([rows_columns, file, 256, 256], tmp_path)
    assert "CONTIGUOUS" in layout(file)
    tuned = io.run([rows_columns, file, 256, 256], tmp_path, "chunk=32x64")
    assert "CHUNKED ( 32, 64 )" in layout(file)
    assert tuned.stdout == default.stdout
    assert tuned.posix(file)["reads"] < default.posix(file)["reads"]
    io.run([rows_columns, file, 256, 256], tmp_path, "chunk=1kx1")
    assert "CHUNKED ( 256, 1 )" in layout(file)  # no larger than the dataset


@pytest.mark.parametrize(("small", "large"), [("chunk_cache_bytes=0", "chunk_cache_bytes=8M"),
                                              ("chunk_cache_slots=1", "chunk_cache_slots=521")])  # fmt: skip
def test_chunk_cache_saves_reads(io: Libraries, rows_columns: Path, tmp_path: Path, small: str, large: str) -> None:
    file = tmp_path / "x.h5"
    without = io.run([rows_columns, file, 128, 128], tmp_path, f"chunk=16x16,{small}")
    with_cache = io.run([rows_columns, file, 128, 128], tmp_path, f"chunk=16x16,{large}")
    assert with_cache.stdout == without.stdout
    assert with_cache.posix(file)["reads"] * 4 < without.posix(file)["reads"]
    name = small.partition("=")[0]
    assert name in with_cache.of("rows_columns")["settings"]["applied"]


def test_chunk_cache_w0_keeps_chunks_that_are_not_read_in_full(
    io: Libraries, hdf5_program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.h5"
    reads = {
        w0: io.run(
            [hdf5_program, "w0", file], tmp_path, f"chunk_cache_bytes=17k,chunk_cache_slots=7,chunk_cache_w0={w0}"
        ).posix(file)["reads"]
        for w0 in (0, 1)
    }
    assert reads[1] * 3 < reads[0]


def test_metadata_cache_saves_reads(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    small = io.run([hdf5_program, "many", file], tmp_path, "metadata_cache=1k").posix(file)
    large = io.run([hdf5_program, "many", file], tmp_path, "metadata_cache=16M").posix(file)
    assert large["reads"] * 4 < small["reads"]
    assert large["write_bytes"] < small["write_bytes"]


def test_metadata_block_gathers_metadata(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    default = io.run([hdf5_program, "many", file], tmp_path).posix(file)
    assert min(offsets(file).values()) < 65536
    tuned = io.run([hdf5_program, "many", file], tmp_path, "metadata_block=1M").posix(file)
    assert min(offsets(file).values()) >= 1 << 20  # the data follows the block of metadata
    assert tuned["writes"] < default["writes"]


def test_fill_time_saves_writing_the_fill_value(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    written = {
        time: io.run([hdf5_program, "sparse", file], tmp_path, f"alloc_time=early,fill_time={time}").posix(file)[
            "write_bytes"
        ]
        for time in ("alloc", "never", "ifset")
    }
    assert written["alloc"] > 1 << 20  # the whole dataset
    assert written["ifset"] > 1 << 20  # the program has set a fill value
    assert written["never"] < 1 << 17


def test_alloc_time_decides_whether_an_unwritten_dataset_takes_space(
    io: Libraries, hdf5_program: Path, tmp_path: Path
) -> None:
    sizes = {}
    for time in ("early", "late"):
        io.run([hdf5_program, "unwritten", tmp_path / time], tmp_path, f"alloc_time={time}")
        sizes[time] = (tmp_path / time).stat().st_size
    assert sizes["early"] > 1 << 20
    assert sizes["late"] < 10_000
    chunked = {}
    for time in ("early", "incr"):
        ended = io.run([hdf5_program, "sparse", tmp_path / "chunked"], tmp_path, f"chunk=1k,alloc_time={time}")
        chunked[time] = ended.posix(tmp_path / "chunked")["write_bytes"]
    assert chunked["incr"] * 10 < chunked["early"]


def test_rows_and_columns_take_a_quarter_of_the_calls(io: Libraries, rows_columns: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    default = io.run([rows_columns, file], tmp_path)
    tuned = io.run([rows_columns, file], tmp_path, "chunk=64x64,chunk_cache_bytes=32M")
    assert (tuned.returncode, tuned.stdout) == (0, default.stdout)
    calls = [ended.posix(file)["reads"] + ended.posix(file)["writes"] for ended in (default, tuned)]
    assert calls[1] * 4 <= calls[0]
    assert tuned.layer("hdf5", file)["write_bytes"] == default.layer("hdf5", file)["write_bytes"] == 8 << 20
    assert tuned.layer("hdf5", file)["reads"] == 1024


def test_lists_of_the_program_stay_as_they_are(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    settings = "alignment=64k,chunk=1k,chunk_cache_bytes=4M,fill_time=never,transfer=collective,metadata_cache=1M"
    ended = io.run([hdf5_program, "lists", tmp_path / "x.h5"], tmp_path, settings)
    assert (ended.returncode, ended.stdout) == (0, "1111\n")
    assert "CHUNKED ( 1024 )" in layout(tmp_path / "x.h5")


def test_errors_of_hdf5_are_those_without_the_library(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    settings = "alignment=64k,chunk=4,chunk_cache_bytes=4M,fill_time=never,transfer=collective"
    runs = [
        io.run([hdf5_program, "errors", tmp_path / "x.h5"], tmp_path, settings, {"LUTHIER_IO_QUIET": "1"}, preload)
        for preload in (False, True)
    ]
    texts = [re.sub(r"time = .*", "", ended.stdout + ended.stderr) for ended in runs]
    assert texts[0] == texts[1]
    assert "name already exists" in texts[0]
    assert [ended.returncode for ended in runs] == [0, 0]


def test_datasets_that_cannot_take_a_setting_are_created_without_it(
    io: Libraries, hdf5_program: Path, tmp_path: Path
) -> None:
    ended = io.run([hdf5_program, "layouts", tmp_path / "x.h5"], tmp_path, "chunk=8x8,fill_time=never")
    assert ended.returncode == 0
    assert ended.stdout == "1\n"  # as without the library
    described = layout(tmp_path / "x.h5")
    shapes = dict(re.findall(r'DATASET "(\w+)".*?STORAGE_LAYOUT \{\s+(\w+(?: \( [\d, ]+ \))?)', described, re.DOTALL))
    assert shapes["plane"] == "CHUNKED ( 8, 8 )"
    assert shapes["growing"] == "CHUNKED ( 5, 5 )"
    assert shapes["own"] == "CHUNKED ( 10 )"
    assert {shapes[name] for name in ("scalar", "line", "strings")} == {"CONTIGUOUS"}
    assert shapes["compact"] == "COMPACT"
    assert "was created without them" in ended.stderr


@pytest.mark.parametrize(
    ("settings", "piece", "reason"),
    [
        ("transfer=collective", "two_sizes", "not opened through MPI-IO"),
        ("collective_metadata=on", "two_sizes", "not opened through MPI-IO"),
        ("chunk=8x8", "two_sizes", "a dataset has 1 dimensions, the chunk has 2"),
        ("chunk=8", "w0", "layout of its own"),
        ("chunk_cache_bytes=1M", "two_sizes", "not chunked"),
        ("sieve_buffer=1M", "w0", "not contiguous"),
        ("alignment_threshold=1k", "two_sizes", "alignment is not set"),
        ("alloc_time=incr", "unwritten", "chunked datasets only"),
        ("cb_nodes=1", "two_sizes", "no file through MPI-IO"),
    ],
)
def test_says_why_a_setting_has_no_effect(
    io: Libraries, hdf5_program: Path, tmp_path: Path, settings: str, piece: str, reason: str
) -> None:
    ended = io.run([hdf5_program, piece, tmp_path / "x.h5"], tmp_path, settings)
    name = settings.partition("=")[0]
    outcome = ended.of("hdf5_program")["settings"]
    assert outcome["applied"] == {}
    assert reason in outcome["without_effect"][name]
    assert ended.stderr == f"luthier io: {name} has no effect: {outcome['without_effect'][name]}\n"
    assert ended.of("hdf5_program")["warnings"] == [ended.stderr.removeprefix("luthier io: ").rstrip()]


def test_a_file_that_is_only_read_takes_no_settings_of_its_layout(
    io: Libraries, rows_columns: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.h5"
    io.run([rows_columns, file, 64, 64], tmp_path)
    before = file.read_bytes()
    ended = io.run(["h5dump", file], tmp_path, "alignment=1M,chunk=8x8,metadata_block=1M")
    assert ended.returncode == 0
    assert file.read_bytes() == before
    assert ended.stderr.count("\n") == 3
    assert set(ended.of("h5dump")["settings"]["without_effect"]) == {"alignment", "chunk", "metadata_block"}


def test_says_that_hdf5_is_linked_statically(io: Libraries, tmp_path: Path) -> None:
    archive = (
        next((Path(option[2:]) for option in hdf5_options("serial") if option.startswith("-L")), Path()) / "libhdf5.a"
    )
    if not archive.exists():
        pytest.skip(f"{archive} is not there")
    options = [option for option in hdf5_options("serial") if option.startswith("-I")]
    program = compile_c(SOURCES / "hdf5_program.c", tmp_path / "static", *options, str(archive), "-lcrypto", "-lcurl",
                        "-lsz", "-lz", "-ldl", "-lm", "-s")  # fmt: skip
    ended = io.run([program, "two_sizes", tmp_path / "x.h5"], tmp_path, "alignment=64k")
    assert ended.returncode == 0
    assert ended.stderr.startswith("luthier io: HDF5 is linked statically into the program")
    assert "linked statically" in ended.of("static")["settings"]["without_effect"]["alignment"]
    assert ended.posix(tmp_path / "x.h5")["writes"] > 0  # what reaches the operating system is counted all the same


def test_identifiers_of_old_hdf5_are_ints(io: Libraries, tmp_path: Path) -> None:
    library = compile_c(SOURCES / "old_hdf5.c", tmp_path / "libold_hdf5.so", "-shared", "-fPIC")
    program = compile_c(SOURCES / "old_program.c", tmp_path / "old_program", str(library), f"-Wl,-rpath,{tmp_path}")
    ended = io.run([program], tmp_path, "alignment=64k")
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == [
        "alignment of list 1100: 1 65536",
        "create old.h5 2 with list 0, access list 1100",
        "close list 1100",
        "alignment of list 1055: 1 65536",
        "create own.h5 2 with list 0, access list 1055",
        "close list 1055",
        "files 7 7",
        "close file 7",
    ]


def test_a_file_that_hdf5_refuses_with_the_settings_is_opened_without_them(
    io: Libraries, hdf5_program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.h5"
    ended = io.run([hdf5_program, "user_block", file], tmp_path, "alignment=64k")
    assert ended.returncode == 0, ended.stderr
    assert "x.h5 could not be opened with the settings and was opened without them" in ended.stderr
    assert 'DATASET "set"' in layout(file)


def test_files_of_the_split_driver_are_not_aligned(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    ended = io.run([hdf5_program, "split", tmp_path / "x"], tmp_path, "alignment=64k,alignment_threshold=1k")
    assert ended.returncode == 0, ended.stderr
    assert "alignment has no effect: the file has the split or multi driver of HDF5" in ended.stderr


def test_an_old_handler_of_errors_stays(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    without = io.run([hdf5_program, "old_handler", file], tmp_path, preload=False)
    ended = io.run([hdf5_program, "old_handler", file], tmp_path, "chunk=5")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, without.stdout, "")
    assert without.stdout.count("error") >= 2


def test_files_are_told_apart_after_hdf5_was_closed(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    ended = io.run([hdf5_program, "restart", tmp_path / "x"], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert [ended.layer("hdf5", tmp_path / f"x.{i}")["writes"] for i in range(2)] == [1, 1]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`io/module.c` with the serial HDF5."""
    path = tmp_path_factory.mktemp("module") / "libmodule.so"
    return compile_c(SOURCES / "module.c", path, "-shared", "-fPIC", *hdf5_options("serial"))


def test_modules_with_hdf5_may_be_unloaded(io: Libraries, module: Path, tmp_path: Path) -> None:
    host, file = compile_c(SOURCES / "host.c", tmp_path / "host", "-ldl"), tmp_path / "x.h5"
    ended = io.run([host, file, module], tmp_path, "alignment=64k")
    assert ended.returncode == 0, ended.stderr
    assert ended.layer("hdf5", file)["writes"] == 4
    assert offsets(file)["set"] % 65536 == 0


def test_two_builds_of_hdf5_in_a_program_are_kept_apart(io: Libraries, module: Path, tmp_path: Path) -> None:
    host, file = tmp_path / "host", tmp_path / "x.h5"
    linked = [*hdf5_options("openmpi"), module, f"-Wl,-rpath,{module.parent}"]
    compile_c(SOURCES / "host.c", host, "-DOWN_HDF5", *map(str, linked), compiler="mpicc")
    ended = io.run([host, file], tmp_path, "alignment=64k")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.layer("hdf5", file)["writes"] == 1
    assert offsets(file)["set"] % 65536 == 0
