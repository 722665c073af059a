"""All players (the optimizers of luthier and of its peers) behind one interface.

A library is imported when its player is made: each family has an interpreter of its own.
"""

import logging
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from benchmarks import tables
from benchmarks.tables import Point, Table

INITIAL = 10
"""Size of the initial design of every peer that has one."""


class Player(Protocol):
    """An optimizer over points, lower is better; `takes_failures` says whether it may be told None."""

    takes_failures: bool

    def ask(self) -> Point | None:
        """The next point, or None when there is nothing left to try."""
        ...

    def tell(self, point: Point, value: float | None) -> None:
        """Learn the value of the point asked last, or of the default before anything was asked."""
        ...


@dataclass(frozen=True, slots=True)
class Game:
    """The problem that a player is created for."""

    variant: str
    table: Table
    budget: int
    seed: int


def _ordered(table: Table) -> list[bool]:
    return [tables.is_ordered(values) for values in table.parameters.values()]


def _never_called(config: object, seed: int = 0) -> float:
    """A placeholder for libraries that require an objective although they are used by ask and tell."""
    raise NotImplementedError(f"{config}, {seed}")


class _Luthier:
    takes_failures = True

    def __init__(self, game: Game) -> None:
        luthier = import_module("luthier")
        default = game.table.config(game.table.default) if game.table.default else {}
        parameters = [
            luthier.Choice(name, list(values), default=default.get(name), ordered=tables.is_ordered(values))
            for name, values in game.table.parameters.items()
        ]
        self._table = game.table
        self._over: type[Exception] = import_module("luthier.errors").ExhaustedError
        self._optimizer = luthier.optimizer(game.variant, luthier.Space(*parameters), seed=game.seed)

    def ask(self) -> Point | None:
        try:
            return self._table.point(self._optimizer.ask())
        except self._over:
            return None

    def tell(self, point: Point, value: float | None) -> None:
        self._optimizer.tell(self._table.config(point), value)


class _Optuna:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = optuna.samplers
        make = {
            "tpe": lambda: samplers.TPESampler(seed=game.seed, n_startup_trials=INITIAL),
            "gp": lambda: samplers.GPSampler(seed=game.seed, n_startup_trials=INITIAL),
            "cma": lambda: samplers.CmaEsSampler(
                seed=game.seed, n_startup_trials=INITIAL, with_margin=True, warn_independent_sampling=False
            ),
            "random": lambda: samplers.RandomSampler(seed=game.seed),
        }
        kinds = optuna.distributions
        self._space = {
            name: kinds.IntDistribution(0, len(values) - 1)
            if tables.is_ordered(values)
            else kinds.CategoricalDistribution(list(range(len(values))))
            for name, values in game.table.parameters.items()
        }
        self._study = optuna.create_study(direction="minimize", sampler=make[game.variant]())
        self._complete = optuna.trial.create_trial
        self._trial: object = None

    def ask(self) -> Point:
        trial = self._study.ask(self._space)
        self._trial = trial
        return tuple(int(trial.params[name]) for name in self._space)

    def tell(self, point: Point, value: float | None) -> None:
        if self._trial is None:
            params = dict(zip(self._space, point, strict=True))
            self._study.add_trial(self._complete(params=params, distributions=self._space, value=value))
        else:
            self._study.tell(self._trial, value)


class _DeepHyper:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        hpo = import_module("deephyper.hpo")
        problem = hpo.HpProblem()
        for name, values in game.table.parameters.items():
            places = list(map(str, range(len(values))))
            problem.add_hyperparameter((0, len(values) - 1) if tables.is_ordered(values) else places, name)
        options = {"et": {"acq_optimizer": "sampling"}, "default": {}}[game.variant]
        self._names = list(game.table.parameters)
        self._ordered = _ordered(game.table)
        self._folder = tempfile.mkdtemp(prefix="deephyper-")
        self._search = hpo.CBO(
            problem,
            random_state=game.seed,
            log_dir=self._folder,
            surrogate_model="ET",
            n_initial_points=INITIAL,
            **options,
        )

    def ask(self) -> Point:
        config = self._search.ask(1)[0]
        return tuple(int(config[name]) for name in self._names)

    def tell(self, point: Point, value: float | None) -> None:
        raw = [i if ordered else str(i) for i, ordered in zip(point, self._ordered, strict=True)]
        config = dict(zip(self._names, raw, strict=True))
        self._search.tell([(config, -value if value is not None else "F")])  # it maximises

    def __del__(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class _Smac:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        space, smac = import_module("ConfigSpace"), import_module("smac")
        values = import_module("smac.runhistory.dataclasses")
        logging.getLogger("smac").setLevel(logging.ERROR)
        self._table, self._names = game.table, list(game.table.parameters)
        self._space = space.ConfigurationSpace(seed=game.seed)
        self._space.add([
            space.Integer(name, (0, len(vs) - 1)) if tables.is_ordered(vs) else space.Categorical(name, range(len(vs)))
            for name, vs in game.table.parameters.items()
        ])  # fmt: skip
        self._folder = tempfile.mkdtemp(prefix="smac-")
        facade = {"hpo": smac.HyperparameterOptimizationFacade, "bb": smac.BlackBoxFacade}[game.variant]
        scenario = smac.Scenario(
            self._space, deterministic=True, n_trials=game.budget, seed=game.seed, output_directory=self._folder
        )
        first = facade.get_initial_design(scenario, n_configs=INITIAL - bool(game.table.default), max_ratio=1.0)
        self._smac = facade(scenario, _never_called, initial_design=first, overwrite=True, logging_level=False)
        self._configuration, self._info, self._value = space.Configuration, values.TrialInfo, values.TrialValue
        self._asked: object = None

    def ask(self) -> Point:
        asked = self._smac.ask()
        self._asked = asked
        config = dict(asked.config)
        return tuple(int(config[name]) for name in self._names)

    def tell(self, point: Point, value: float | None) -> None:
        if self._asked is None:
            named = dict(zip(self._names, point, strict=True))
            self._asked = self._info(self._configuration(self._space, values=named), seed=0)
        self._smac.tell(self._asked, self._value(cost=value, time=0.0))

    def __del__(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class _Skopt:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        skopt, space = import_module("skopt"), import_module("skopt.space")
        dimensions = [
            space.Integer(0, len(values) - 1, name=name)
            if tables.is_ordered(values)
            else space.Categorical(list(map(str, range(len(values)))), name=name)
            for name, values in game.table.parameters.items()
        ]
        self._ordered = _ordered(game.table)
        self._optimizer = skopt.Optimizer(
            dimensions,
            base_estimator={"gp": "GP", "forest": "RF", "et": "ET"}[game.variant],
            n_initial_points=INITIAL,
            random_state=game.seed,
            acq_func="gp_hedge" if game.variant == "gp" else "EI",
        )

    def ask(self) -> Point:
        return tuple(int(x) for x in self._optimizer.ask())

    def tell(self, point: Point, value: float | None) -> None:
        self._optimizer.tell([i if o else str(i) for i, o in zip(point, self._ordered, strict=True)], value)


class _Nevergrad:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        nevergrad = import_module("nevergrad")
        kinds = nevergrad.p
        self._names, self._ordered = list(game.table.parameters), _ordered(game.table)
        space = kinds.Dict(**{
            name: kinds.Scalar(init=(len(values) - 1) / 2, lower=0, upper=len(values) - 1).set_integer_casting()
            if tables.is_ordered(values) and len(values) > 1
            else kinds.Choice(list(range(len(values))))
            for name, values in game.table.parameters.items()
        })  # fmt: skip
        space.random_state.seed(game.seed)
        name = {"ngopt": "NGOpt", "oneplusone": "OnePlusOne", "discrete": "DiscreteOnePlusOne"}[game.variant]
        self._optimizer = nevergrad.optimizers.registry[name](parametrization=space, budget=game.budget, num_workers=1)
        self._asked: object = None

    def ask(self) -> Point:
        asked = self._optimizer.ask()
        self._asked = asked
        return tuple(int(asked.value[name]) for name in self._names)

    def tell(self, point: Point, value: float | None) -> None:
        if self._asked is None:
            named = zip(self._names, point, self._ordered, strict=True)
            self._optimizer.suggest({name: float(i) if ordered else i for name, i, ordered in named})
            self._asked = self._optimizer.ask()
        self._optimizer.tell(self._asked, value)


class _Hyperopt:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        hyperopt = import_module("hyperopt")
        logging.getLogger("hyperopt").setLevel(logging.ERROR)
        self._names, self._hyperopt = list(game.table.parameters), hyperopt
        space = {
            name: hyperopt.hp.uniformint(name, 0, len(values) - 1)
            if tables.is_ordered(values)
            else hyperopt.hp.choice(name, list(range(len(values))))
            for name, values in game.table.parameters.items()
        }
        self._domain = import_module("hyperopt.base").Domain(_never_called, space)
        self._trials = hyperopt.Trials()
        self._random = random.Random(game.seed)

    def ask(self) -> Point:
        ids = self._trials.new_trial_ids(1)
        self._trials.refresh()
        seed = self._random.randrange(2**31 - 1)
        found = self._hyperopt.tpe.suggest(ids, self._domain, self._trials, seed, n_startup_jobs=INITIAL)
        self._trials.insert_trial_docs(found)
        self._trials.refresh()
        chosen = found[0]["misc"]["vals"]
        return tuple(int(chosen[name][0]) for name in self._names)

    def tell(self, point: Point, value: float | None) -> None:
        if not self._trials.trials:
            first = dict(zip(self._names, point, strict=True))
            fmin = import_module("hyperopt.fmin")
            self._trials = fmin.generate_trials_to_calculate([first])
            self._trials.refresh()
        trial = self._trials.trials[-1]
        trial["state"] = self._hyperopt.JOB_STATE_DONE
        trial["result"] = {"loss": value, "status": self._hyperopt.STATUS_OK}
        self._trials.refresh()


class _Hebo:
    takes_failures = False

    def __init__(self, game: Game) -> None:
        numpy, self._pandas, torch = import_module("numpy"), import_module("pandas"), import_module("torch")
        numpy.random.seed(game.seed)
        torch.manual_seed(game.seed)
        self._array, self._ordered, self._names = numpy.array, _ordered(game.table), list(game.table.parameters)
        space = import_module("hebo.design_space.design_space").DesignSpace().parse([
            {"name": name, "type": "int", "lb": 0, "ub": len(values) - 1}
            if tables.is_ordered(values)
            else {"name": name, "type": "cat", "categories": list(map(str, range(len(values))))}
            for name, values in game.table.parameters.items()
        ])  # fmt: skip
        self._hebo = import_module("hebo.optimizers.hebo").HEBO(space, rand_sample=INITIAL, scramble_seed=game.seed)
        self._asked: object = None

    def ask(self) -> Point:
        asked = self._hebo.suggest(n_suggestions=1)
        self._asked = asked
        return tuple(int(asked.iloc[0][name]) for name in self._names)

    def tell(self, point: Point, value: float | None) -> None:
        if self._asked is None:
            raw = [i if ordered else str(i) for i, ordered in zip(point, self._ordered, strict=True)]
            self._asked = self._pandas.DataFrame([dict(zip(self._names, raw, strict=True))])
        self._hebo.observe(self._asked, self._array([[value]]))


MAKERS: Mapping[str, Callable[[Game], Player]] = {
    "luthier": _Luthier,
    "optuna": _Optuna,
    "deephyper": _DeepHyper,
    "smac": _Smac,
    "skopt": _Skopt,
    "nevergrad": _Nevergrad,
    "hyperopt": _Hyperopt,
    "hebo": _Hebo,
}
