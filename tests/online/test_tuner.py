"""The tuner of a Python loop."""

import threading

import pytest

import luthier as lt

SPACE = lt.Space(lt.Integer("x", 0, 40, default=5), lt.Choice("kind", ["slow", "fast"]))


def cost(config: lt.Config) -> float:
    return 1.0 + abs(float(config["x"]) - 25) / 10 + (config["kind"] == "slow")


def test_a_loop_is_tuned() -> None:
    tuner = lt.OnlineTuner(SPACE, strategy="pro", samples=1)
    for _ in range(100):
        tuner.report(cost(tuner.fetch()))
    assert tuner.converged
    assert tuner.best.best == {"x": 25, "kind": "fast"}
    assert tuner.fetch() == tuner.best.best


def test_a_step_measures_its_block_and_an_exception_fails_it() -> None:
    tuner = lt.OnlineTuner(SPACE, strategy="pro", baseline=0)
    with tuner.step() as config:
        assert SPACE.contains(config)
    with pytest.raises(ValueError, match="broken"), tuner.step():
        raise ValueError("broken")
    client = tuner.view().clients[0]
    assert client.reports == 2
    assert client.last is None


def test_threads_can_share_a_tuner() -> None:
    tuner = lt.OnlineTuner(SPACE, strategy="pro", samples=1)

    def loop(name: str) -> None:
        for _ in range(200):
            tuner.report(cost(tuner.fetch(name)), name)
        tuner.leave(name)

    threads = [threading.Thread(target=loop, args=(f"thread {i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert tuner.best.best == {"x": 25, "kind": "fast"}
    assert tuner.view().clients == ()


def test_a_stopped_tuner_hands_out_the_best() -> None:
    tuner = lt.OnlineTuner(SPACE, strategy="pro", samples=1)
    for _ in range(10):
        tuner.report(cost(tuner.fetch()))
    best = tuner.best.best
    tuner.stop()
    assert tuner.phase == "stopped"
    assert tuner.fetch() == best
    tuner.report(1.0, config={"x": 0, "kind": "slow"})
    assert tuner.best.best == best
