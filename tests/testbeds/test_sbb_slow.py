"""The burst buffer as a system to tune: on slow storage, with its component file."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

import luthier as lt
from testbeds.real.sbb import SPACE, Checkpoints, Programs
from testbeds.real.slow_storage import slow_storage, why_unavailable

COMPONENT = Path(__file__).resolve().parents[2] / "examples" / "components" / "sbb.yaml"
SLOW = {"size_bytes": 128 << 20, "write_iops": 2000, "write_bytes_s": 8 << 20}
BURST = ("--processes", "2", "--bursts", "2", "--bytes", "3M", "--block", "256k", "--compute-ms", "0")

needs_slow_storage = pytest.mark.skipif(why_unavailable() is not None, reason=why_unavailable() or "")


@needs_slow_storage
def test_limits_of_writes_are_set() -> None:
    with slow_storage(**SLOW) as storage:
        number = Path("/sys/block", storage.device, "dev").read_text().strip()
        assert (storage.group / "blkio.throttle.write_iops_device").read_text() == f"{number} 2000\n"
        assert (storage.group / "blkio.throttle.write_bps_device").read_text() == f"{number} {8 << 20}\n"


@needs_slow_storage
def test_a_burst_does_not_wait_for_slow_storage(sbb_programs: Programs) -> None:
    """12 MiB at 8 MiB/s; the ratio is of one run and far from its usual value."""
    with slow_storage(**SLOW) as storage:
        checkpoints = Checkpoints(sbb_programs, storage, BURST)
        plain, buffered = checkpoints.plain(), checkpoints(SPACE.default)
        assert list(storage.folder.glob("checkpoint-*")) == []
    assert buffered < plain / 1.5


def test_the_component_file_has_the_parameters_of_the_testbed() -> None:
    [component] = yaml.safe_load(COMPONENT.read_text())["components"].values()
    sizes = {"16M": 16 << 20, "32M": 32 << 20, "64M": 64 << 20, "128M": 128 << 20}
    given = {
        name: {key: sizes.get(value, value) for key, value in entry.items() if key in ("default", "min", "max")}
        for name, entry in component["parameters"].items()
    }
    assert given == {
        parameter.name: {"default": parameter.default, "min": parameter.low, "max": parameter.high}
        for parameter in SPACE.parameters
        if isinstance(parameter, lt.Integer)
    }


def test_burst_finds_a_wrong_byte(sbb_programs: Programs, tmp_path: Path) -> None:
    burst = str(sbb_programs.burst)
    subprocess.run([burst, *BURST, str(tmp_path)], check=True, capture_output=True)
    check = [burst, "--check", *BURST, str(tmp_path)]
    assert json.loads(subprocess.run(check, check=True, capture_output=True).stdout) == {"wrong_bytes": 0}
    [path] = tmp_path.glob("checkpoint-1-1")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    ended = subprocess.run(check, check=False, capture_output=True)
    assert (ended.returncode, json.loads(ended.stdout)) == (1, {"wrong_bytes": 1})
