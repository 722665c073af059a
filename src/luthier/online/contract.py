"""What every strategy promises, as a test suite that plug-in authors can run too.

Subclass `StrategyContract` in a test file and name the registered strategies to be tested:

    class TestMine(StrategyContract):
        strategies = ("mine",)
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from luthier.online.base import Standing, Strategy
from luthier.online.registry import make_strategy
from luthier.online.strategies.sampling import FixedSampling, Sampling
from luthier.optimizers.contract import SPACES
from luthier.space import Space
from luthier.trial import Config

MOST_STEPS = 5000
"""A search that has not converged after this many steps of a program counts as endless."""

Report = tuple[str, Config, float | None]


@dataclass(slots=True)
class CheckedProgram:
    """A program with several clients that takes part in a search; every promise is checked at each step."""

    strategy: Strategy
    space: Space
    measure: Callable[[Config], float | None]
    clients: list[str]
    log: list[Report] = field(default_factory=list)
    handed: list[Config] = field(default_factory=list)

    def step(self) -> None:
        """One iteration of all clients: each fetches, then each reports."""
        running = [(client, self._next(client)) for client in self.clients]
        for client, config in running:
            self.report(client, config, self.measure(config))

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Report a value, and check that nothing of the input was changed."""
        before = deepcopy(dict(config))
        self.strategy.report(client, config, value)
        assert dict(config) == before, "a strategy must not change what it is told"
        self.log.append((client, config, value))
        assert self.space.contains(self.strategy.standing.best), "the best configuration must be valid"

    def run(self, steps: int) -> Standing:
        """Run until the search has converged, or some steps."""
        for _ in range(steps):
            if self.strategy.standing.converged:
                break
            self.step()
        return self.strategy.standing

    def _next(self, client: str) -> Config:
        config = self.strategy.next(client)
        self.space.check(config)
        assert self.strategy.next(client) == config, "a client that asks again must get the same configuration"
        self.handed.append(config)
        return config


def bowl(space: Space) -> Callable[[Config], float]:
    """A smooth function of a space with one minimum; categories add constants."""

    def measure(config: Config) -> float:
        unit = space.to_unit(space.codes([config]))[0]
        return 1.0 + float(np.sum((unit - 0.62) ** 2))

    return measure


def noisy(measure: Callable[[Config], float], seed: int) -> Callable[[Config], float]:
    """The same with heavy-tailed noise: a Pareto distribution without a variance."""
    rng = np.random.default_rng(seed)
    return lambda config: measure(config) * (1.0 + 0.05 * (1.0 + float(rng.pareto(1.7))))


def reports_as_json(log: list[Report]) -> str:
    """Reports as text, for another process."""
    return json.dumps([[client, dict(config), value] for client, config, value in log])


def standing_as_json(standing: Standing) -> list[object]:
    """A standing as plain values."""
    return [dict(standing.best), standing.value, standing.samples, standing.converged]


def replayed(name: str, space_name: str, seed: int, reports: str) -> str:
    """The standing after a list of reports, and what a new client gets next."""
    space = SPACES[space_name]()
    strategy = make_strategy(name, space, seed=seed, sampling=FixedSampling(1))
    for client, config, value in json.loads(reports):
        strategy.report(client, space.check(config), value)
    after = [dict(strategy.next(f"new {number}")) for number in range(3)]
    return json.dumps([standing_as_json(strategy.standing), after])


class StrategyContract:
    """The promises of `Strategy`, over every kind of space."""

    strategies: ClassVar[tuple[str, ...]] = ()
    sampling: ClassVar[Sampling] = FixedSampling(1)

    @pytest.fixture(params=sorted(SPACES))
    def space_name(self, request: pytest.FixtureRequest) -> str:
        """Every kind of space."""
        return str(request.param)

    @pytest.fixture
    def each(self, space_name: str) -> Iterator[tuple[str, Space]]:
        """Every strategy with a space."""
        return ((name, SPACES[space_name]()) for name in self.strategies)

    def _program(
        self, name: str, space: Space, clients: int, measure: Callable[[Config], float | None] | None = None
    ) -> CheckedProgram:
        strategy = make_strategy(name, space, seed=1, sampling=self.sampling)
        return CheckedProgram(strategy, space, measure or bowl(space), [f"client {i}" for i in range(clients)])

    @pytest.mark.parametrize("clients", [1, 5, 40])
    def test_converges_and_then_hands_out_the_best(self, each: Iterator[tuple[str, Space]], clients: int) -> None:
        """Every search ends, with one client and with many, and not with something worse than the default."""
        for name, space in each:
            program = self._program(name, space, clients)
            default = bowl(space)(space.default)
            for client in program.clients:
                program.report(client, space.default, default)
            standing = program.run(MOST_STEPS)
            assert standing.converged, f"{name} did not converge"
            assert {program.strategy.next(client) for client in ("client 0", "a new one")} == {standing.best}
            assert standing.value is not None
            assert standing.value <= default
            assert standing.value == bowl(space)(standing.best)

    def test_converges_under_heavy_tailed_noise(self, each: Iterator[tuple[str, Space]]) -> None:
        """Noise without a variance does not make a search endless."""
        for name, space in each:
            standing = self._program(name, space, 6, noisy(bowl(space), 3)).run(MOST_STEPS)
            assert standing.converged, f"{name} did not converge"

    def test_is_restored_from_its_reports(self, each: Iterator[tuple[str, Space]], space_name: str) -> None:
        """A new strategy that gets the same reports has the same state and continues alike, in any process."""
        for name, space in each:
            program = self._program(name, space, 4, noisy(bowl(space), 2))
            for _ in range(9):
                program.step()
            for client in program.clients:
                program.strategy.leave(client)
            after = [dict(program.strategy.next(f"new {number}")) for number in range(3)]
            known = [standing_as_json(program.strategy.standing), after]
            assert json.loads(replayed(name, space_name, 1, reports_as_json(program.log))) == known

    @pytest.mark.parametrize("space_name", ["mixed"])
    def test_another_process_gives_the_same_answers(self, each: Iterator[tuple[str, Space]], space_name: str) -> None:
        """No answer depends on the hash seed or on anything else of a process."""
        for name, space in each:
            program = self._program(name, space, 4, noisy(bowl(space), 5))
            for _ in range(12):
                program.step()
            reports = reports_as_json(program.log)
            code = (
                "import sys; from luthier.online.contract import replayed; "
                f"print(replayed({name!r}, {space_name!r}, 1, sys.stdin.read()))"
            )
            told = subprocess.run(
                [sys.executable, "-c", code],
                input=reports,
                env={**os.environ, "PYTHONHASHSEED": "77"},
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
            )
            assert told.stdout.strip() == replayed(name, space_name, 1, reports)

    def test_what_a_lost_client_had_is_measured_by_another(self, each: Iterator[tuple[str, Space]]) -> None:
        """Clients that leave in the middle of an iteration do not stop a search."""
        for name, space in each:
            program = self._program(name, space, 3)
            rng, number = np.random.default_rng(4), 0
            for _ in range(MOST_STEPS):
                if program.strategy.standing.converged:
                    break
                lost = f"lost {number}"
                program.strategy.next(lost)
                program.strategy.leave(lost)
                number += int(rng.integers(1, 3))
                program.step()
            assert program.strategy.standing.converged, f"{name} did not converge"

    def test_configurations_that_fail_are_not_the_best(self, each: Iterator[tuple[str, Space]]) -> None:
        """Half of the space fails, then all of it: the search ends, and never with something that failed."""
        for name, space in each:
            middle = float(np.median([bowl(space)(config) for config in space.sample(50, np.random.default_rng(1))]))

            def half(config: Config, space: Space = space, middle: float = middle) -> float | None:
                value = bowl(space)(config)
                return None if value < middle else value

            program = self._program(name, space, 4, half)
            standing = program.run(MOST_STEPS)
            failed = {config for _, config, value in program.log if value is None}
            assert standing.converged, f"{name} did not converge"
            assert standing.value is None or standing.best not in failed
            nothing = self._program(name, space, 4, lambda _: None)
            standing = nothing.run(MOST_STEPS)
            assert standing.converged, f"{name} did not converge although everything failed"
            assert standing.value is None

    def test_accepts_reports_of_anybody_about_anything(self, each: Iterator[tuple[str, Space]]) -> None:
        """A client that was never seen may report a configuration that was never handed out."""
        for name, space in each:
            program = self._program(name, space, 3)
            for number, config in enumerate(space.sample(20, np.random.default_rng(9))):
                program.report(f"stranger {number}", config, bowl(space)(config))
                program.step()
            assert program.run(MOST_STEPS).converged

    def test_starts_at_its_centre(self, each: Iterator[tuple[str, Space]]) -> None:
        """Before anything was measured, the best configuration is the one where the search starts."""
        for name, space in each:
            centre = space.sample(1, np.random.default_rng(6))[0]
            strategy = make_strategy(name, space, seed=1, sampling=self.sampling, centre=centre)
            assert strategy.standing == Standing(centre, None, 0, converged=strategy.standing.converged)
            program = CheckedProgram(strategy, space, bowl(space), ["one", "two"])
            standing = program.run(MOST_STEPS)
            assert standing.converged
            assert standing.value is not None
            assert standing.value <= bowl(space)(centre)
