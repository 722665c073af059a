"""Everything that defines one experiment, so that it can be stored and run again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.measures.estimate import ESTIMATORS
from luthier.space import Space
from luthier.spec.template import Template
from luthier.trial import Value

Goal: TypeAlias = Literal["minimize", "maximize"]
Plain: TypeAlias = bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None

MOST_OBJECTIVES = 3
"""Beyond three nearly every configuration is on the Pareto front, and a front tells nothing."""

FEWEST_VERIFIED = 10
"""A smaller budget has no room for a verification."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Something to make small or large."""

    measure: str
    goal: Goal = "minimize"

    def __post_init__(self) -> None:
        if self.goal not in ("minimize", "maximize"):
            raise InvalidInputError(f"goal: {self.goal!r} is neither 'minimize' nor 'maximize'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What to tune and how. `command` is None when a Python function is tuned.

    The first objective is `measure` with its `goal`; with `further` ones the answer is a Pareto front, not a winner, so
    there is no verification, and nothing that goes by a single value (`prune`, `patience`) works.

    `budget` counts every run that is submitted: the default's, the search's and the verification's. `prune` is None,
    `"default"` (stop a run that takes longer than the default did) or a limit in seconds; `patience` ends the search
    after so many configurations without improvement. `verify_pairs` is how many runs of the default and of the winner
    are kept back for the comparison at the end.
    """

    space: Space
    command: Template | None = None
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
    repeats: int = 1
    estimator: str = "mean"
    prune: str | float | None = None
    patience: int | None = None
    verify_pairs: int | None = None
    further: tuple[Objective, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (
            ("budget", 1),
            ("workers", 1),
            ("repeats", 1),
            ("patience", 1),
            ("verify_pairs", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InvalidInputError(
                    f"{name.replace('_', '-')}: {value!r} is not a whole number of at least {least}"
                )
        for name in ("time_limit_s", "timeout_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInputError(f"{name}: {value!r} is not a positive number of seconds")
        if self.estimator not in ESTIMATORS:
            raise InvalidInputError(f"estimator: {self.estimator!r} is unknown; there are {', '.join(ESTIMATORS)}")
        self._check_prune()
        self._check_objectives()
        if self.command is not None:
            self.command.check(self.space)

    def _check_prune(self) -> None:
        if self.prune is None:
            return
        if self.prune == "default":
            if self.measure != "wall" or self.goal != "minimize":
                raise InvalidInputError(
                    "prune: 'default' compares times, so it needs the measure wall, minimised; give seconds"
                )
        elif isinstance(self.prune, str) or not self.prune > 0:
            raise InvalidInputError(f"prune: {self.prune!r} is neither 'default' nor a positive number of seconds")

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
        for name, needless in (("prune", None), ("patience", None), ("verify_pairs", 0)):
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
        plain["further"] = [{"measure": objective.measure, "goal": objective.goal} for objective in self.further]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Plain]) -> "Experiment":
        """Rebuild what `to_json` wrote; a key this version does not know is an error, not a silent loss."""
        known = {each.name for each in fields(cls)}
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
        values["command"] = _template(command) if command is not None else None  # type: ignore[assignment]  # the same
        values["further"] = _objectives(values.get("further", ()))  # type: ignore[assignment]  # the same
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks each value


def _objectives(plain: Plain) -> tuple[Objective, ...]:
    listed = plain if isinstance(plain, Sequence) and not isinstance(plain, str) else [None]
    objectives = []
    for one in listed:
        if not isinstance(one, Mapping) or set(one) != {"measure", "goal"}:
            raise InvalidInputError("experiment settings hold no objectives; the store was written by something else")
        objectives.append(Objective(str(one["measure"]), one["goal"]))  # type: ignore[arg-type]  # Objective checks it
    return tuple(objectives)


def _template(plain: Mapping[str, Plain]) -> Template:
    argv, environment = plain.get("argv"), plain.get("environment")
    if not isinstance(argv, Sequence) or not isinstance(environment, Mapping):
        raise InvalidInputError("experiment settings hold no command; the store was written by something else")
    return Template(
        tuple(str(part) for part in argv),
        {str(name): str(text) for name, text in environment.items()},
        shell=plain.get("shell") is True,
    )
