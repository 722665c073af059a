"""The ready component files for HDF5 and MPI-IO, with real programs that are not changed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import NATIVE
from tests.native.command_line import Luthier

from luthier.io.profiled import SETTINGS
from luthier.spec.component import read_components

EXAMPLES = NATIVE.parent / "examples"
KINDS = ("serial", "parallel")
PARALLEL = """\
#include <hdf5.h>
#include <mpi.h>
int main(int count, char **words)
{
    int rank, row[64] = {0};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t sizes[2] = {64, 64}, one[2] = {1, 64};
    hid_t space = H5Screate_simple(2, sizes, NULL), memory = H5Screate_simple(2, one, NULL);
    hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (hsize_t i = 0; i < 32; i++) {
        hsize_t start[2] = {2 * i + (hsize_t)rank, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, one, NULL);
        if (H5Dwrite(data, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, row) < 0)
            return 1;
    }
    H5Dclose(data);
    H5Fclose(file);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_one_of_the_library(kind: str) -> None:
    component = read_components(EXAMPLES / "components" / f"hdf5-{kind}.yaml")[f"hdf5-{kind}"]
    known = {f"LUTHIER_IO_{name.upper()}" for name in SETTINGS}
    assert set(component.parameters) <= known
    for parameter in component.parameters.values():
        assert (parameter.default, (parameter.values or [""])[0]) == ("default", "default")


def test_the_names_are_those_of_the_library() -> None:
    source = (NATIVE / "io" / "settings.c").read_text()
    assert [name for name in SETTINGS if f'"{name}"' not in source] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_that_the_file_lists_is_accepted(luthier: Luthier, kind: str) -> None:
    """A program without HDF5 runs untouched, and no listed value makes the library complain."""
    component = read_components(EXAMPLES / "components" / f"hdf5-{kind}.yaml")[f"hdf5-{kind}"]
    given = [
        f"{name.removeprefix('LUTHIER_IO_').lower()}={value}"
        for name, parameter in component.parameters.items()
        for value in parameter.values or []
    ]
    words = [word for text in given for word in ("--set", text)]
    plain = luthier.json("io", "profile", "--json", *words, "--", "true")
    assert (plain["settings"]["unknown"], plain["warnings"]) == ([], [])
    bad = luthier.json("io", "profile", "--json", *words, "--set", "sieve_buffer=large", "--", "true")
    assert len(bad["warnings"]) == 1


def test_the_example_is_tuned_from_end_to_end(luthier: Luthier, home: Path) -> None:
    if shutil.which("h5cc") is None:
        missing("serial HDF5 (h5cc) is not installed; as root: sh tests/services.sh")
    (home / "examples").symlink_to(EXAMPLES)
    compile_it = ["h5cc", "-shlib", "-O2", "examples/io/rows_columns.c", "-o", "rows_columns"]
    subprocess.run(compile_it, cwd=home, check=True)
    few = ["--set", "budget=10", "--set", "verify=0", "--set", "seed=1", "--set", "measure=io:posix_reads"]
    smaller = ["--set", "script=./rows_columns matrix.h5 300 300"]
    answer = luthier.json("run", "examples/io/rows_columns.yaml", "-q", "--json", *few, *smaller)
    assert answer["default"]["config"]["LUTHIER_IO_SIEVE_BUFFER"] == "default"
    assert answer["default"]["estimate"]["value"] > 4 * answer["best"]["estimate"]["value"]
    explained = luthier("explain", "1", "-q").stdout
    assert "POSIX reads instead of" in explained


def test_parallel_hdf5_by_a_registered_component(luthier: Luthier, home: Path) -> None:
    if shutil.which("h5pcc") is None or shutil.which("mpirun") is None:
        missing("parallel HDF5 (h5pcc, mpirun) is not installed; as root: sh tests/services.sh")
    (home / "rows.c").write_text(PARALLEL)
    subprocess.run(["h5pcc", "-shlib", "-O2", "rows.c", "-o", "rows"], cwd=home, check=True)
    luthier("component", "add", EXAMPLES / "components" / "hdf5-parallel.yaml")
    (home / "e.yaml").write_text(
        "experiment: {script: mpirun -n 2 ./rows data.h5, runner: local, budget: 2, verify: 0, timeout: 120s,\n"
        "  measure: 'max:io:mpiio_collective_writes'}\n"
        "components: {hdf5-parallel: {LUTHIER_IO_TRANSFER: [default, collective]}}\n"
    )
    answer = luthier.json("run", "e.yaml", "-q", "--json")
    assert answer["best"]["config"] == {"LUTHIER_IO_TRANSFER": "collective"}
    runs = json.loads(luthier("export", 1, "--format", "json").stdout)
    assert [run["value"] for run in runs] == [0.0, 64.0]
