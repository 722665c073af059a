"""The index gives what comparing a job with every record gives."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.submission.matching import Corpus, Index, NewJob, Weights, similarity

AT = datetime(2021, 11, 12, 14, 30, 0, tzinfo=UTC)

names = st.sampled_from(["ant", "angry_ant", "ant_2", "bee", "bees_2", "solver", "solvers", "", "ÄNT"])
folders = st.sampled_from(
    ["home", "homes", "ann", "solver", "solvers", "ant_1634", "ant_1635", "martha", "marhta", "1"]
)
options = st.sampled_from(["", " --size=4", " --size=8 -v", " -n 3 in.dat", " in.dat"])
commands = st.builds(
    lambda parts, rest: "/" + "/".join(parts) + rest, st.lists(folders, min_size=1, max_size=4), options
)
jobs = st.builds(
    NewJob,
    user=st.sampled_from(["ann", "bob", "eve"]),
    name=st.one_of(names, st.text(max_size=5)),
    program=names,
    command=st.one_of(commands, st.text(max_size=8)),
    submitted_at=st.integers(0, 10**8).map(lambda seconds: AT + timedelta(seconds=seconds)),
    nodes=st.integers(1, 64),
)
weights = st.builds(Weights, *[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 5, nodes=st.just(0.25))


def scan(
    records: Mapping[int, NewJob],
    job: NewJob,
    weights: Weights,
    threshold: float,
    count: int,
    most_nodes: int | None = None,
) -> list[tuple[float, int]]:
    """The best records by comparing the job with each of them."""
    corpus = Corpus.of(records.values())
    if most_nodes is not None:
        corpus = Corpus(corpus.records, corpus.frequencies, most_nodes)
    scores = [(similarity(job, other, weights, corpus).total, number) for number, other in records.items()]
    return sorted((one for one in scores if one[0] >= threshold), reverse=True)[:count]


@settings(deadline=None, max_examples=150)
@given(st.lists(jobs, max_size=40), jobs, weights, st.sampled_from([0.0, 0.4, 0.6, 0.8]), st.sampled_from([1, 2, 7]))
def test_it_finds_what_a_scan_finds(
    records: Sequence[NewJob], job: NewJob, weights: Weights, threshold: float, count: int
) -> None:
    index = Index(enumerate(records), weights, threshold)
    found = [(one.score, one.record) for one in index.match(job, count)]
    assert found == scan(dict(enumerate(records)), job, weights, threshold, count)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(jobs, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), jobs)), max_size=25),
    jobs,
)
def test_it_follows_changes(first: Sequence[NewJob], changes: Sequence[tuple[int, NewJob | None]], job: NewJob) -> None:
    index, records = Index(enumerate(first), threshold=0.0, most_nodes=64), dict(enumerate(first))
    for number, changed in changes:
        if changed is None:
            index.remove(number)
            records.pop(number, None)
        else:
            index.add(number, changed)
            records[number] = changed
    assert len(index) == len(records)
    found = [(one.score, one.record) for one in index.match(job, 3)]
    assert found == scan(records, job, Weights(), 0.0, 3, most_nodes=64)


def many_jobs(count: int) -> list[NewJob]:
    """Jobs of some users and applications, whose paths all differ."""
    return [
        NewJob(
            f"user{number % 17}",
            f"{('angry', 'calm', 'odd')[number % 3]}_app{number % 101}",
            "sbatch",
            f"/home/user{number % 17}/app{number % 101}_{number * 7919 % 100_003}/sbatch --size={number % 5}",
            AT + timedelta(seconds=number * 7907 % 10**7),
            2 ** (number % 5),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("threshold", [0.0, 0.75])
def test_many_records_are_matched_like_in_a_scan(threshold: float) -> None:
    jobs = many_jobs(900)
    records, index = dict(enumerate(jobs[:800])), Index(enumerate(jobs[:800]), threshold=threshold)
    for job in jobs[800::25]:
        assert [(one.score, one.record) for one in index.match(job, 5)] == scan(records, job, Weights(), threshold, 5)


def test_it_is_much_faster_than_a_scan() -> None:
    jobs = many_jobs(2010)
    records, index = dict(enumerate(jobs[:2000])), Index(enumerate(jobs[:2000]))
    index.match(jobs[2000])  # imports
    start = time.process_time()
    for job in jobs[2000:]:
        index.match(job)
    middle = time.process_time()
    scan(records, jobs[2000], Weights(), 0.75, 1)
    assert (middle - start) / 10 < (time.process_time() - middle) / 10


def test_matches_say_why() -> None:
    index = Index([(7, many_jobs(1)[0])])
    (found,) = index.match(many_jobs(1)[0])
    assert found.record == 7
    assert found.score == pytest.approx(1)
    assert set(found.by_field) == set(Weights().shares())
    assert index.match(NewJob("x", "y", "z", "/w", AT, 1)) == []
    assert Index([]).match(many_jobs(1)[0]) == []


def test_of_equal_records_the_newest_is_first() -> None:
    job = many_jobs(1)[0]
    assert [one.record for one in Index([(2, job), (9, job), (4, job)]).match(job, 2)] == [9, 4]


def test_hostile_texts_take_limited_time() -> None:
    """Texts of 100 kB cost no more than those that are kept of them."""
    hostile = [
        "a" * 100_000,
        "/" * 100_000,
        "\0\x1b[31m" * 20_000,
        "💥é" * 50_000,
        "'\"\\`$(" * 20_000,
        "ab1/" * 25_000,
    ]
    start = time.process_time()
    jobs = [NewJob(text, text, text, text, AT, 1) for text in hostile]
    index = Index(enumerate(jobs))
    for number, job in enumerate(jobs):
        assert index.match(job)[0].score == pytest.approx(1), number
    took = time.process_time() - start
    start = time.process_time()
    short = [NewJob(text, text, text, text, AT, 1) for text in (text[:4096] for text in hostile)]
    Index(enumerate(short)).match(short[0])
    assert took < 60 * (time.process_time() - start)
