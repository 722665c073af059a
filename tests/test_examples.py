"""What documentation shows, works."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import luthier
from luthier.policies import attached

ROOT = Path(__file__).parent.parent


def test_the_docstring_of_the_package() -> None:
    results = doctest.testmod(luthier)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_docstring_of_stop() -> None:
    results = doctest.testmod(attached)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_genetic_algorithm_of_deap_is_told_when_to_stop() -> None:
    command = [sys.executable, str(ROOT / "examples" / "deap_tuner.py"), "--generations", "12"]
    for runs, stops in (("1", True), ("1000000000", False)):
        ended = subprocess.run([*command, "--production-runs", runs], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert ("all generations were made" in ended.stdout) != stops
        assert ("iterations are expected" in ended.stdout or "iteration is expected" in ended.stdout) == stops


def test_the_python_of_the_readme() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    given = (
        "def measure(config):\n    return config['block'] / config['threads'] + (config['engine'] == 'sync')\n"
        "batches, processed = range(20), []\n"
        "def process(batch, **config):\n    processed.append(config)\n"
    )
    expected = (
        "\nassert result.improved and opt.best[1] <= 4096.0, (result.verdict, opt.best)\n"
        "assert len(processed) == 20 and len({str(config) for config in processed}) > 1, processed\n"
    )
    code = given + "\n".join(blocks) + expected
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_every_option_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = {
        flag
        for line in re.findall(r"luthier tune[^\n]*(?:\\\n[^\n]*)?", text)
        for flag in re.findall(r"(--[a-z-]+)", line.split(" -- ")[0])
    }
    known = subprocess.run(
        [sys.executable, "-m", "luthier", "tune", "--help"], capture_output=True, text=True, check=True
    )
    assert shown
    assert all(flag in known.stdout or flag == "--help" for flag in shown), shown


def test_the_demo_program_fails_when_the_result_is_too_large(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(range(256)) * 64)
    pack = [sys.executable, str(ROOT / "examples" / "pack.py"), str(data), "--codec", "zlib"]
    assert subprocess.run([*pack, "--at-most", "0.5"], check=False, capture_output=True).returncode == 0
    assert subprocess.run([*pack, "--at-most", "0.0001"], check=False, capture_output=True).returncode == 1
