"""Ask and tell one configuration at a time, for programs with a loop of their own."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from luthier.errors import ExhaustedError, InvalidInputError
from luthier.optimizers.base import Optimizer
from luthier.optimizers.earlier import Earlier
from luthier.optimizers.front import front_of, values_of
from luthier.optimizers.registry import make_optimizer
from luthier.policies import make_picker
from luthier.space import Space
from luthier.trial import Completed, Config, Estimate, Failed, Outcome, Trial, Value


class AskTell:
    """Suggests configurations of `space` and learns from their values; lower values are better.

    A configuration that was asked for and not told yet counts as running.
    """

    def __init__(self, optimizer: Optimizer, space: Space) -> None:
        self._optimizer, self._space = optimizer, space
        self._running: dict[Config, None] = {}
        self._trials: dict[Config, Trial] = {}

    def ask(self) -> Config:
        """The next configuration to measure; `ExhaustedError` when every one was suggested."""
        return self.ask_many(1)[0]

    def ask_many(self, count: int) -> list[Config]:
        """Up to `count` distinct configurations to measure in parallel; `ExhaustedError` when none is left."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidInputError(f"ask_many: count is {count!r}; give a whole number, 1 or more")
        suggested = list(self._optimizer.ask(count, list(self._running)))
        if not suggested:
            left = f"; {len(self._running)} were not told yet" if self._running else ""
            raise ExhaustedError(f"every configuration was suggested{left}; take the best, or widen the space")
        self._running.update(dict.fromkeys(suggested))
        return suggested

    def tell(self, config: Mapping[str, Value], value: float | Sequence[float] | None) -> None:
        """Report what a run of `config` gave; None for one that failed; to `pareto`, a sequence of up to three values.

        To tell a configuration again adds a repeat: its value is the mean of those told. Any configuration of the space
        may be told, asked for or not.
        """
        known = self._space.check(config)
        earlier = self._trials[known].outcomes if known in self._trials else ()
        outcome = _outcome(known, value)
        self._check_objectives(known, outcome)
        outcomes = (*earlier, outcome)
        self._running.pop(known, None)
        guesses = _estimates(outcomes)
        trial = Trial(known, outcomes, guesses[0] if guesses else None, tuple(guesses[1:]))
        self._trials[known] = trial
        self._optimizer.tell([trial])

    @property
    def best(self) -> tuple[Config, float]:
        """The configuration with the lowest value, and this value."""
        measured = [
            (trial.config, trial.estimate.value) for trial in self._trials.values() if trial.estimate is not None
        ]
        if not measured:
            raise InvalidInputError("best: nothing was measured yet; ask, measure and tell first")
        return min(measured, key=lambda pair: pair[1])

    @property
    def front(self) -> tuple[tuple[Config, tuple[float, ...]], ...]:
        """The configurations that no other one beats in every objective, with their values, sorted by the first."""
        trials = self.trials
        known = [(trials[position].config, values_of(trials[position])) for position in front_of(trials)]
        return tuple((config, values) for config, values in known if values is not None)

    def _check_objectives(self, config: Config, outcome: Outcome) -> None:
        if not isinstance(outcome, Completed):
            return
        told, most = 1 + len(outcome.others), getattr(self._optimizer, "most_objectives", 1)
        if told > most:
            way_out = "use the optimizer 'pareto'" if most == 1 else "tell fewer"
            raise InvalidInputError(f"tell {config}: {told} values, but this optimizer supports {most}; {way_out}")
        known = (values for trial in self._trials.values() if (values := values_of(trial)) is not None)
        first = next(known, None)
        before = told if first is None else len(first)
        if before != told:
            raise InvalidInputError(
                f"tell {config}: {told} values, but {before} before; tell the same number each time"
            )

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every configuration told, in order of first appearance."""
        return tuple(self._trials.values())


def optimizer(
    name: str,
    space: Space,
    *,
    seed: int,
    budget: int | None = None,
    earlier: Earlier | None = None,
    impact_first: str = "off",
    **options: Value | None,
) -> AskTell:
    """The optimizer called `name` to ask and tell one configuration at a time; `options` are those of the optimizer.

    `earlier` is what is known from earlier experiments, made by `luthier.transfer.lessons.earlier_from`. With
    `impact_first` (auto, statistical or learned) the parameters with the largest expected gain are tuned first.
    """
    picker = None if impact_first == "off" else make_picker(impact_first)
    search = make_optimizer(name, space, seed=seed, budget=budget, earlier=earlier, picker=picker, **options)
    return AskTell(search, space)


def _outcome(config: Config, value: float | Sequence[float] | None) -> Outcome:
    if value is None:
        return Failed("told without a value")
    plain = getattr(value, "tolist", lambda: value)()
    parts = list(plain) if isinstance(plain, list | tuple) and len(plain) > 1 else [plain]
    numbers = [_number(part) for part in parts]
    if not all(map(math.isfinite, numbers)):
        raise InvalidInputError(f"tell {config}: {value!r} is not a finite number; tell None for a run that failed")
    return Completed(numbers[0], tuple(numbers[1:]))


def _number(part: object) -> float:
    if isinstance(part, str | bool):
        return math.nan
    try:
        return float(part)  # type: ignore[arg-type]  # anything that float() accepts
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _estimates(outcomes: tuple[Outcome, ...]) -> list[Estimate]:
    completed = [(outcome.value, *outcome.others) for outcome in outcomes if isinstance(outcome, Completed)]
    return [_estimate(values) for values in zip(*completed, strict=True)]


def _estimate(values: Sequence[float]) -> Estimate:
    if len(values) == 1:
        return Estimate(values[0], 1)
    # Sums of huge values, and squares of huge or tiny ones, leave the range of floats; shares of the largest do not.
    largest = max(map(abs, values)) or 1.0
    shares = [value / largest for value in values]
    return Estimate(fmean(shares) * largest, len(values), deviation=stdev(shares) * largest)
