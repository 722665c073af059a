"""The profile of a program's I/O: totals, files, ranks and hints, from what processes counted."""

import json

from tests.io.recorded_counts import layer, process, sizes

from luthier.io.counts import process_from
from luthier.io.profile import IoProfile, hints, profile_json, profile_of


def profile(*processes: dict[str, object], wall_s: float = 1.0) -> IoProfile:
    return profile_of([process_from(one) for one in processes], wall_s)


def observed(*processes: dict[str, object], wall_s: float = 1.0) -> list[str]:
    return [hint.text for hint in hints(profile(*processes, wall_s=wall_s))]


def test_files_are_added_over_processes_the_largest_first() -> None:
    def with_files(pid: int) -> dict[str, object]:
        files = [
            {"path": "/small", "layer": "posix", **layer(write_bytes=10)},
            {"path": "/large", "layer": "posix", **layer(read_bytes=500)},
            {"path": "/large", "layer": "hdf5", **layer(read_bytes=500)},
        ]
        return process(pid, rank=pid, files=files)

    found = profile(with_files(0), with_files(1)).files
    assert [(file.path, file.layer, file.counts.bytes) for file in found] == [
        ("/large", "hdf5", 1000),
        ("/large", "posix", 1000),
        ("/small", "posix", 20),
    ]


def test_small_writes_name_what_to_try_for_the_layer_in_use() -> None:
    small = layer(writes=1000, write_bytes=5000, write_s=0.5, write_sizes=sizes(0, 1000), sequential_writes=1000)
    (plain,) = observed(process(posix=small))
    assert plain == "1,000 of 1,000 writes (100 %) are smaller than 10 kB: write larger blocks, or through a buffer"
    (serial,) = observed(process(posix=small, hdf5=layer(writes=10, write_bytes=5000, write_s=0.6)))
    assert serial.endswith("try a larger sieve_buffer, larger chunks or a larger chunk_cache_bytes")
    ranks = [
        process(rank, rank=rank, posix=small, mpiio=layer(writes=9, write_bytes=5000, write_s=0.6)) for rank in (0, 1)
    ]
    assert (
        "18 of 18 MPI-IO writes are independent: try collective calls such as MPI_File_write_all, with cb_nodes and "
        "cb_buffer_size" in observed(*ranks)
    )
    assert any("try romio_cb_write=enable with a larger cb_buffer_size" in text for text in observed(*ranks))


def test_many_small_files_are_not_called_small_reads() -> None:
    posix = layer(
        opens=400, reads=800, read_bytes=2_000_000, read_s=0.5, read_sizes=sizes(2, 800), sequential_reads=800
    )
    assert observed(process(posix=posix)) == [
        "files were opened 400 times, for 4.883 KiB each on average: keep many small files together in one"
    ]


def test_collective_writes_are_not_called_independent() -> None:
    mpiio = layer(writes=100, collective_writes=100, write_bytes=5000, write_s=0.6)
    assert observed(process(0, rank=0, mpiio=mpiio), process(1, rank=1, mpiio=mpiio)) == []


def test_columns_that_are_read_from_rows() -> None:
    posix = layer(reads=40_000, read_bytes=320_000, read_s=0.5, read_sizes=sizes(0, 40_000))
    hdf5 = layer(reads=20, read_bytes=320_000, read_s=0.6)
    first = observed(process(posix=posix, hdf5=hdf5))[0]
    assert first.startswith("one read of a dataset makes 2000 reads of the file, as when columns are read from rows: ")
    more = layer(reads=100, read_bytes=32_000_000, read_s=0.5, read_sizes=sizes(4, 100))
    first = observed(process(posix=more, hdf5=hdf5))[0]
    assert first.startswith("30.52 MiB were read from files for 312.5 KiB of data: try chunks")


def test_metadata_syncs_scattered_reads_and_uneven_ranks() -> None:
    opens = layer(opens=900, writes=900, write_bytes=9_000_000, write_s=0.1, other_s=0.6, write_sizes=sizes(3, 900))
    metadata = observed(process(posix=opens))[-1]
    assert metadata.startswith(
        "86 % of the time in POSIX calls goes to 900 opens, 0 seeks and 0 syncs instead of data: "
    )
    synced = layer(writes=100, syncs=100, write_bytes=9_000_000, write_s=0.1, other_s=0.6, write_sizes=sizes(3, 100))
    assert observed(process(posix=synced))[0].startswith("100 syncs for 100 writes: ")
    scattered = layer(reads=1000, read_bytes=9_000_000, read_s=0.5, read_sizes=sizes(3, 1000), sequential_reads=10)
    assert observed(process(posix=scattered))[0].startswith(
        "only 1 % of 1,000 reads begin where the one before ended: "
    )
    busy, idle = layer(writes=1, write_bytes=10**7, write_s=0.8), layer(writes=1, write_bytes=10, write_s=0.01)
    ranks = [process(rank, rank=rank, posix=busy if rank == 2 else idle) for rank in range(4)]
    assert observed(*ranks)[0].startswith("rank 2 spends 800 ms in I/O, 3.9 times the mean: ")


def test_io_that_does_not_matter_is_said_to() -> None:
    small = layer(writes=1000, write_bytes=5000, write_s=0.01, write_sizes=sizes(0, 1000))
    first, second = observed(process(posix=small), wall_s=10.0)
    assert first == "I/O takes 0.1 % of the run time: tuning it cannot make this run noticeably faster"
    assert "are smaller than 10 kB" in second
    assert observed(process()) == ["no I/O with regular files was counted: there is nothing to tune here"]
    assert observed() == ["no I/O with regular files was counted: there is nothing to tune here"]


def test_json_has_everything_and_only_finite_numbers() -> None:
    settings = {"applied": {"alignment": "1M"}, "without_effect": {"chunk": "no dataset"}, "unknown": ["x"]}
    inert = {"applied": {}, "without_effect": {"alignment": "no file"}, "unknown": []}
    posix = layer(writes=1000, write_bytes=5000, write_s=0.5, write_sizes=sizes(0, 1000))
    plain = profile_json(
        profile(
            process(1, posix=posix, settings=settings, warnings=["a", "a"]), process(2, settings=inert, warnings=["a"])
        )
    )
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["settings"] == {
        "applied": {"alignment": "1M"},
        "without_effect": {"chunk": "no dataset"},
        "unknown": ["x"],
    }
    assert plain["warnings"] == ["a"]
    assert plain["measures"] == {
        "io:perf": 10_000.0,
        "io:write_bandwidth": 10_000.0,
        "io:read_bandwidth": None,
        "io:time": 0.5,
    }
