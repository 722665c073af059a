"""Random programs: the kernel does what the program does, for several inputs."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.kernel.random_programs import program
from tests.io.kernel.same_io import both
from tests.io.kernel.tiny import discovered
from tests.torture import repeats

from luthier.io.kernel import KernelOptions

CUT = KernelOptions(buffer_content="cut")
SEEDS = repeats(12, 600)


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if shutil.which("gcc") is None:
        missing("gcc is not installed; as root: sh tests/services.sh")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_kernel_of_a_random_program(seed: int, tmp_path: Path) -> None:
    text = program(seed)
    kernel, full = both(text, discovered(tmp_path, program=text), tmp_path)
    assert kernel == full


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_kernel_of_a_random_program_without_content(seed: int, tmp_path: Path) -> None:
    """Only bytes that are written as they are may differ."""
    text = program(seed)
    kernel, full = both(text, discovered(tmp_path, CUT, program=text), tmp_path)
    assert [one.without_data for one in kernel] == [one.without_data for one in full]


def test_programs_write_and_kernels_are_smaller(tmp_path: Path) -> None:
    """The comparison above says nothing about programs of which nothing is dropped or cut."""
    found = [discovered(tmp_path, CUT, program=program(seed)) for seed in range(12)]
    assert sum(one.kept < one.total for one in found) > 9
    assert sum("content cut" in note for one in found for note in one.notes) > 5
