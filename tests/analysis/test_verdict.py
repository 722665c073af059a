"""What is said about a result when runs of the default gave no number."""

from collections.abc import Sequence

from luthier.analysis.result import Result, conclude
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Purpose, Run

EXPERIMENT = Experiment(space=Space(Integer("n", 1, 9, default=9)), budget=30)
DEFAULT, OTHER = Config({"n": 9}), Config({"n": 1})


def concluded(runs: Sequence[tuple[Purpose, Config, Outcome]]) -> Result:
    stored = [
        Run(
            number=number,
            trial=0 if config == DEFAULT else 1,
            purpose=purpose,
            config=config,
            submitted_at=float(number),
            submit_order=2 * number,
            finish_order=2 * number + 1,
            outcome=outcome,
        )
        for number, (purpose, config, outcome) in enumerate(runs)
    ]
    return conclude(EXPERIMENT, stored)


def test_one_lost_run_of_the_default_does_not_spoil_the_verdict() -> None:
    measured: list[tuple[Purpose, Config, Outcome]] = [
        ("default", DEFAULT, Lost("node failed")),
        ("default", DEFAULT, Completed(2.0)),
        ("search", OTHER, Completed(1.0)),
    ]
    for pair in range(4):
        measured += [("verify", DEFAULT, Completed(2.0 + 0.01 * pair)), ("verify", OTHER, Completed(1.0 + 0.01 * pair))]
    result = concluded(measured)
    assert result.improved
    assert "faster than the default" in result.verdict
    assert result.recommended == OTHER


def test_a_default_that_fails_is_named_and_not_recommended() -> None:
    result = concluded([
        ("default", DEFAULT, Failed("exit code 3")),
        ("search", OTHER, Completed(1.0)),
        ("default", DEFAULT, Failed("exit code 3")),
    ])  # fmt: skip
    assert result.verdict == "the default gave no number (exit code 3); the best configuration works instead"
    assert result.recommended == OTHER
    assert not result.improved
