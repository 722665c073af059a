"""The password in a store's URL is shown to nobody."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LUTHIER = [sys.executable, "-m", "luthier"]


@pytest.mark.parametrize("joined", [True, False])
def test_process_list_does_not_show_it(postgresql_url: str, tmp_path: Path, joined: bool) -> None:
    password = postgresql_url.partition("luthier:")[2].partition("@")[0]
    option = [f"--store={postgresql_url}"] if joined else ["--store", postgresql_url]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "LUTHIER_STORE": str(tmp_path / "not-this.db")}
    with subprocess.Popen(
        [*LUTHIER, "worker", *option, "--local", "0"], env=environment, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        assert "waiting for experiments" in worker.stderr.readline()
        shown = Path(f"/proc/{worker.pid}/cmdline").read_text().split("\0")
        worker.terminate()
    assert shown[-4:] == ["worker", "--local", "0", ""]
    assert password not in " ".join(shown)
    assert not (tmp_path / "not-this.db").exists()


def test_command_that_is_tuned_keeps_its_own_option(tmp_path: Path) -> None:
    command = ["sh", "-c", f'echo "$0 $1" > {tmp_path}/said', "--store", "postgresql://u:secret@h/{x}"]
    done = subprocess.run(
        [*LUTHIER, "tune", "-q", "--json", "-n", "1", "-p", "x=1,2", "--", *command],
        env={**os.environ, "LUTHIER_STORE": str(tmp_path / "x.db"), "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text() == "--store postgresql://u:secret@h/1\n"
