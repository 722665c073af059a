"""Which earlier experiments of a store a new one can learn from."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.trial import Json

MOST_RELATED = 3
"""How many earlier experiments `--after auto` uses at most."""

_FEWEST_RUNS = 8
_LEAST_SHARED = 0.5  # of the parameters
_INTERPRETERS = ("bash", "dash", "env", "ksh", "mpiexec", "mpirun", "perl", "python", "python3", "sh", "srun", "zsh")


def related(experiment: Experiment, name: str, records: Sequence[Record]) -> list[tuple[Record, str]]:
    """The earlier experiments to learn from, and why: at most three, the most similar and then the latest ones first.

    They tune the same component, program or, for Python functions, the same `name`, by the same measure, have at least
    half of the parameters, and are not running.
    """
    if experiment.has_front:
        return []
    plain = experiment.to_json()
    found = []
    for record in records:
        why = _same(plain, name, record)
        shared = _shared(experiment.space.names, record.settings)
        is_over = record.status not in ("queued", "running") and record.runs >= _FEWEST_RUNS
        if why and is_over and shared >= _LEAST_SHARED * len(experiment.space.names):
            found.append((shared, record, f"{why}, {shared} of {len(experiment.space.names)} parameters"))
    found.sort(key=lambda each: (-each[0], -each[1].id))
    return [(record, why) for _, record, why in found[:MOST_RELATED]]


def _same(plain: Mapping[str, Json], name: str, record: Record) -> str | None:
    """What the experiments have in common: `the same command` and so on; None if too little."""
    if plain["objectives"] != record.settings.get("objectives"):
        return None
    command, other = plain["command"], record.settings.get("command")
    if command is None and other is None:
        return "the same function" if name == record.name else None
    if not isinstance(command, Mapping) or not isinstance(other, Mapping):
        return None
    if "component" in command:
        same = command.get("component_name") == other.get("component_name") and bool(command.get("component_name"))
        return "the same component" if same else None
    if command.get("argv") == other.get("argv"):
        return "the same command"
    return "the same program" if _program(command) == _program(other) else None


def _program(command: Mapping[str, Json]) -> list[str]:
    """The program of a command; what it runs as well if it is an interpreter or starts another program."""
    argv = command.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, Sequence) else []
    if not words:
        return []
    first = PurePath(words[0]).name
    if first not in _INTERPRETERS:
        return [first]
    inner = next((word for word in words[1:] if not word.startswith("-") and word.strip()), "")
    return [first, *inner.split()[:1]]


def _shared(names: Sequence[str], settings: Mapping[str, Json]) -> int:
    """How many of the parameters the other experiment has as well."""
    space = settings.get("space")
    listed = space.get("parameters") if isinstance(space, Mapping) else None
    own = {each.get("name") for each in listed if isinstance(each, Mapping)} if isinstance(listed, Sequence) else set()
    return sum(name in own for name in names)
