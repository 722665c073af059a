"""Virtual environments for the peers, created on demand beside this file; peers are no dependency of luthier."""

import json
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VENVS = Path(__file__).resolve().parent / "venvs"
LIMIT_S = 600.0
"""A peer that takes longer to install is left out."""
CONSTRAINTS = ("torch==2.13.0",)
"""Avoids gigabytes of GPU libraries."""

HEBO_ERA = ("numpy==1.24.4", "scipy==1.11.4", "matplotlib==3.7.5", "pandas==2.0.3", "scikit-learn==1.3.2")
"""The versions at the time of HEBO's release; without them pip tries old versions for a very long time."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What to install for a family of players, in which environment, and a module to check the installation."""

    environment: str
    packages: tuple[str, ...]
    module: str


PEERS: Mapping[str, Peer] = {
    "optuna": Peer("peers", ("optuna", "cmaes", "scipy", "torch"), "optuna"),
    "nevergrad": Peer("peers", ("nevergrad",), "nevergrad"),
    "hyperopt": Peer("peers", ("hyperopt", "setuptools<81"), "hyperopt"),
    "skopt": Peer("peers", ("scikit-optimize",), "skopt"),
    "smac": Peer("peers", ("smac",), "smac"),
    "deephyper": Peer("peers", ("deephyper",), "deephyper.hpo"),
    "hebo": Peer("hebo", ("HEBO", *HEBO_ERA), "hebo.optimizers.hebo"),  # its old NumPy would break the others
}


class AbsentError(Exception):
    """A peer that cannot run here; the message says why."""


def interpreter(family: str) -> Path:
    """The Python that can run a family of players, installing it first where needed."""
    if family == "luthier":
        return Path(sys.executable)
    if family not in PEERS:
        raise AbsentError(f"unknown; there are luthier, {', '.join(PEERS)}")
    peer, note = PEERS[family], VENVS / f"{family}.json"
    python = VENVS / peer.environment / "bin" / "python"
    if not note.exists():
        reason = _install(peer, python)
        note.write_text(json.dumps({"absent": reason, "version": _version(python, peer)}) + "\n")
    absent = json.loads(note.read_text())["absent"]
    if absent:
        raise AbsentError(f"{absent} (delete {note} to try again)")
    return python


def version(family: str) -> str:
    """What is installed, for the report."""
    note = VENVS / f"{family}.json"
    return str(json.loads(note.read_text())["version"]) if note.exists() else ""


def _install(peer: Peer, python: Path) -> str | None:
    """Install a peer; return why it cannot be used, or None."""
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    pins = VENVS / "constraints.txt"
    pins.write_text("\n".join(CONSTRAINTS) + "\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(pins)]
    try:
        done = subprocess.run([*pip, *peer.packages], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not installed within {LIMIT_S:.0f} s"
    if done.returncode:
        return _last_line(done.stderr, "pip failed")
    proof = subprocess.run([str(python), "-c", f"import {peer.module}"], capture_output=True, text=True, check=False)
    return _last_line(proof.stderr, "cannot be imported") if proof.returncode else None


def _last_line(text: str, otherwise: str) -> str:
    return (text.strip().splitlines() or [otherwise])[-1][:300]


def _version(python: Path, peer: Peer) -> str:
    code = f"from importlib.metadata import version; print(version({peer.packages[0]!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False).stdout.strip()
