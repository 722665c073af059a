"""Users of a small cluster who submit jobs, some of which were tuned (Robert's thesis, section 7.5).

Applications are variations of the fakeapp's patterns with a name. Users draw applications, submit jobs of them with
habits of their own, and have some of these jobs tuned: those make the records that later jobs are matched with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from luthier.space import Integer, Space
from luthier.submission.matching import NewJob
from luthier.trial import Config
from testbeds.fakeapp import GIB, KIB, MIB, Pattern
from testbeds.sro import DEFAULT, LUSTRE, Sro

Range: TypeAlias = tuple[int, int]
Timestamps: TypeAlias = Literal["application", "job"]

APPLICATIONS = 9218
"""The size of the published pool."""

DRAWN_FROM = 80
"""So many applications of the pool are in use at the site: 55 draws then give the published 41 different ones."""

NODES = (1, 2, 3, 4)
"""The node counts that users choose from; the published cluster had four nodes for applications."""

GRID = Space(
    Integer("cluster_threshold", 2, 62, step=20, default=2),
    Integer("binsize", MIB // 4, MIB, step=3 * MIB // 4, default=MIB),
    Integer("prefetch_size", MIB, 10 * MIB, step=3 * MIB, default=10 * MIB),
    Integer("sequence_length", 50, 750, step=350, default=50),
)
"""What is tried when a job is tuned: 96 points of the published grid (table 4.5), all of them."""

_READS = 1500  # reads of a run, about; a simulated run then takes a millisecond
_NOISE = 0.01  # deviation of repeated runs
_FIRST_DAY = datetime(2021, 1, 4, tzinfo=UTC)
_SECONDS = 180 * 86_400
_SYLLABLES = tuple(first + vowel for first in "bcdfghklmnprstvz" for vowel in "aeiou")
_ADJECTIVES = (
    *("angry", "brave", "calm", "clever", "cold", "dark", "dizzy", "eager", "fair", "fast", "funny", "gentle", "grand"),
    *("happy", "heavy", "icy", "jolly", "kind", "lazy", "loud", "mad", "mild", "nice", "odd", "old", "proud", "quick"),
    *("quiet", "red", "sad", "shy", "slow", "small", "soft", "tall", "tiny", "warm", "wild", "wise", "young"),
)


@dataclass(frozen=True, slots=True)
class Application:
    """A program with a way of reading."""

    name: str
    pattern: Pattern
    seed: int


@dataclass(frozen=True, slots=True)
class User:
    """How a user behaves (table 7.4): how many applications, and for each how many jobs and how many tuned ones."""

    applications: int
    jobs: Range
    tuned: Range


USERS = (User(10, (5, 10), (1, 2)), User(20, (1, 5), (1, 3)), User(25, (5, 15), (2, 4)))


@dataclass(frozen=True, slots=True)
class Submission:
    """A job, the user who submits it (1 is the first), and the application that it runs."""

    user: int
    application: Application
    job: NewJob


@dataclass(frozen=True, slots=True)
class Scenario:
    """The jobs that were tuned, and the jobs that are matched with them."""

    tuned: tuple[Submission, ...]
    jobs: tuple[Submission, ...]


def applications(count: int = APPLICATIONS, *, seed: int) -> tuple[Application, ...]:
    """Applications with different names and patterns."""
    rng = np.random.default_rng(seed)
    names = dict[str, None]()
    while len(names) < count:
        names["".join(rng.choice(_SYLLABLES, int(rng.integers(2, 5))))] = None
    return tuple(Application(name, _pattern(rng), int(rng.integers(2**31))) for name in names)


def scenario(
    *,
    seed: int,
    users: Sequence[User] = USERS,
    drawn_from: int = DRAWN_FROM,
    timestamps: Timestamps = "application",
    untuned: float = 0.0,
) -> Scenario:
    """Draw applications, tuned jobs and jobs of all users; the jobs come in random order.

    `timestamps` says what gets its own folder in the command line: each application of a user, or each job. `untuned`
    is the share of the site's applications of which no job is tuned.
    """
    rng = np.random.default_rng(seed)
    pool = _pool()
    site = rng.choice(len(pool), drawn_from, replace=False)
    never_tuned = {pool[drawn].name for drawn in site[: round(untuned * drawn_from)]}
    tuned, jobs = list[Submission](), list[Submission]()
    for number, user in enumerate(users, 1):
        for drawn in rng.choice(site, user.applications, replace=False):
            application = pool[drawn]
            folder = _timestamp(rng)
            for kept, times in ((tuned, user.tuned), (jobs, user.jobs)):
                count = int(rng.integers(*times, endpoint=True))
                for _ in range(0 if kept is tuned and application.name in never_tuned else count):
                    own = folder if timestamps == "application" else _timestamp(rng)
                    kept.append(Submission(number, application, _job(rng, number, application, own)))
    order = rng.permutation(len(jobs))
    return Scenario(tuple(tuned), tuple(jobs[place] for place in order))


def site_jobs(*, seed: int, users: int, applications: int) -> Iterator[NewJob]:
    """Jobs of a site without end, to fill stores of any size."""
    rng = np.random.default_rng(seed)
    pool = _pool()
    while True:
        user, application = int(rng.integers(users)), pool[int(rng.integers(applications)) % len(pool)]
        yield _job(rng, user, application, _timestamp(rng), nodes=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64))


def seconds(application: Application, nodes: int, config: Config) -> float:
    """The time of a run without noise; the nodes divide the leads and share the storage."""
    return float(_system(application, nodes)([config])[0])


@cache
def best_config(application: Application, nodes: int) -> Config:
    """What tuning a job finds: the best of the grid, the default included."""
    configs = [DEFAULT, *(GRID.at(number) for number in range(GRID.size or 0))]
    times = _system(application, nodes)(configs)
    return configs[int(np.argmin(times))]


def noisy(time_s: float, rng: np.random.Generator) -> float:
    """The measured time of a run."""
    return time_s * float(rng.lognormal(0.0, _NOISE))


@cache
def _pool() -> tuple[Application, ...]:
    return applications(seed=2021)


@cache
def _system(application: Application, nodes: int) -> Sro:
    pattern, storage = application.pattern, LUSTRE
    own = replace(pattern, leads=max(1, pattern.leads // nodes))
    shared = replace(storage, latency_s=storage.latency_s * (1 + nodes) / 2, bytes_per_s=storage.bytes_per_s / nodes)
    return Sro(own.reads(seed=application.seed), shared)


def _job(
    rng: np.random.Generator, user: int, application: Application, folder: int, nodes: Sequence[int] = NODES
) -> NewJob:
    """A job with the habits of section 7.5.3: an adjective before the name, the number of nodes behind it."""
    count = int(rng.choice(np.asarray(nodes)))
    name = application.name
    if rng.random() < 2 / 3:
        name = f"{rng.choice(_ADJECTIVES)}_{name}"
    if rng.random() < 1 / 3:
        name = f"{name}_{count}"
    at = _FIRST_DAY + timedelta(seconds=int(rng.integers(_SECONDS)))
    command = f"sbatch /home/user{user}/{application.name}_{folder}/sbatch"
    return NewJob(f"user{user}", name, "sbatch", command, at, count)


def _timestamp(rng: np.random.Generator) -> int:
    return int(_FIRST_DAY.timestamp()) + int(rng.integers(_SECONDS))


def _pattern(rng: np.random.Generator) -> Pattern:
    """A variation of one of the four patterns of section 2.2.3, cut to about the same number of reads."""

    def between(low: float, high: float) -> int:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))

    compute_s = float(rng.choice([0.0, 2e-4, 5e-4, 1e-3, 3e-3]))
    kind = rng.choice(["a", "b", "c", "d"])
    if kind == "a":
        leads = between(20, 120)
        return _shaped(leads, _READS // leads, (0, 0), (1, 1), between(32 * KIB, 512 * KIB), compute_s)
    if kind == "b":
        leads, width = between(2, 8), between(10 * MIB, 100 * MIB)
        times = between(100, 400)
        rounds = max(1, _READS // leads // times)
        return _shaped(leads, rounds, (width, width), (times, times), between(MIB, 20 * MIB), compute_s)
    if kind == "c":
        leads, width = between(50, 300), between(MIB // 4, 4 * MIB)
        return _shaped(leads, max(1, _READS // leads), (width, width), (1, 1), 0, compute_s)
    leads, width = between(8, 30), between(50 * MIB, 500 * MIB)
    times = max(1, 2 * _READS // leads)
    return _shaped(leads, 1, (50 * KIB, width), (max(1, times // 5), times), 0, compute_s)


def _shaped(leads: int, rounds: int, scatter: Range, repeat: Range, advance: int, compute_s: float) -> Pattern:
    return Pattern(leads, rounds, scatter, repeat, advance_bytes=advance, compute_s=compute_s, file_bytes=200 * GIB)
