from datetime import UTC, datetime, timedelta

import pytest

from luthier.submission.benefit import effect_of
from luthier.submission.job import NewJob
from luthier.submission.store.submitted import Decision, EndedJob

BEGAN = datetime(2026, 3, 4, tzinfo=UTC)


def jobs(
    decision: Decision, times: list[float | None], *, state: str = "COMPLETED", command: str = "a", day: int = 0
) -> list[EndedJob]:
    return [
        EndedJob(
            number, NewJob("u", "n", "p", command, BEGAN + timedelta(days=day, hours=number), 1), decision, state, took
        )
        for number, took in enumerate(times)
    ]


def test_slower_jobs_are_noticed() -> None:
    found = effect_of([*jobs("default", [10.0, 10.1, 9.9, 10.05, 9.95]), *jobs("set", [12.0, 12.2, 11.9, 12.1, 12.0])])
    assert found.harm is not None
    assert "1.2x slower" in found.harm
    assert "5 pairs" in found.harm


@pytest.mark.parametrize(
    "times",
    [
        [8.0, 8.1, 8.2, 7.9, 8.0],  # faster
        [10.0, 9.9, 10.1, 10.0, 10.1],  # as fast
        [30.0, 9.0, 9.0, 9.0, 9.0],  # one disturbed job
    ],
)
def test_no_harm_is_claimed_without_proof(times: list[float | None]) -> None:
    assert effect_of([*jobs("default", [10.0, 10.1, 9.9, 10.05, 9.95]), *jobs("set", times)]).harm is None


def test_two_pairs_prove_nothing() -> None:
    assert effect_of([*jobs("default", [1.0, 1.0]), *jobs("set", [9.0, 9.0])]).harm is None


def test_only_equal_jobs_are_compared() -> None:
    slow = jobs("set", [20.0] * 6, command="larger input")
    assert effect_of([*jobs("default", [10.0] * 6), *slow]).comparison is None


def test_long_and_short_jobs_weigh_the_same() -> None:
    short = [*jobs("default", [1.0, 1.0, 1.0, 1.0]), *jobs("set", [0.5, 0.5, 0.5, 0.5])]
    long = [*jobs("default", [900.0], command="b"), *jobs("set", [890.0], command="b")]
    found = effect_of([*short, *long]).comparison
    assert found is not None
    assert found.speedup == pytest.approx(2.0)


def test_earlier_jobs_show_harm_but_no_gain() -> None:
    before = jobs("none", [10.0, 10.1, 9.9, 10.05, 9.95], day=-30)
    slower = [*before, *jobs("set", [12.0, 12.2, 11.9, 12.1, 12.0])]
    assert effect_of(slower).harm is not None
    assert effect_of(slower, with_earlier=False).comparison is None


def test_more_failures_are_noticed() -> None:
    failing = jobs("set", [1.0] * 6, state="FAILED")
    found = effect_of([*jobs("default", [10.0] * 12), *failing])
    assert found.harm == "6 of 6 jobs failed, with the default 0 of 12"
    assert effect_of([*jobs("default", [1.0] * 12, state="FAILED"), *failing]).harm is None
    assert effect_of(jobs("set", [1.0] * 6, state="CANCELLED")).harm is None
    assert effect_of(failing).harm is None  # nothing to compare with


def test_each_default_job_goes_with_the_nearest_one_in_time() -> None:
    early, late = jobs("set", [5.0, 5.0]), jobs("set", [1.0], day=100)
    found = effect_of([*early, *jobs("default", [10.0], day=99), *late]).comparison
    assert found is not None
    assert found.speedup == pytest.approx(10.0)
