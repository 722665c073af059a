"""Peers that are asked for several configurations at once; each runs in a process of its own, in its own interpreter.

The process reads a line with the space and the seed, then lines `{"ask": COUNT}` and `{"tell": [[CONFIG, VALUE], ...]}`
(VALUE is null for a failure), and answers each with what was asked for and the CPU seconds it took.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.virtual_time import Evaluation
    from luthier.space import Space

Raw = Mapping[str, object]
"""A configuration, or a parameter: its `name`, and `low`, `high` and `log`, or `values`."""


class BatchPeer:
    """A peer in another process, as a `benchmarks.virtual_time.Player`."""

    def __init__(self, python: "Path", name: str, space: "Space", *, seed: int) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.batch_peers", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        self._space, self._spent_s = space, 0.0
        self._send({"parameters": [_described(parameter) for parameter in space.parameters], "seed": seed})
        self._spent_s = 0.0  # imports do not count

    def ask(self, count: int) -> Sequence[Mapping[str, "bool | int | float | str"]]:
        """Suggest `count` configurations."""
        configs = self._send({"ask": count})
        return [self._space.check(config) for config in configs]

    def tell(self, finished: "Sequence[Evaluation]") -> None:
        """Learn how configurations ended."""
        self._send({"tell": [[dict(one.config), one.value] for one in finished]})

    def spent_s(self) -> float:
        """CPU seconds of the peer since the last call."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _send(self, message: Mapping[str, object]) -> "list[dict[str, bool | int | float | str]]":
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process of the peer has no pipes")
        self._process.stdin.write(json.dumps(message) + "\n")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peer ended; see above what it wrote")
        answer = json.loads(line)
        self._spent_s += answer["cpu_s"]
        configs: list[dict[str, bool | int | float | str]] = answer["configs"]
        return configs


def _described(parameter: object) -> Raw:
    values = getattr(parameter, "values", None)
    if values is not None:
        return {"name": getattr(parameter, "name", ""), "values": list(values)}
    low, high = getattr(parameter, "low", 0), getattr(parameter, "high", 0)
    return {
        "name": getattr(parameter, "name", ""),
        "low": low,
        "high": high,
        "log": getattr(parameter, "scale", "") == "log",
    }


class _Search(Protocol):
    def ask(self, count: int) -> Sequence[Raw]: ...

    def tell(self, finished: Sequence[tuple[Raw, float | None]]) -> None: ...


class _Optuna:
    """TPE with its constant liar, as Optuna advises for many workers; a failure is told as failed."""

    def __init__(self, parameters: Sequence[Raw], seed: int) -> None:
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        kinds = optuna.distributions
        self._space = {
            one["name"]: kinds.CategoricalDistribution(one["values"])
            if "values" in one
            else kinds.IntDistribution(one["low"], one["high"], log=one["log"])
            for one in parameters
        }
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True))
        self._failed = optuna.trial.TrialState.FAIL
        self._running: dict[str, list[object]] = {}

    def ask(self, count: int) -> Sequence[Raw]:
        trials = [self._study.ask(self._space) for _ in range(count)]
        for trial in trials:
            self._running.setdefault(json.dumps(trial.params, sort_keys=True), []).append(trial)
        return [trial.params for trial in trials]

    def tell(self, finished: Sequence[tuple[Raw, float | None]]) -> None:
        for config, value in finished:
            trial = self._running[json.dumps(config, sort_keys=True)].pop()
            if value is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, value)


class _DeepHyper:
    """The search of the paper, in its present version: random forest or extra trees, UCB, candidates by sampling."""

    def __init__(self, parameters: Sequence[Raw], seed: int, **options: object) -> None:
        hpo = import_module("deephyper.hpo")
        problem = hpo.HpProblem()
        self._values: dict[object, dict[str, object]] = {}
        for one in parameters:
            if "values" in one:
                values = one["values"]
                self._values[one["name"]] = {str(value): value for value in values} if isinstance(values, list) else {}
                problem.add_hyperparameter(list(self._values[one["name"]]), one["name"])
            else:
                low, high = one["low"], one["high"]
                problem.add_hyperparameter((low, high, "log-uniform") if one["log"] else (low, high), one["name"])
        folder = tempfile.mkdtemp(prefix="deephyper-")
        self._search = hpo.CBO(problem, random_state=seed, log_dir=folder, acq_optimizer="sampling", **options)

    def ask(self, count: int) -> Sequence[Raw]:
        return [
            {
                name: self._values[name][str(value)] if name in self._values else int(value)
                for name, value in one.items()
            }
            for one in self._search.ask(count)
        ]

    def tell(self, finished: Sequence[tuple[Raw, float | None]]) -> None:
        from math import log

        told = []
        for config, value in finished:
            raw = {name: str(one) if name in self._values else one for name, one in config.items()}
            told.append((raw, "F" if value is None else -log(value)))
        self._search.tell(told)


PEERS: Mapping[str, Callable[[Sequence[Raw], int], _Search]] = {
    "optuna:tpe": _Optuna,
    "deephyper:et": lambda parameters, seed: _DeepHyper(parameters, seed, surrogate_model="ET"),
    "deephyper:rf": lambda parameters, seed: _DeepHyper(parameters, seed, surrogate_model="RF"),
    "deephyper:qucbd": lambda parameters, seed: _DeepHyper(
        parameters, seed, surrogate_model="ET", multi_point_strategy="qUCBd"
    ),
}
"""The peers by name."""


def _serve(name: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print; only answers may reach the parent
    warnings.filterwarnings("ignore")
    search: _Search | None = None
    for line in sys.stdin:
        message = json.loads(line)
        start, configs = time.process_time(), []
        if search is None:
            search = PEERS[name](message["parameters"], message["seed"])
        elif "ask" in message:
            configs = list(search.ask(message["ask"]))
        else:
            search.tell([(config, value) for config, value in message["tell"]])
        plain = [
            {key: getattr(value, "item", lambda value=value: value)() for key, value in one.items()} for one in configs
        ]
        answers.write(json.dumps({"configs": plain, "cpu_s": time.process_time() - start}) + "\n")


if __name__ == "__main__":
    _serve(sys.argv[1])
