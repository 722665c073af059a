"""Matching of jobs with those that were tuned, beside the figures of Robert's thesis (tables 7.5 to 7.7, figure 7.4).

    python -m benchmarks.matching [--seeds 20] [--largest 200000]

About six minutes. A site is drawn by `testbeds.job_scenarios`; all of its tuned jobs are records before its jobs are
submitted. Which seeds were looked at before: `docs/research/2026-11-18-matching.md`.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from luthier.submission.matching import Corpus, Index, NewJob, Weights, learn_weights, similarity
from luthier.submission.matching.fields import fields_of
from luthier.submission.matching.index import THRESHOLD
from testbeds.job_scenarios import Scenario, Submission, best_config, noisy, scenario, seconds
from testbeds.job_scenarios import site_jobs as jobs_of_site
from testbeds.sro import DEFAULT

FIRST_SEED, LEARNING_SEED = 100, 99
THRESHOLDS = (0.0, 0.6, 0.7, 0.72, 0.73, 0.74, 0.75, 0.76, 0.78, 0.8, 0.85, 0.9)
SIZES = (10, 50, 150, 500, 1000, 2000, 20_000, 200_000)
PUBLISHED_S = {2000: 20.0}
PROVEN = 0.02  # of the default's time: a smaller gain would not be proven

Records: TypeAlias = Literal["every", "proven", "default"]
"""What the tuned jobs without a proven gain are: records with the best configuration, none, or with the default."""


SITES: tuple[tuple[str, Records, Mapping[str, Any]], ...] = (
    ("as published", "every", {}),
    ("unproven ones keep the default", "default", {}),
    ("unproven ones make no record", "proven", {}),
    ("half of the applications never tuned", "default", {"untuned": 0.5}),
    ("a folder for each job", "default", {"timestamps": "job"}),
    ("all 9,218 applications in use", "default", {"drawn_from": 9218}),
)


@dataclass(frozen=True, slots=True)
class Matched:
    """A job and what became of it: its best match, and its times with the default and with the match's optimum.

    `was_tuned`: this user had this application tuned on as many nodes; `has_record`: somebody had it tuned.
    `gain` is the share of the default's time that is saved, without noise; `measured` is the same from one noisy run
    each; `possible` is the gain of the job's own optimum.
    """

    user: int
    score: float
    by_field: Mapping[str, float]
    same_application: bool
    same_nodes: bool
    was_tuned: bool
    has_record: bool
    gain: float
    measured: float
    possible: float


def played(site: Scenario, records: Records, weights: Weights | None = None, *, seed: int) -> list[Matched]:
    """Match all jobs of a site, whatever the score."""
    rng = np.random.default_rng(seed)
    tuned = [one for one in site.tuned if records != "proven" or gain_of(one, one) >= PROVEN]
    known = {(one.user, one.application.name, one.job.nodes) for one in tuned}
    applications = {one.application.name for one in tuned}
    index = Index([(number, one.job) for number, one in enumerate(tuned)], weights, threshold=0.0)
    found = []
    for one in site.jobs:
        (match,) = index.match(one.job)
        record = tuned[match.record]
        default_s = seconds(one.application, one.job.nodes, DEFAULT)
        keeps_default = records == "default" and gain_of(record, record) < PROVEN
        gain = 0.0 if keeps_default else gain_of(one, record)
        measured = 1 - noisy(default_s * (1 - gain), rng) / noisy(default_s, rng)
        found.append(
            Matched(
                one.user,
                match.score,
                match.by_field,
                record.application.name == one.application.name,
                record.job.nodes == one.job.nodes,
                (one.user, one.application.name, one.job.nodes) in known,
                one.application.name in applications,
                gain,
                measured if gain != 0 else 0.0,  # the default itself is not compared with itself
                gain_of(one, one),
            )
        )
    return found


def gain_of(job: Submission, record: Submission) -> float:
    """The share of the default's time that a job saves with the optimum of a record."""
    config = best_config(record.application, record.job.nodes)
    default_s = seconds(job.application, job.job.nodes, DEFAULT)
    return 1 - seconds(job.application, job.job.nodes, config) / default_s


def summary(name: str, jobs: Sequence[Matched], threshold: float) -> None:
    """Print the headline figures of a kind of site."""
    applied = [one for one in jobs if one.score >= threshold]
    gains = [one.measured if one.score >= threshold else 0.0 for one in jobs]
    slower = [one for one in applied if one.measured < 0]
    really = sum(one.gain < -0.01 for one in applied)
    print(
        f"| {name} | {len(jobs)} | {share(applied, jobs)} | {right(applied)} | "
        f"{share((one for one in applied if one.same_nodes), applied)} | {statistics.median(gains):.1%} | "
        f"{statistics.fmean(gains):.1%} | {statistics.median(one.possible for one in jobs):.1%} | "
        f"{share(slower, jobs)} | {really / len(jobs):.1%} | "
        f"{-statistics.median([one.measured for one in slower] or [0.0]):.1%} |"
    )


def right(jobs: Sequence[Matched]) -> str:
    """How many are matched with the right application, in percent."""
    return share((one for one in jobs if one.same_application), jobs)


def share(some: Iterable[object], of: Sequence[object]) -> str:
    """How many these are, in percent."""
    return f"{sum(1 for _ in some) / max(1, len(of)):.1%}"


def quality(seeds: Sequence[int]) -> None:
    """Tables 7.5 to 7.7, and the curve of the threshold."""
    print("| site | jobs | matched | right application | right nodes | median gain | mean gain | possible | slower | "
          "slower by 1 % without noise | median loss |")  # fmt: skip
    print("| --- |" + " --- |" * 10)
    print("| published | 366 | | 92 % | 56 % | 28.4 % | 26.1 % | | 1.9 % | | 3 % |")
    for name, records, options in SITES:
        jobs = matched(seeds, records, options)
        summary(f"{name}, all jobs", jobs, 0.0)
        summary(f"{name}, score {THRESHOLD} and above", jobs, THRESHOLD)
    table_7_5([scenario(seed=seed) for seed in seeds])
    published = matched(seeds, "every", {})
    table_7_6(published)
    table_7_7(published)
    print("\nThreshold, all applications tuned")
    curve(matched(seeds, "default", {}))
    print("\nThreshold, half of the applications never tuned")
    curve(matched(seeds, "default", {"untuned": 0.5}))


def matched(
    seeds: Sequence[int], records: Records, options: Mapping[str, Any], weights: Weights | None = None
) -> list[Matched]:
    """The jobs of one site for each seed."""
    return [one for seed in seeds for one in played(scenario(seed=seed, **options), records, weights, seed=seed)]


def learned(seeds: Sequence[int]) -> None:
    """Weights learned from the matches of one site, used on others."""
    print("\nLearned weights: right application, without a threshold\n")
    print("| site | equal weights | learned from 100 reviewed matches | user, name, program, command, time, nodes |")
    print("| --- | --- | --- | --- |")
    for name, records, options in SITES:
        reviewed = matched([LEARNING_SEED], records, options)[:100]
        weights = learn_weights((one.by_field, one.same_application) for one in reviewed)
        even, now = matched(seeds, records, options), matched(seeds, records, options, weights)
        shares = ", ".join(f"{weight:.2f}" for weight in astuple(weights))
        print(f"| {name} | {right(even)} | {right(now)} | {shares} |", flush=True)


def table_7_5(drawn: Sequence[Scenario]) -> None:
    """How much the users do: the means over all sites."""
    print("\nTable 7.5 (published / here, mean of all sites)\n\n| user | jobs | tuned |\n| --- | --- | --- |")
    for user, jobs, tuned in ((1, 73, 13), (2, 66, 40), (3, 227, 71)):
        own_jobs = statistics.fmean(sum(one.user == user for one in site.jobs) for site in drawn)
        own_tuned = statistics.fmean(sum(one.user == user for one in site.tuned) for site in drawn)
        print(f"| {user} | {jobs} / {own_jobs:.0f} | {tuned} / {own_tuned:.0f} |")
    applications = statistics.fmean(len({one.application.name for one in site.jobs}) for site in drawn)
    print(f"\nDifferent applications: 41 / {applications:.0f}")


def table_7_6(jobs: Sequence[Matched]) -> None:
    """Score and gain by what is matched."""
    published = {
        (False, False): (0.73, 25.61, 13),
        (False, True): (0.74, 24.73, 15),
        (True, False): (0.80, 25.93, 148),
        (True, True): (0.93, 29.27, 190),
    }
    print("\nTable 7.6 (published / here, medians)\n")
    print("| right application | right nodes | score | gain | share of jobs |\n| --- | --- | --- | --- | --- |")
    for (application, nodes), (score, gain, count) in published.items():
        some = [one for one in jobs if (one.same_application, one.same_nodes) == (application, nodes)]
        own = statistics.median(one.score for one in some), statistics.median(one.gain for one in some)
        print(
            f"| {application} | {nodes} | {score} / {own[0]:.2f} | {gain} % / {own[1]:.1%} | "
            f"{count / 366:.1%} / {len(some) / len(jobs):.1%} |"
        )


def table_7_7(jobs: Sequence[Matched]) -> None:
    """Score and gain by user."""
    print("\nTable 7.7 (published / here, means)\n\n| user | score | gain |\n| --- | --- | --- |")
    for user, score, gain in ((1, 0.78, 23.85), (2, 0.87, 27.40), (3, 0.88, 26.24)):
        some = [one for one in jobs if one.user == user]
        own = statistics.fmean(one.score for one in some), statistics.fmean(one.gain for one in some)
        print(f"| {user} | {score} / {own[0]:.2f} | {gain} % / {own[1]:.1%} |")
    new = [one for one in jobs if not one.was_tuned]
    print(
        f"\nJobs that were never tuned with this application and node count: {share(new, jobs)}, median gain "
        f"27.50 % / {statistics.median(one.gain for one in new):.1%}"
    )


def curve(jobs: Sequence[Matched]) -> None:
    """What a threshold gives and costs."""
    print("\n| threshold | matched | of those without a record | right application | slower by 1 % | median gain |")
    print("| --- | --- | --- | --- | --- | --- |")
    new = [one for one in jobs if not one.has_record]
    for threshold in THRESHOLDS:
        some = [one for one in jobs if one.score >= threshold]
        slower = sum(one.gain < -0.01 for one in some) / len(jobs)
        gain = statistics.median(one.gain if one.score >= threshold else 0.0 for one in jobs)
        wrongly = share((one for one in new if one.score >= threshold), new) if new else ""
        print(f"| {threshold} | {share(some, jobs)} | {wrongly} | {right(some)} | {slower:.1%} | {gain:.1%} |")


def speed(largest: int) -> None:
    """Figure 7.4: the time of one match by the number of records."""
    print("\nFigure 7.4 (milliseconds of CPU time on one core)\n")
    print(
        "| records | published | median | 95 % below | slowest | unlike all | plain scan | times faster | build (s) |"
    )
    print("| --- |" + " --- |" * 8)
    for size in filter(lambda size: size <= largest, SIZES):
        users, applications = max(3, size // 40), max(20, size // 20)
        jobs = list(itertools.islice(jobs_of_site(seed=1, users=users, applications=applications), size))
        new = list(itertools.islice(jobs_of_site(seed=2, users=users, applications=applications), 60))
        start = time.process_time()
        index = Index(enumerate(jobs))
        built_s = time.process_time() - start
        index.match(new[0])
        times = sorted(_cpu_ms(index, job) for job in new)
        strange = max(
            _cpu_ms(index, NewJob(f"n{n}", f"{n}new", f"prog{n}", f"/opt/x{n}/y", new[0].submitted_at, 3))
            for n in range(5)
        )
        scan_ms = _scan_ms(jobs[:1000], new[0]) * size / min(size, 1000)
        published = f"{1000 * PUBLISHED_S[size]:.0f}" if size in PUBLISHED_S else ""
        print(
            f"| {size} | {published} | {statistics.median(times):.2f} | {times[56]:.2f} | {times[-1]:.2f} | "
            f"{strange:.2f} | {scan_ms:.0f} | {scan_ms / statistics.median(times):.0f} | {built_s:.1f} |",
            flush=True,
        )


def _cpu_ms(index: Index, job: NewJob) -> float:
    start = time.process_time()
    index.match(job)
    return 1000 * (time.process_time() - start)


def _scan_ms(jobs: Sequence[NewJob], new: NewJob) -> float:
    """The time to compare a job with each record; fields and frequencies of words are known before."""
    corpus, fields, own = Corpus.of(jobs), [fields_of(job) for job in jobs], fields_of(new)
    start = time.process_time()
    max(similarity(own, other, corpus=corpus).total for other in fields)
    return 1000 * (time.process_time() - start)


def main() -> int:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    quality(range(FIRST_SEED, FIRST_SEED + options.seeds))
    learned(range(FIRST_SEED, FIRST_SEED + max(1, options.seeds // 4)))
    speed(options.largest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
