"""Everything that defines one experiment, so that it can be stored and run again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError, SpaceError
from luthier.space import Choice, Space
from luthier.spec.rules import goes_by_time, prune_from, resample_from, stop_from
from luthier.spec.script import JobScript
from luthier.spec.template import Template
from luthier.statistics.estimate import AUTO, ESTIMATORS
from luthier.texts import shown
from luthier.trial import Config, Value

Goal: TypeAlias = Literal["minimize", "maximize"]
Plain: TypeAlias = bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None

MOST_OBJECTIVES = 3
"""Beyond three nearly every configuration is on the Pareto front, and a front tells nothing."""

FEWEST_VERIFIED = 10
"""A smaller budget has no room for a verification."""


GOALS: Mapping[str, Goal] = {"min": "minimize", "max": "maximize"}
"""What stands before a measure to say its goal, as in `max:json:iops`."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Something to make small or large."""

    measure: str
    goal: Goal = "minimize"

    def __post_init__(self) -> None:
        if self.goal not in ("minimize", "maximize"):
            raise InvalidInputError(f"goal: {shown(self.goal)} is neither 'minimize' nor 'maximize'")

    @staticmethod
    def parse(text: str, goal: Goal = "minimize") -> "Objective":
        """Read `wall` or `max:json:iops`; `goal` counts where the text names none."""
        word, _, rest = text.partition(":")
        return Objective(rest, GOALS[word]) if word in GOALS else Objective(text, goal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What to tune and how. `command` is None when a Python function is tuned.

    The first objective is `measure` with its `goal`; with `further` ones the answer is a Pareto front, not a winner, so
    there is no verification, nothing that goes by a single value (`prune`, `stop`) works, and `resample` is `once` or
    `static:RUNS`; what is chosen by itself is then `once` and the mean.

    `budget` counts every run that is submitted: the default's, the search's and the verification's. `resample` says how
    often a configuration runs and `estimator` what stands for its runs. `prune` is None, a rule by name or a limit in
    seconds; `stop` holds criteria, any of which ends the search. `luthier.spec.rules` reads all of these.
    `verify_pairs` is how many runs of the default and of the winner are kept back for the comparison at the end. With
    `sentinels` the default runs again after so many runs, and what these show of the machine is taken out of values.

    `first` holds configurations that run right after the default, before any that the search asks for. Parameters that
    one of them leaves out have their default; the default itself and repeated ones are not kept.
    """

    space: Space
    command: Template | JobScript | None = None
    cwd: str | None = None
    measure: str = "wall"
    goal: Goal = "minimize"
    optimizer: str = "auto"
    options: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    budget: int = 60
    time_limit_s: float | None = None
    timeout_s: float | None = None
    workers: int = 1
    resample: str = "auto"
    estimator: str = AUTO
    prune: str | float | None = None
    stop: tuple[str, ...] = ()
    verify_pairs: int | None = None
    sentinels: int = 0
    further: tuple[Objective, ...] = ()
    first: tuple[Config, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (
            ("budget", 1),
            ("workers", 1),
            ("verify_pairs", 0),
            ("sentinels", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InvalidInputError(
                    f"{name.replace('_', '-')}: {shown(value)} is not a whole number of at least {least}"
                )
        for name in ("time_limit_s", "timeout_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInputError(f"{name}: {shown(value)} is not a positive number of seconds")
        if self.estimator not in (AUTO, *ESTIMATORS):
            raise InvalidInputError(
                f"estimator: {shown(self.estimator)} is unknown; there are {AUTO}, {', '.join(ESTIMATORS)}"
            )
        self._check_rules()
        self._check_objectives()
        object.__setattr__(self, "first", _first(self.space, self.first))
        if self.command is not None:
            self.command.check(self.space)

    def _check_rules(self) -> None:
        if isinstance(self.stop, str):
            raise InvalidInputError(f"stop: {shown(self.stop)} is a text; give a list of criteria, even of one")
        resample_from(self.resample)
        prune_from(self.prune)
        stop_from(self.stop, self.space, maximize=self.goal == "maximize")
        timed = self.measure == "wall" and self.goal == "minimize"
        if isinstance(self.prune, str) and not timed:
            raise InvalidInputError(
                f"prune: {shown(self.prune)} compares times, so it needs the measure wall, minimised; give seconds"
            )
        if not timed and (texts := [text for text in self.stop if goes_by_time(text)]):
            raise InvalidInputError(f"stop: {shown(texts[0])} compares times, so it needs the measure wall, minimised")

    def _check_objectives(self) -> None:
        measures = [objective.measure for objective in self.objectives]  # each checks its goal, the first one too
        if not self.further:
            return
        if len(measures) > MOST_OBJECTIVES:
            raise InvalidInputError(f"{len(measures)} measures; with more than {MOST_OBJECTIVES} a front tells nothing")
        if len({measure == "returned" for measure in measures}) > 1:
            raise InvalidInputError("measure: 'returned' cannot be mixed with others; let the function return them all")
        if measures[0] != "returned" and len(set(measures)) < len(measures):
            raise InvalidInputError(f"measure: {', '.join(measures)}; name each of them once")
        if self.resample.startswith(("sedr", "evadyr")):
            raise InvalidInputError(f"resample: {shown(self.resample)} goes by one value; write once or static:RUNS")
        for name, needless in (("prune", None), ("stop", ()), ("verify_pairs", 0), ("sentinels", 0)):
            if getattr(self, name) not in (None, needless):
                raise InvalidInputError(
                    f"{name.partition('_')[0]}: goes by one value; leave it out, or measure one thing"
                )

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Everything to be made small or large, the first objective first."""
        return Objective(self.measure, self.goal), *self.further

    @property
    def reserved_pairs(self) -> int:
        """How many pairs of runs the search leaves for the verification.

        Three pairs are the fewest whose 95 % interval is of any use (Student's t is 12.7 with one degree of freedom,
        4.3 with two); an eighth of the budget keeps the search's share at three quarters.
        """
        if self.further:
            return 0
        if self.verify_pairs is not None:
            return min(self.verify_pairs, (self.budget - 1) // 2)
        if self.budget < FEWEST_VERIFIED:
            return 0
        return min(max(self.budget // 8, 3), 10)

    def to_json(self) -> dict[str, Plain]:
        """The experiment as plain values."""
        plain: dict[str, Plain] = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["space"] = self.space.to_json()
        plain["command"] = None if self.command is None else self.command.to_json()
        plain["options"] = dict(self.options)
        plain["stop"] = list(self.stop)
        plain["further"] = [{"measure": objective.measure, "goal": objective.goal} for objective in self.further]
        plain["first"] = [dict(config) for config in self.first]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Plain]) -> "Experiment":
        """Rebuild what `to_json` wrote; a key this version does not know is an error, not a silent loss."""
        known = {each.name for each in fields(cls)}
        plain = _without_old_names(plain)
        if unknown := sorted(set(plain) - known):
            raise InvalidInputError(
                f"experiment settings hold {', '.join(unknown)}, unknown to this version; update luthier"
            )
        values = dict(plain)
        space, command = values.get("space"), values.get("command")
        if not isinstance(space, Mapping) or not (command is None or isinstance(command, Mapping)):
            raise InvalidInputError(
                "experiment settings hold no parameter space; the store was written by something else"
            )
        values["space"] = Space.from_json(space)  # type: ignore[assignment]  # plain values become objects here
        values["command"] = _command(command) if command is not None else None  # type: ignore[assignment]  # the same
        values["further"] = _objectives(values.get("further", ()))  # type: ignore[assignment]  # the same
        values["stop"] = _texts(values.get("stop", ()))
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks each value


def _first(space: Space, given: Iterable[Mapping[str, Value]]) -> tuple[Config, ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidInputError(f"first: {shown(given)} is not a list of configurations; give a list, even of one")
    checked: dict[Config, None] = {}
    for config in given:
        try:
            checked[space.check(_whole(space, config) if isinstance(config, Mapping) else config)] = None
        except SpaceError as error:
            raise InvalidInputError(f"first: {error}") from None
    checked.pop(space.default, None)
    return tuple(checked)


def _whole(space: Space, config: Mapping[str, Value]) -> dict[str, Value]:
    """The configuration with what it leaves out, and with quantities such as 64k as numbers."""
    values = {**space.default, **config}
    for parameter in space.parameters:
        value = values[parameter.name]
        if isinstance(value, str) and not isinstance(parameter, Choice):
            values[parameter.name] = parameter.parse(value)
    return values


def _without_old_names(plain: Mapping[str, Plain]) -> dict[str, Plain]:
    """Settings as version 0.1 wrote them, said with today's names."""
    values = dict(plain)
    if "repeats" in values:
        values["resample"] = f"static:{values.pop('repeats')}"
    if "patience" in values:
        patience = values.pop("patience")
        values["stop"] = [] if patience is None else [f"no improvement over {patience}"]
    return values


def _texts(plain: Plain) -> tuple[str, ...]:
    if isinstance(plain, str) or not isinstance(plain, Sequence):
        raise InvalidInputError(
            f"experiment settings hold {shown(plain)} for stop; the store was written by something else"
        )
    return tuple(str(text) for text in plain)


def _objectives(plain: Plain) -> tuple[Objective, ...]:
    listed = plain if isinstance(plain, Sequence) and not isinstance(plain, str) else [None]
    objectives = []
    for one in listed:
        if not isinstance(one, Mapping) or set(one) != {"measure", "goal"}:
            raise InvalidInputError("experiment settings hold no objectives; the store was written by something else")
        objectives.append(Objective(str(one["measure"]), one["goal"]))  # type: ignore[arg-type]  # Objective checks it
    return tuple(objectives)


def _command(plain: Mapping[str, Plain]) -> Template | JobScript:
    if "component" in plain:
        return JobScript.from_json(plain)
    argv, environment = plain.get("argv"), plain.get("environment")
    if not isinstance(argv, Sequence) or not isinstance(environment, Mapping):
        raise InvalidInputError("experiment settings hold no command; the store was written by something else")
    return Template(
        tuple(str(part) for part in argv),
        {str(name): str(text) for name, text in environment.items()},
        shell=plain.get("shell") is True,
    )
