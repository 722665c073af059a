"""The definition of an experiment, which can be stored and run again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields

from luthier.errors import InvalidInputError, LuthierError
from luthier.optimizers.earlier import Earlier, read_transfer
from luthier.policies import Prune, Resample, Stop, SubsetPicker
from luthier.space import Choice, Space
from luthier.spec.objectives import Objective
from luthier.spec.origin import FORMER_KEY, Origin, origin_in
from luthier.spec.rules import (
    TunedProblem,
    compares_times,
    needs_relation_to_time,
    picker_from,
    prune_from,
    resample_from,
    stop_from,
)
from luthier.spec.script import JobScript
from luthier.spec.settings import Settings, all_settings
from luthier.spec.template import Template
from luthier.statistics.estimate import AUTO, ESTIMATORS
from luthier.texts import shown
from luthier.trial import Config, Json, Value

MOST_OBJECTIVES = 3
"""With more than three, nearly every configuration is on the Pareto front, and the front is useless."""

FEWEST_VERIFIED = 10
"""A smaller budget is too small for a verification."""

OF_ITS_HISTORY = ("refinements", "spent_before_s")
"""The settings of a stored experiment that a copy of it does not get."""

_FOREIGN = "the store was written by another program"


@dataclass(frozen=True, slots=True)
class Refinement:
    """A larger budget for an experiment whose search had ended: it searches again, and verifies again.

    `events` is how many submissions and endings of runs came before, `runs` how many runs had used up the budget.
    """

    events: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Settings):
    """What to tune and how. `command` is None when a Python function is tuned.

    With several objectives the result is a Pareto front instead of a winner: there is no verification, `prune` and
    `stop` cannot be used, and `resample` is `once` or `static:RUNS`.

    `budget` counts all submitted runs. The rules are parsed once: `stop_rule`, `prune_rule`, `resample_rule` and
    `picker_rule` are the parsed `stop`, `prune`, `resample` and `impact_first`. The default and repeated
    configurations are removed from `first`. `earlier` is what the search knows from the experiments in `after`, and
    `picker_weights` are those of a learned subset picker; both are fixed when the experiment is created. `refinements`
    are the times when the budget was raised after the search had ended (`luthier resume N --budget +30`), oldest first.
    `origin` is what was done before, where this experiment is a part of a larger tuning (`luthier io tune`).
    """

    space: Space
    command: Template | JobScript | None = None
    earlier: Earlier | None = None
    refinements: tuple[Refinement, ...] = ()
    origin: Origin | None = None
    picker_weights: Mapping[str, Json] | None = None
    stop_rule: Stop = field(init=False, repr=False, compare=False)
    prune_rule: Prune = field(init=False, repr=False, compare=False)
    resample_rule: Resample = field(init=False, repr=False, compare=False)
    picker_rule: SubsetPicker | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for setting in all_settings():
            with _about(setting.name):
                self._set(setting.field, setting.kind.read(getattr(self, setting.field)))
        if self.estimator not in (AUTO, *ESTIMATORS):
            raise InvalidInputError(
                f"estimator: {shown(self.estimator)} is unknown; use {AUTO}, {', '.join(ESTIMATORS)}"
            )
        with _about("transfer"):
            read_transfer(self.transfer)
        with _about("resample"):
            self._set("resample_rule", resample_from(self.resample))
        with _about("prune"):
            self._set("prune_rule", prune_from(self.prune))
        with _about("stop"):
            known = (self.space, self.objective.maximizes, self.production_runs, self.objective.is_io_time)
            self._set("stop_rule", stop_from(self.stop, TunedProblem(*known)))
        with _about("impact_first"):
            self._set("picker_rule", picker_from(self.impact_first, self.picker_weights))
        self._check_rules()
        self._check_objectives()
        with _about("first"):
            self._set("first", checked_first(self.space, self.first))
        if self.command is not None:
            self.command.check(self.space)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_rules(self) -> None:
        if self.objective.is_time:
            return
        if isinstance(self.prune, str):
            raise InvalidInputError(
                f"prune: {shown(self.prune)} compares times, so it needs the measure wall, minimized; or give a time"
            )
        for criterion in filter(compares_times, self.stop):
            raise InvalidInputError(f"stop: {shown(criterion)} compares times, so it needs the measure wall, minimized")
        for criterion in filter(needs_relation_to_time, self.stop):
            if self.objective.is_amount:
                raise InvalidInputError(
                    f"stop: {shown(criterion)} compares time saved with time spent, and {self.objective.measure} says "
                    "nothing about time; use a criterion such as 'no improvement over 15'"
                )

    def _check_objectives(self) -> None:
        measures = [objective.measure for objective in self.objectives]
        if not self.has_front:
            return
        if len(measures) > MOST_OBJECTIVES:
            raise InvalidInputError(f"measure: {len(measures)} are too many; give at most {MOST_OBJECTIVES}")
        if len({measure == "returned" for measure in measures}) > 1:
            raise InvalidInputError(
                "measure: 'returned' cannot be combined with others; let the function return all values"
            )
        if measures[0] != "returned" and len(set(measures)) < len(measures):
            raise InvalidInputError(f"measure: {', '.join(measures)}; give each of them once")
        if self.resample.startswith(("sedr", "evadyr")):
            raise InvalidInputError(f"resample: {shown(self.resample)} needs a single measure; use once or static:RUNS")
        if self.picker_rule is not None:
            raise InvalidInputError("impact_first: needs a single measure; remove it, or give one measure")
        for setting in all_settings():
            unused = setting.field in ("prune", "stop", "verify_pairs", "sentinels")
            if unused and getattr(self, setting.field):
                raise InvalidInputError(f"{setting.name}: needs a single measure; remove it, or give one measure")

    @property
    def objective(self) -> Objective:
        """The first objective."""
        return self.objectives[0]

    @property
    def has_front(self) -> bool:
        """Whether there are several objectives, so that the result is a Pareto front."""
        return len(self.objectives) > 1

    @property
    def is_comparison(self) -> bool:
        """Whether it compares what another experiment has found, on another program."""
        return self.origin is not None and self.origin.searched is not None

    @property
    def spent_before_s(self) -> float:
        """The time that the earlier steps of the same tuning took."""
        return 0.0 if self.origin is None else self.origin.seconds

    @property
    def reserved_pairs(self) -> int:
        """How many pairs of runs the search leaves for the verification."""
        before = self.refinements[-1].runs if self.refinements else 0
        return 0 if self.has_front else pairs_reserved(self.budget - before, self.verify_pairs)

    def round_of(self, event: int) -> int:
        """How often the search had been continued with a larger budget when this event happened."""
        return sum(refinement.events <= event for refinement in self.refinements)

    def to_json(self) -> dict[str, Json]:
        """The experiment as JSON values."""
        return {
            "space": self.space.to_json(),
            "command": None if self.command is None else self.command.to_json(),
            **({} if self.earlier is None else {"earlier": self.earlier.to_json()}),
            **({"refinements": [asdict(one) for one in self.refinements]} if self.refinements else {}),
            **({} if self.origin is None else {"origin": self.origin.to_json()}),
            **({} if self.picker_weights is None else {"picker_weights": dict(self.picker_weights)}),
            **settings_json(self),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Experiment":
        """Rebuild what `to_json` wrote; a key that this version does not know is an error, not a silent loss."""
        values = dict(plain)
        origin = origin_in(values)
        values.pop(FORMER_KEY, None)
        known = {each.name for each in fields(cls) if each.init}
        if unknown := sorted(set(values) - known):
            raise InvalidInputError(
                f"experiment settings contain {', '.join(unknown)}, unknown to this version; update luthier"
            )
        space, command, earlier = (values.pop(name, None) for name in ("space", "command", "earlier"))
        refinements, _ = values.pop("refinements", ()), values.pop("origin", None)
        if not isinstance(space, Mapping) or not (command is None or isinstance(command, Mapping)):
            raise InvalidInputError(f"experiment settings contain no parameter space; {_FOREIGN}")
        return cls(
            space=Space.from_json(space),
            command=None if command is None else _command(command),
            earlier=Earlier.from_json(earlier) if isinstance(earlier, Mapping) else None,
            refinements=tuple(_refinements(refinements)),
            origin=origin,
            **values,  # type: ignore[arg-type]  # __post_init__ checks each value
        )


def pairs_reserved(budget: int, verify_pairs: int | None) -> int:
    """How many pairs of runs a search leaves for the verification; `verify_pairs` is what the user asked for.

    At least three: Student's t is 12.7 with one degree of freedom and 4.3 with two, so the 95 % interval of fewer
    pairs is too wide to be useful. An eighth of the budget leaves three quarters of it to the search.
    """
    if verify_pairs is not None:
        return min(verify_pairs, (budget - 1) // 2)
    if budget < FEWEST_VERIFIED:
        return 0
    return min(max(budget // 8, 3), 10)


def _refinements(plain: Json) -> Iterator[Refinement]:
    for one in plain if isinstance(plain, Sequence) else ():
        events, runs = (one.get(name) if isinstance(one, Mapping) else None for name in ("events", "runs"))
        if not isinstance(events, int) or not isinstance(runs, int):
            raise InvalidInputError(f"refinements: {shown(one)} is invalid; {_FOREIGN}")
        yield Refinement(events, runs)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Prefix errors with the name of the setting."""
    try:
        yield
    except LuthierError as error:
        raise InvalidInputError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None


def settings_json(settings: Settings) -> dict[str, Json]:
    """Every setting as a JSON value."""
    return {setting.field: _plain(getattr(settings, setting.field)) for setting in all_settings()}


def _plain(value: object) -> Json:
    if isinstance(value, Objective):
        return {"measure": value.measure, "goal": value.goal}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value  # type: ignore[return-value]  # the kinds of settings have no other values


def checked_first(space: Space, given: object) -> tuple[Config, ...]:
    """The configurations to try first, as configurations of the space."""
    configs = given if isinstance(given, Sequence) else ()
    checked: dict[Config, None] = {}
    for config in configs:
        checked[space.check(_whole(space, config))] = None
    checked.pop(space.default, None)
    return tuple(checked)


def _whole(space: Space, config: Mapping[str, Value]) -> dict[str, Value]:
    """The configuration with missing parameters added and texts such as 64k read as values."""
    values = {**space.default, **config}
    for parameter in space.parameters:
        value = values[parameter.name]
        if isinstance(value, str) and not (isinstance(parameter, Choice) and value in parameter.values):
            values[parameter.name] = parameter.parse(value)
    return values


def _command(plain: Mapping[str, Json]) -> Template | JobScript:
    if "component" in plain:
        return JobScript.from_json(plain)
    argv, environment = plain.get("argv"), plain.get("environment")
    if not isinstance(argv, Sequence) or not isinstance(environment, Mapping):
        raise InvalidInputError(f"experiment settings contain no command; {_FOREIGN}")
    return Template(
        tuple(str(part) for part in argv),
        {str(name): str(text) for name, text in environment.items()},
        shell=plain.get("shell") is True,
        where=str(plain.get("where", "local")),
    )
