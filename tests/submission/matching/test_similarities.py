"""The similarities of Robert 2021, section 7.4.2, worked by hand from their definitions."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.submission.matching import Corpus, NewJob, Weights, similarity
from luthier.submission.matching.similarities import (
    absolute,
    circular,
    levenshtein,
    option_ratio,
    soft_tfidf,
    words_of_path,
)

AT = datetime(2021, 11, 12, 14, 30, 0, tzinfo=UTC)
JOB = NewJob("ann", "angry_ant", "sbatch", "sbatch /home/ann/ant_111/sbatch", AT, 2)


def test_levenshtein_is_a_share_of_the_longer_text() -> None:
    assert levenshtein("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert levenshtein("", "") == 1.0
    assert levenshtein("ant", "") == 0.0


def test_a_circle_has_no_end() -> None:
    assert circular(59, 0, 60) == pytest.approx(circular(0, 1, 60))
    assert circular(0, 30, 60) == pytest.approx(0.0)
    one, other = (complex(math.cos(2 * math.pi * h / 24), math.sin(2 * math.pi * h / 24)) for h in (3, 9))
    assert circular(3, 9, 24) == pytest.approx(1 - abs(one - other) / 2)


def test_absolute_distance_is_a_share_of_the_largest() -> None:
    assert absolute(2, 5, 4) == pytest.approx(0.25)
    assert absolute(1, 9, 4) == 0.0


def test_options_count_the_values_in_common() -> None:
    one = (("size", ("4", "8")), ("v", ("",)))
    other = (("size", ("4",)), ("x", ("1",)))
    assert option_ratio(one, other) == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert option_ratio((), ()) == 1.0


def test_words_of_paths_are_letters_or_digits() -> None:
    assert words_of_path("/home/ann/ant_123/ant.x") == {"home": 1, "ann": 1, "ant": 2, "123": 1, "x": 1}


def test_soft_tfidf_of_close_words() -> None:
    rarity = {"home": 1.0, "solver": 3.0, "solvers": 2.0}.__getitem__
    found = soft_tfidf({"home": 1, "solver": 1}, {"home": 1, "solvers": 1}, rarity)
    close = 1 - (1 - (1 + 6 / 7 + 1) / 3) * (1 - 4 * 0.1)  # Jaro-Winkler with a common prefix of 4 and more
    assert found == pytest.approx((1 * 1 + 3 * 2 * close) / (math.sqrt(1 + 9) * math.sqrt(1 + 4)))


def test_rare_words_of_a_path_weigh_more() -> None:
    jobs = [replace(JOB, command=f"/home/user/app{word}/run") for word in ("cat", *map(chr, range(97, 123)))]
    corpus = Corpus.of(jobs)
    assert (corpus.records, corpus.frequencies["home"], corpus.frequencies["appcat"]) == (27, 27, 1)
    assert corpus.rarity("appcat") > corpus.rarity("home") > 0

    def path(one: str, other: str) -> float:
        return similarity(replace(JOB, command=one), replace(JOB, command=other), corpus=corpus).by_field["path"]

    assert path("/home/user/appcat/run", "/scratch/appcat/run") > path("/home/user/appcat/run", "/home/user/zoo/run")


def test_numbers_are_not_close_to_other_numbers() -> None:
    assert soft_tfidf({"1634567890": 1}, {"1634567891": 1}, lambda _: 1.0) == 0.0


def test_the_score_of_two_jobs_by_hand() -> None:
    other = NewJob(
        "bob", "ant_4", "sbatch", "sbatch /home/ann/ant_111/sbatch --size=4", AT.replace(hour=23, second=30), 4
    )
    found = similarity(JOB, other, corpus=Corpus(most_nodes=4))
    assert found.by_field == pytest.approx(
        {
            "user": 0.0,
            "name": 1 - 6 / 8,  # angryant, ant4: at best five deletions and one substitution
            "program": 1.0,
            "path": 1.0,
            "options": 0.0,
            "second": 0.0,
            "minute": 1.0,
            "hour": 1 - math.sin(math.pi * 9 / 24),
            "day": 1.0,
            "weekday": 1.0,
            "night": 0.0,
            "nodes": 1 - 2 / 4,
        }
    )
    time = (0 + 1 + (1 - math.sin(math.pi * 9 / 24)) + 1 + 1 + 0) / 6
    assert found.total == pytest.approx((0 + 0.25 + 1 + (1 + 0) / 2 + time + 0.5) / 6)


def test_each_original_field_weighs_the_same() -> None:
    shares = Weights().shares()
    assert len(shares) == 12
    assert shares["user"] == shares["name"] == shares["program"] == shares["nodes"] == pytest.approx(1 / 6)
    assert shares["path"] == shares["options"] == pytest.approx(1 / 12)
    assert {shares[name] for name in ("second", "minute", "hour", "day", "weekday", "night")} == {shares["day"]}
    assert shares["day"] == pytest.approx(1 / 36)
    assert sum(shares.values()) == pytest.approx(1)


def test_weights_are_ratios() -> None:
    assert Weights(2, 2, 2, 2, 2, 2).shares() == pytest.approx(Weights().shares())
    only_name = Weights(0, 5, 0, 0, 0, 0)
    assert similarity(JOB, replace(JOB, name="other", user="x"), only_name).total == pytest.approx(
        levenshtein("angryant", "other")
    )


@pytest.mark.parametrize("weights", [(-1, 1, 1, 1, 1, 1), (float("nan"), 1, 1, 1, 1, 1), (0, 0, 0, 0, 0, 0)])
def test_bad_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="weight"):
        Weights(*weights)


def test_a_job_has_a_time_zone_and_nodes() -> None:
    with pytest.raises(InvalidInputError, match="time zone"):
        replace(JOB, submitted_at=datetime(2021, 1, 1))
    with pytest.raises(InvalidInputError, match="nodes"):
        replace(JOB, nodes=0)


texts = st.text(max_size=30)
jobs = st.builds(
    NewJob,
    user=st.sampled_from(["ann", "bob"]),
    name=texts,
    program=texts,
    command=st.one_of(texts, st.from_regex(r"(/[a-z]{1,8}){1,4}( --[a-c]=[0-9])?", fullmatch=True)),
    submitted_at=st.datetimes(timezones=st.just(UTC)),
    nodes=st.integers(1, 10**6),
)


@given(jobs, jobs)
def test_scores_are_between_0_and_1(one: NewJob, other: NewJob) -> None:
    found = similarity(one, other)
    assert 0 <= found.total <= 1
    assert all(0 <= value <= 1 for value in found.by_field.values())
    assert similarity(one, one).total == pytest.approx(1)
