"""How a running program gets a configuration: files are written, then it is told to read them."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from luthier.errors import InvalidInputError, RefusedError
from luthier.online.unchanged.bounded_command import run_bounded
from luthier.online.unchanged.number_sources import words_of
from luthier.online.unchanged.written_file import WrittenFile
from luthier.space import Space
from luthier.spec.template import Template, placeholders
from luthier.texts import closest, shown
from luthier.trial import Config

SIGNALS: Mapping[str, signal.Signals] = {"HUP": signal.SIGHUP, "USR1": signal.SIGUSR1, "USR2": signal.SIGUSR2}
"""The signals that programs take as a request to read their configuration again."""


class Reload(Protocol):
    """Makes a program read its configuration; `RefusedError` if that fails."""

    def __call__(self, space: Space, config: Config) -> None:
        """It takes a bounded time."""
        ...


@dataclass(frozen=True, slots=True)
class ReloadCommand:
    """A command that makes the program read its configuration; it may contain values itself."""

    command: Template
    timeout_s: float

    def __call__(self, space: Space, config: Config) -> None:
        """Run the command; an exit code other than 0 means that the program refused."""
        argv, _ = self.command.render(space, config)
        problem = run_bounded(argv, self.timeout_s).problem
        if problem is not None:
            raise RefusedError(problem)


@dataclass(frozen=True, slots=True)
class ReloadSignal:
    """A signal to the process whose number is in a file."""

    number: signal.Signals
    pid_file: Path

    def __call__(self, space: Space, config: Config) -> None:  # noqa: ARG002 - a signal has no values
        """Send the signal."""
        pid = pid_in(self.pid_file)
        try:
            os.kill(pid, self.number)
        except OSError as error:
            raise RefusedError(f"process {pid} of {self.pid_file}: {error.strerror}") from None


def pid_in(path: Path) -> int:
    """The process number in a file."""
    try:
        with path.open("rb") as file:
            word = (file.read(200).split() or [b""])[0]  # further lines, as PostgreSQL has them, are ignored
    except OSError as error:
        raise RefusedError(f"{path}: cannot be read ({error.strerror})") from None
    if not word.isdigit() or len(word) > 9 or int(word) < 2:
        raise RefusedError(f"{path}: {shown(word.decode(errors='replace'))} is not a process number")
    return int(word)


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """Sets the parameters of a running program, and puts back what was there before.

    `copies` is the folder in which the original files are kept.
    """

    space: Space
    files: Sequence[WrittenFile]
    reload: Reload
    copies: Path

    def keep_originals(self) -> None:
        """Keep the present files; those of an earlier call stay."""
        for number, file in enumerate(self.files):
            file.keep_original(self.copies / f"original-{number}")

    def forget_restored(self) -> None:
        """Delete the copies of files that are as they were; the next start keeps what is there then."""
        for number, file in enumerate(self.files):
            file.forget_restored(self.copies / f"original-{number}")

    def write(self, config: Config | None) -> None:
        """Write the files of a configuration, None for the originals, without telling the program."""
        values = {} if config is None else texts_of(self.space, config)
        for number, file in enumerate(self.files):
            if config is None:
                file.restore(self.copies / f"original-{number}")
            else:
                file.write(values)

    def apply(self, config: Config | None) -> None:
        """Set a configuration; None for the original files, and the default where a command sets values.

        If the program refuses it (`RefusedError`), the files have been written nevertheless.
        """
        self.write(config)
        self.reload(self.space, self.space.default if config is None else config)


def texts_of(space: Space, config: Config) -> dict[str, str]:
    """The values of a configuration as they are written."""
    return {parameter.name: parameter.format(config[parameter.name]) for parameter in space.parameters}


def reload_command(text: str, space: Space, timeout_s: float, *, shell: bool) -> ReloadCommand:
    """The command of `--reload`; values in it are checked."""
    argv = (text,) if shell else words_of(text, "--reload", shell=False)
    command = Template(argv, shell=shell)
    inside = placeholders(" ".join(argv))
    used = [parameter for parameter in space.parameters if parameter.name in inside]
    if used:
        command.check(Space(*used))
    return ReloadCommand(command, timeout_s)


def reload_signal(name: str, pid_file: Path | None) -> ReloadSignal:
    """The signal of `--signal`, for the process of `--pid-file`."""
    word = name.upper().removeprefix("SIG")
    if word not in SIGNALS:
        raise InvalidInputError(f"--signal {shown(name)}: not supported; give one of {', '.join(SIGNALS)}")
    if pid_file is None:
        raise InvalidInputError("--signal: the process is unknown; give --pid-file FILE, or the command after --")
    return ReloadSignal(SIGNALS[word], pid_file.absolute())


def check_used(space: Space, texts: Sequence[str]) -> None:
    """Raise unless each placeholder has a parameter, and each parameter a placeholder."""
    used = frozenset[str]().union(*map(placeholders, texts))
    for name in sorted(used - set(space.names)):
        near = closest(name, space.names)
        hint = f"did you mean {{{near}}}?" if near else f"add -p {name}=..., or write {{{{{name}}}}} for the plain text"
        raise InvalidInputError(f"placeholder {{{name}}} has no parameter; {hint}")
    for name in space.names:
        if name not in used:
            raise InvalidInputError(
                f"parameter {name} is not used; write {{{name}}} in the template of --write, or in --reload"
            )
