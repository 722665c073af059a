"""A runner: commands on another machine that has the same folders, `runner: ssh:HOST`."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.runners.base import RunnerKind, RunnerSetup
from luthier.runners.command import Command, CommandRunner
from luthier.trial import Config, Execution


def remote(host: str, command: Command) -> Command:
    pairs = [f"{name}={value}" for name, value in command.environment.items()]
    words = shlex.join(["env", *pairs, *command.argv])
    return Command(("ssh", host, f"cd {shlex.quote(command.cwd or '.')} && exec {words}"))


class SshRunner(CommandRunner):
    def __init__(self, host: str, command: Callable[[Config], Command], folder: Path, slots: int) -> None:
        super().__init__(lambda config: remote(host, command(config)), folder, slots)

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        ended = super().poll(many, wait_s)
        return [one if one.problem else replace(one, value=one.metrics["wall_s"]) for one in ended]


def make(setup: RunnerSetup, host: str) -> SshRunner:
    return SshRunner(host, setup.command, setup.folder, setup.slots)


def check(host: str) -> None:
    if not host:
        raise InvalidInputError("ssh: the host is missing; write ssh:HOST")


SSH = RunnerKind(make, check, is_local=False)
