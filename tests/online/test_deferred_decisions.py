"""Decisions that take long: clients do not wait for them, and the same samples lead to the same search."""

import itertools
import json
import select
import threading
from collections.abc import Iterator

import pytest
from tests.online.serving import PATIENCE_S, SPACE, Serving, cost, until

from luthier.online.service import sessions
from luthier.online.service.protocol import Hello, hello_line
from luthier.online.session import OnlineSession
from luthier.online.session_settings import OnlineSettings
from luthier.online.store import SqlOnlineSessions, online_sessions_in
from luthier.online.strategies.model_strategy import ModelStrategy
from luthier.trial import Sample

CLIENTS = [f"client {number}" for number in range(5)]
SETTINGS = OnlineSettings(strategy="auto", samples=1, watch=False)


def steps(session: OnlineSession, held: int, most: int = 60) -> Iterator[Sample]:
    """Run until convergence; each decision is made as late as `held` steps after it was due."""
    waited = 0
    for step in range(most):
        configs = {client: session.fetch(client, float(step)) for client in CLIENTS}
        if session.decision is not None and session.phase == "searching":
            assert set(configs.values()) == {session.best.best}
        for client, config in configs.items():
            sample = session.report(client, cost(config), step + 0.5)
            if sample is not None:
                yield sample
        if (decide := session.decision) is not None:
            waited += 1
            if waited > held:
                decide()
                session.decided()
                waited = 0


@pytest.mark.parametrize("held", [0, 1, 4])
def test_a_deferred_search_is_restored_by_its_samples(held: int) -> None:
    live = OnlineSession(SPACE, SETTINGS)
    live.defer_decisions()
    samples = list(steps(live, held))
    assert live.phase == "converged"
    restored = OnlineSession(SPACE, SETTINGS)
    restored.replay(samples)
    assert restored.phase == live.phase
    assert restored.best == live.best
    assert live.view().totals.steps == 60
    assert len(samples) < 60 * len(CLIENTS)


def with_failure_at(number: int) -> tuple[OnlineSession, list[Sample], int]:
    """A search in which the best configuration fails while this decision is made; also the number of decisions."""
    session, kept, count = OnlineSession(SPACE, SETTINGS), list[Sample | None](), 0
    session.defer_decisions()
    session.fetch("late", 0.0)
    for step in range(100):
        configs = {client: session.fetch(client, float(step)) for client in CLIENTS}
        kept += [session.report(client, cost(config), step + 0.5) for client, config in configs.items()]
        if (decide := session.decision) is not None:
            count += 1
            if count == number:
                kept.append(session.report("late", None, step + 0.5, session.best.best))
            decide()
            session.decided()
    return session, [sample for sample in kept if sample is not None], count


def test_what_fails_while_the_last_decision_is_made_is_restored() -> None:
    _, _, decisions = with_failure_at(0)
    live, samples, _ = with_failure_at(decisions)
    assert live.phase == "converged"
    assert [sample.value for sample in samples].count(None) == 1
    restored = OnlineSession(SPACE, SETTINGS)
    restored.replay(samples)
    assert (restored.search, restored.phase, restored.best) == (1, "converged", live.best)


def test_what_is_run_while_the_strategy_decides_is_counted_and_not_learned() -> None:
    session = OnlineSession(SPACE, SETTINGS)
    session.defer_decisions()
    for client in itertools.cycle(CLIENTS):
        assert session.report(client, cost(session.fetch(client, 0.0)), 0.0) is not None
        if session.decision is not None and session.phase == "searching":
            break
    total = session.view().totals.steps
    for _ in range(3):
        for client in CLIENTS:
            assert session.report(client, cost(session.fetch(client, 1.0)), 1.0) is None
    assert session.view().totals.steps >= total + 2
    session.leave(CLIENTS[0], 2.0)
    session.stop()
    decide = session.decision
    assert decide is not None
    decide()
    session.decided()
    assert session.phase == "stopped"


def test_without_deferring_nothing_changes() -> None:
    session = OnlineSession(SPACE, SETTINGS)
    for step in range(20):
        for client in CLIENTS:
            session.report(client, cost(session.fetch(client, float(step))), step + 0.5)
            assert session.decision is None


def test_a_slow_decision_delays_nobody(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end, has_begun, decide = threading.Event(), threading.Event(), ModelStrategy.decide

    def slow(self: ModelStrategy) -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        decide(self)

    monkeypatch.setattr(ModelStrategy, "decide", slow)
    settings = {"strategy": "auto", "samples": 1}
    try:
        with served.wire() as one, served.wire() as two, served.wire() as other:
            one.hello("slow", settings=settings)
            two.hello("slow", settings=settings)
            other.hello("quick")
            while not has_begun.is_set():
                one.run(1)
                two.run(1)
            for _ in range(5):
                assert one.run(1)["config"] == two.run(1)["config"] == one.ask(op="best")["config"]
            assert other.run(100)["phase"] == "converged"
            may_end.set()
            until(lambda: one.run(1)["phase"] == two.run(1)["phase"] == "converged")
    finally:
        may_end.set()


def test_a_fetch_waits_for_a_decision_that_is_quick_compared_with_an_iteration(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_WAIT_S", PATIENCE_S)
    may_end, has_begun, decide = threading.Event(), threading.Event(), ModelStrategy.decide

    def slow(self: ModelStrategy) -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        decide(self)

    try:
        with served.wire() as wire, served.wire() as other:
            wire.hello(settings={"strategy": "auto", "samples": 1, "baseline": 1})
            other.hello("quick")
            monkeypatch.setattr(ModelStrategy, "decide", slow)
            while not has_begun.is_set():
                wire.run(1)
            served.session("s")._longest_s = 100 * PATIENCE_S
            best = wire.ask(op="best")["config"]
            wire.send(b'{"op":"fetch"}\n{"op":"best"}\n')
            assert other.run(20)["ok"]
            assert not select.select([wire._socket], [], [], 0.1)[0]
            may_end.set()
            assert json.loads(wire.line())["config"] != best
            assert json.loads(wire.line())["samples"] >= 1
    finally:
        may_end.set()


def test_a_decision_that_fails_is_logged_and_the_session_goes_on(
    served: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: ModelStrategy) -> None:
        self._due = None
        raise ZeroDivisionError

    with served.wire() as wire:
        wire.hello(settings={"strategy": "auto", "samples": 1})
        with monkeypatch.context() as patched:
            patched.setattr(ModelStrategy, "decide", fail)
            until(lambda: wire.run(1) and "a strategy failed" in caplog.text)
        until(lambda: wire.run(1)["phase"] == "converged")


def test_a_session_that_takes_long_to_restore_holds_up_no_other(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, samples = threading.Event(), SqlOnlineSessions.samples

    def slow(self: SqlOnlineSessions, session_id: int) -> object:
        assert session_id > 1 or may_end.wait(PATIENCE_S)
        return samples(self, session_id)

    monkeypatch.setattr(SqlOnlineSessions, "samples", slow)
    try:
        with served.wire() as one, served.wire() as two, served.wire() as other:
            for wire in (one, two):
                wire.send(hello_line(Hello("slow", "c", space=SPACE.to_json())))
            until(lambda: online_sessions_in(served.store).find("local", "slow"))
            assert other.hello("quick")["ok"]
            assert other.run(5)["ok"]
            record = online_sessions_in(served.store).find("local", "quick")
            assert record is not None
            until(lambda: len(online_sessions_in(served.store).samples(record.id)) == 5)
            may_end.set()
            assert {json.loads(wire.line())["client"] for wire in (one, two)} == {"c", "c-2"}
    finally:
        may_end.set()
