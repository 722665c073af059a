"""Programs under native/io's preload libraries: how they are built, run and what is read of their reports."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NATIVE = Path(__file__).parents[2] / "native"
SOURCES = Path(__file__).with_name("programs")
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended, with the reports of its processes."""

    returncode: int
    stdout: str
    stderr: str
    reports: list[dict[str, Any]]

    def of(self, name: str) -> dict[str, Any]:
        """The report of the only process of that program."""
        [report] = [report for report in self.reports if Path(report["program"]).name == name]
        return report

    def posix(self, path: Path) -> dict[str, Any]:
        """The calls on a file, of all processes together."""
        return self.layer("posix", path)

    def layer(self, layer: str, path: Path) -> dict[str, Any]:
        """The sums over all processes of the calls of a layer on a file."""
        total: dict[str, Any] = {}
        for report in self.reports:
            for file in report["files"]:
                if file["layer"] == layer and file["path"] == str(path):
                    for name, value in file.items():
                        if isinstance(value, int | float):
                            total[name] = total.get(name, 0) + value
        return total


@dataclass(frozen=True, slots=True)
class Libraries:
    """The built libraries."""

    io: Path
    mpi: Path

    def run(
        self,
        command: Sequence[object],
        folder: Path,
        settings: str = "",
        env: Mapping[str, str] | None = None,
        preload: bool = True,
    ) -> Ended:
        """Run a program in a folder, with settings injected and its I/O counted."""
        reports = folder / "reports"
        for old in reports.glob("*.json"):
            old.unlink()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LUTHIER_IO")}
        environment.update(MPI_ENVIRONMENT)
        words = [str(word) for word in command]
        if preload:
            variables = {
                "LD_PRELOAD": f"{self.io} {self.mpi}",
                "LUTHIER_IO": settings,
                "LUTHIER_IO_COUNT": str(reports),
            }
            variables.update(env or {})
            given = ["env", *(f"{name}={value}" for name, value in variables.items())]
            words = [*words[:3], *given, *words[3:]] if words[0] == "mpirun" else [*given, *words]
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        found = [json.loads(path.read_text()) for path in sorted(reports.glob("*.json"))]
        return Ended(done.returncode, done.stdout, done.stderr, found)


def compile_c(source: Path, program: Path, *options: str, compiler: str = "cc") -> Path:
    """Build a C program."""
    subprocess.run([compiler, "-O1", "-g", "-Wall", "-Wextra", "-o", program, source, *options], check=True)
    return program


def pkg_config(package: str) -> list[str] | None:
    """What a compiler needs for a package; None if it is not installed."""
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    return done.stdout.split() if done.returncode == 0 else None
