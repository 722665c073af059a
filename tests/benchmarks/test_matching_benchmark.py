"""What the benchmark of matching counts."""

import statistics

from benchmarks.matching import PROVEN, matched, played

from testbeds.job_scenarios import scenario


def test_tuning_that_found_nothing_does_not_change_jobs() -> None:
    site = scenario(seed=11)
    every, default, proven = (played(site, records, seed=1) for records in ("every", "default", "proven"))
    assert [one.score for one in every] == [one.score for one in default]
    changed = [(one, other) for one, other in zip(every, default, strict=True) if one.gain != other.gain]
    assert changed
    assert all(other.gain == other.measured == 0.0 for _, other in changed)
    assert len(proven) == len(every) == len(site.jobs)


def test_no_match_gains_more_than_the_best_configuration() -> None:
    jobs = matched([12], "every", {"untuned": 0.5})
    assert all(one.gain <= one.possible + 1e-12 for one in jobs)
    assert {one.has_record for one in jobs} == {True, False}
    assert not any(one.same_application for one in jobs if not one.has_record)
    assert statistics.median(one.possible for one in jobs) > PROVEN
