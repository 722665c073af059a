"""What is said about a result when runs of the default gave no number."""

from collections.abc import Sequence

import pytest

from luthier.result.result import Result, conclude
from luthier.result.verdict import ratio_text
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
    assert result.verdict == "the default fails (exit code 3); n=1 works instead"
    assert result.recommended == OTHER
    assert not result.improved


def verified(default: Sequence[float], other: Sequence[float]) -> Result:
    measured: list[tuple[Purpose, Config, Outcome]] = [
        ("default", DEFAULT, Completed(default[0])),
        ("search", OTHER, Completed(other[0])),
    ]
    for before, after in zip(default, other, strict=True):
        measured += [("verify", DEFAULT, Completed(before)), ("verify", OTHER, Completed(after))]
    return concluded(measured)


def test_headline_table_and_trials_show_the_same_numbers_also_with_an_outlier() -> None:
    result = verified([7.97, 8.0, 41.0, 7.9, 7.95], [2.4, 2.41, 2.39, 2.42, 2.38])
    assert result.default is not None
    assert result.default.estimate is not None
    assert result.best.estimate is not None
    ratio = result.default.estimate.value / result.best.estimate.value
    assert result.speedup == pytest.approx(ratio) == pytest.approx(7.97 / 2.4)
    assert result.shown_trials[0].estimate == result.default.estimate
    assert result.shown_trials[1].estimate == result.best.estimate
    assert result.method == (
        "computed as: ratio of the two medians, of 5 runs each, made in turns after the search; "
        "the interval is from the ratios of the pairs"
    )


def test_an_unproven_ratio_is_not_a_headline() -> None:
    result = verified([3.0, 1.0, 2.0], [1.0, 2.0, 1.5])
    assert not result.improved
    assert result.verdict.startswith("no improvement proven: the best configuration has ")
    assert "the speed of the default (95 % confidence, 3 pairs)" in result.verdict
    assert "faster" not in result.verdict


def test_a_configuration_that_is_proven_slower_is_not_the_best() -> None:
    result = verified([1.0, 1.01, 1.02], [1.3, 1.31, 1.29])
    assert result.best.config == DEFAULT
    assert result.challenger is not None
    assert result.challenger.config == OTHER
    assert result.verdict.startswith(
        "no improvement found: the default is 1.29x faster than n=1, the best of the others ("
    )


def test_a_small_difference_is_written_with_the_digits_it_needs() -> None:
    result = verified([1.004, 1.0041, 1.0039], [1.0, 1.0, 1.0])
    assert result.verdict.startswith("1.004x faster than the default (1.00")


def test_a_default_of_zero_gives_a_difference_in_the_unit_of_the_measure() -> None:
    result = verified([0.0, 0.0, 0.0], [-4.0, -4.01, -3.99])
    assert result.verdict.startswith("better by 4 s than the default (3.9"), result.verdict
    assert "%" not in result.verdict.replace("95 % confidence", "")


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "1x"), (1.4243, "1.42x"), (1.0043, "1.0043x"), (0.99, "0.99x"), (35.123, "35.1x"), (1.00000001, "1x")],
)
def test_ratios_as_text(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text
