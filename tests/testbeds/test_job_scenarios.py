"""The scenario of Robert's thesis, section 7.5."""

from itertools import islice

import pytest

from luthier.submission.matching import Index, fields_of
from testbeds.job_scenarios import APPLICATIONS, NODES, USERS, applications, best_config, scenario, seconds, site_jobs
from testbeds.sro import DEFAULT


def test_the_pool_has_the_published_size_and_different_names() -> None:
    pool = applications(seed=1)
    assert len({application.name for application in pool}) == len(pool) == APPLICATIONS
    assert len({application.pattern for application in pool}) > 9000
    assert applications(20, seed=1) == applications(20, seed=1) != applications(20, seed=2)


def test_users_behave_as_in_table_7_4() -> None:
    site = scenario(seed=3)
    for number, user in enumerate(USERS, 1):
        names = {one.application.name for one in site.jobs if one.user == number}
        assert len(names) == user.applications
        for kept, (low, high) in ((site.jobs, user.jobs), (site.tuned, user.tuned)):
            counts = [sum(one.user == number and one.application.name == name for one in kept) for name in names]
            assert min(counts) >= low
            assert max(counts) <= high


def test_names_and_commands_follow_the_published_habits() -> None:
    jobs = [one for seed in range(3) for one in scenario(seed=seed).jobs]
    with_adjective = sum(not one.job.name.startswith(one.application.name) for one in jobs) / len(jobs)
    with_nodes = sum(one.job.name.endswith(f"_{one.job.nodes}") for one in jobs) / len(jobs)
    assert with_adjective == pytest.approx(2 / 3, abs=0.06)
    assert with_nodes == pytest.approx(1 / 3, abs=0.06)
    assert {one.job.nodes for one in jobs} == set(NODES)
    assert {one.job.program for one in jobs} == {"sbatch"}
    path = fields_of(jobs[0].job).path
    assert path.startswith(f"/home/user{jobs[0].user}/{jobs[0].application.name}_")
    assert path.endswith("/sbatch")


def test_the_same_seed_draws_the_same_site() -> None:
    assert scenario(seed=5) == scenario(seed=5)
    assert scenario(seed=5) != scenario(seed=6)
    assert list(islice(site_jobs(seed=1, users=3, applications=9), 5)) == list(
        islice(site_jobs(seed=1, users=3, applications=9), 5)
    )


def test_some_applications_are_never_tuned() -> None:
    site = scenario(seed=3, untuned=0.5)
    tuned = {one.application.name for one in site.tuned}
    assert 0.3 < len(tuned) / len({one.application.name for one in site.jobs}) < 0.7


def test_matching_finds_the_application_and_saves_time() -> None:
    site = scenario(seed=7)
    index = Index([(number, one.job) for number, one in enumerate(site.tuned)])
    right, matched, before, after = 0, 0, 0.0, 0.0
    for one in site.jobs[:60]:
        for match in index.match(one.job):
            record = site.tuned[match.record]
            matched += 1
            right += record.application.name == one.application.name
            before += seconds(one.application, one.job.nodes, DEFAULT)
            after += seconds(one.application, one.job.nodes, best_config(record.application, record.job.nodes))
    assert right >= 0.9 * matched > 30
    assert after < 0.85 * before
