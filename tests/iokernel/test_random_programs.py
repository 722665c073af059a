"""Random programs: the kernel writes what the program writes, byte for byte."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.iokernel.random_programs import program
from tests.iokernel.tiny import discovered


def output_of(text: str, name: str, folder: Path) -> tuple[int, bytes]:
    """Compile and run; return the exit code and what was written."""
    source, binary, written = (folder / f"{name}{end}" for end in (".run.c", ".bin", ".txt"))
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-w", str(source), "-o", str(binary)], check=True, timeout=60)
    ended = subprocess.run([str(binary), str(written)], check=False, timeout=30)
    return ended.returncode, written.read_bytes()


@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_of_a_random_program(seed: int, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        missing("gcc is not installed; as root: sh tests/services.sh")
    text = program(seed)
    found = discovered(tmp_path, program=text)
    assert found.kept < found.total
    expected = output_of(text, "full", tmp_path)
    assert expected[0] in (0, 3)
    assert expected[1]
    assert output_of(found.files[0].text, "kernel", tmp_path) == expected
