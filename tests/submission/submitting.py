"""An ordinary user who submits jobs, and a server with a tuned job for them."""

import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import luthier
from luthier.launch.declared import declared_by
from luthier.server.operations import parsed
from luthier.spec.component import Component
from luthier.spec.experiment import Experiment
from luthier.spec.library import Library
from luthier.spec.script import JobScript
from luthier.store.base import RequestedBy
from luthier.store.server_store import ServerStore
from luthier.submission.matching import job_of_script
from luthier.submission.store import job_records_in
from luthier.submission.store.tuned_jobs import TunedConfiguration

SOURCES = Path(luthier.__file__).parents[1]
NOBODY = "nobody"
EXPERIMENT = """
experiment: {name: stencil, budget: 40, script: "./stencil", runner: slurm}
definitions:
  knob:
    parameters:
      KNOB_LEVEL: {env_var: true, type: int, default: 1}
      KNOB_MODE: {env_var: true, type: str, default: slow}
components:
  knob: {KNOB_LEVEL: {min: 1, max: 99}, KNOB_MODE: {values: [slow, fast]}}
"""
SCRIPT = """#!/bin/bash
#SBATCH --job-name=stencil
#SBATCH --output=seen.%j
srun sh -c 'echo "level=$KNOB_LEVEL mode=$KNOB_MODE"; :' stencil
"""
SEEN = "level=42 mode=fast"
UNTOUCHED = "level= mode="


def approve_all(store: ServerStore, experiment: int) -> None:
    """Register the component of an experiment as the experiment has it, and approve what it sets."""
    command = Experiment.from_json(store.history.experiment(experiment).settings).command
    assert isinstance(command, JobScript)
    name, library = command.component_name, Library(store.components)
    library.add({name: command.component}, replace=True)
    allowed = {
        one.name: "1..99" if one.declared and one.declared.isdigit() else "slow fast yes"
        for one in library.review(name).variables
    }
    library.approve(name, allowed, library.review(name).version, "root", 1.0)


def with_tuned_job(
    store: ServerStore, experiment: int, user: str, script: str = SCRIPT, *, is_approved: bool = True
) -> int:
    """Record that an experiment found a configuration for a job; returns the number of the record."""
    if is_approved:
        approve_all(store, experiment)
    tuned = TunedConfiguration(
        component="knob",
        config={"KNOB_LEVEL": 42, "KNOB_MODE": "fast"},
        environment={"KNOB_LEVEL": "42", "KNOB_MODE": "fast"},
        options=(),
        measure="wall",
        default_value=10.0,
        best_value=5.0,
        speedup=2.0,
    )
    job = job_of_script(script, user, datetime.now(UTC).astimezone())
    return job_records_in(store).put(experiment, job, tuned, time.time())


def record_of(store: ServerStore, variables: dict[str, str], author: str, script: str = SCRIPT) -> int:
    """The record of an experiment of somebody who wants other people's jobs to have these variables."""
    parameters = {name: {"env_var": True, "type": "str", "default": text} for name, text in variables.items()}
    parameters["OMP_NUM_THREADS"] = {"env_var": True, "type": "int", "default": 1}
    component = Component.model_validate({"parameters": parameters})
    text = """
experiment: {name: x, budget: 20, runner: slurm, script: "./stencil"}
components: {openmpi: {OMP_NUM_THREADS: {min: 1, max: 8}}}
"""
    found = declared_by(parsed(text, "x.yaml"), Path("/"), None, lambda _: component)
    record = store.history.create("x", found.experiment.to_json(), 1.0, RequestedBy(author))
    environment = {**variables, "OMP_NUM_THREADS": "4"}
    tuned = TunedConfiguration(
        component="openmpi",
        config={"OMP_NUM_THREADS": 4},
        environment=environment,
        options=(),
        measure="wall",
        default_value=2.0,
        best_value=1.0,
        speedup=2.0,
    )
    return job_records_in(store).put(
        record.id, job_of_script(script, author, datetime.now(UTC).astimezone()), tuned, 1.0
    )


@dataclass(frozen=True)
class Submitter:
    """A user of the cluster: not root, where these tests may choose."""

    name: str
    folder: Path
    environment: Mapping[str, str]

    def run(self, *argv: str, given: str | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as this user, in their folder."""
        is_root = os.geteuid() == 0
        return subprocess.run(
            argv,
            cwd=self.folder,
            env={**self.environment, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
            user=self.name if is_root else None,
            group=pwd.getpwnam(self.name).pw_gid if is_root else None,
            extra_groups=[] if is_root else None,
        )

    def write(self, name: str, text: str) -> None:
        """Write a file of this user."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam(self.name).pw_uid, -1)


@contextmanager
def submitter(environment: Mapping[str, str]) -> Iterator[Submitter]:
    """A user with a folder of their own, which is not below folders that only this process may enter."""
    name = NOBODY if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LUTHIER", "SLURM", "SBATCH"))}
    with tempfile.TemporaryDirectory(prefix="luthier-user-", ignore_cleanup_errors=True) as path:
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam(name).pw_uid, -1)
        yield Submitter(name, Path(path), {**kept, **environment, "HOME": path})


def wrapper(user: Submitter) -> tuple[list[str], dict[str, str]]:
    """How this user calls `luthier submit`: with a Python that they may run, which needs no installed package."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            found = user.run(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))")
        except PermissionError:
            continue
        if found.returncode == 0:
            return [python, "-m", "luthier", "submit"], {"PYTHONPATH": str(SOURCES)}
    return [], {}
