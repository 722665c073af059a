from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from tests.store.samples import NASTY

from luthier.errors import NotFoundError
from luthier.store.server_store import ServerStore, User
from luthier.submission.job import NewJob
from luthier.submission.store import submissions_in
from luthier.submission.store.submitted import Decision, NewSubmission, Submission

AT = datetime(2026, 3, 4, 5, 6, 7, 500_000, timezone(timedelta(hours=5, minutes=30)))
JOB = NewJob("ada", "stencil", "stencil", "srun ./stencil -n 4", AT, 4)


def a_submission(
    author: str = "ada", decision: Decision = "set", record: int | None = 3, job: NewJob = JOB
) -> NewSubmission:
    matched = {"record_id": record, "experiment_id": 12, "component": "mpi", "score": 0.9, "by_field": {"user": 1.0}}
    return NewSubmission(author, job, decision, "because", **(matched if record else {}), environment={"A": "1"})  # type: ignore[arg-type]  # of different types


def test_what_was_added_is_found(server_store: ServerStore) -> None:
    odd = replace(JOB, user=NASTY, name=NASTY, program=NASTY, command=NASTY)
    new = [a_submission(), a_submission("bob", "none", None, odd)]
    first, second = submissions_in(server_store).add(new)
    found = [submissions_in(server_store).get(number) for number in (first, second)]
    assert found == [
        Submission(**{name: getattr(one, name) for name in NewSubmission.__slots__}, id=number)
        for one, number in zip(new, (first, second), strict=True)
    ]
    assert found[0].job.submitted_at.utcoffset() == timedelta(hours=5, minutes=30)


def test_numbers_come_in_the_order_of_the_jobs(server_store: ServerStore) -> None:
    jobs = [replace(JOB, name=str(number)) for number in range(300)]
    numbers = submissions_in(server_store).add([a_submission(job=job) for job in jobs])
    assert [submissions_in(server_store).get(number).job.name for number in numbers] == [job.name for job in jobs]
    assert submissions_in(server_store).add([]) == []


def test_lists_are_of_one_author_and_page_by_page(server_store: ServerStore) -> None:
    numbers = submissions_in(server_store).add([a_submission(author) for author in ("ada", "bob", "ada", "ada")])
    everybody = submissions_in(server_store).all(limit=3)
    assert [one.id for one in everybody] == numbers[:0:-1]
    assert [one.id for one in submissions_in(server_store).all(before=everybody[-1].id)] == numbers[:1]
    assert [one.id for one in submissions_in(server_store).all(author="bob")] == [numbers[1]]
    assert submissions_in(server_store).all(decision="none") == []


def test_the_first_end_counts(server_store: ServerStore) -> None:
    (number,) = submissions_in(server_store).add([a_submission()])
    assert submissions_in(server_store).note_end(number, "77", "COMPLETED", 5.0)
    assert not submissions_in(server_store).note_end(number, "78", "FAILED", 6.0)
    assert not submissions_in(server_store).note_end(number + 1, "79", "FAILED", 6.0)
    found = submissions_in(server_store).get(number)
    assert (found.job_id, found.state, found.elapsed_s) == ("77", "COMPLETED", 5.0)


def test_reviews_can_be_changed_and_removed(server_store: ServerStore) -> None:
    first, second = submissions_in(server_store).add([a_submission(), a_submission()])
    submissions_in(server_store).review(first, confirmed=True)
    submissions_in(server_store).review(second, confirmed=True)
    submissions_in(server_store).review(second, confirmed=False)
    assert submissions_in(server_store).reviews() == [({"user": 1.0}, False), ({"user": 1.0}, True)]
    submissions_in(server_store).review(first, confirmed=None)
    assert submissions_in(server_store).reviews() == [({"user": 1.0}, False)]


@pytest.mark.parametrize("number", [-1, 0, 99, 2**40])
def test_unknown_numbers(server_store: ServerStore, number: int) -> None:
    with pytest.raises(NotFoundError):
        submissions_in(server_store).get(number)
    with pytest.raises(NotFoundError):
        submissions_in(server_store).review(number, confirmed=True)


def test_ended_jobs_of_a_record_and_equal_ones_without_it(server_store: ServerStore) -> None:
    other = replace(JOB, command="srun ./stencil -n 8")
    new = [
        a_submission(decision="none", record=None),  # equal, earlier
        a_submission(decision="none", record=None, job=other),  # not equal
        a_submission(),
        a_submission(decision="default"),
        a_submission(decision="unused"),
        a_submission(record=4),
        a_submission(),  # has not ended
    ]
    numbers = submissions_in(server_store).add(new)
    for number in numbers[:-1]:
        submissions_in(server_store).note_end(number, str(number), "COMPLETED", float(number))
    assert [(one.id, one.decision) for one in submissions_in(server_store).ended(3)] == [
        (numbers[0], "none"),
        (numbers[2], "set"),
        (numbers[3], "default"),
    ]
    assert submissions_in(server_store).ended(9) == []


def test_usage_counts_what_is_known_and_adds_what_completed(server_store: ServerStore) -> None:
    numbers = submissions_in(server_store).add(
        [a_submission(), a_submission(), a_submission(), a_submission("bob"), a_submission(decision="default")]
    )
    for number, state in zip(numbers[:2], ("COMPLETED", "FAILED"), strict=True):
        submissions_in(server_store).note_end(number, "1", state, 10.0)
    (ada,) = submissions_in(server_store).usage(author="ada")
    assert (ada.jobs, ada.completed, ada.elapsed_s) == (2, 1, 10.0)
    assert {one.author for one in submissions_in(server_store).usage()} == {"ada", "bob"}


def test_programs_without_a_match_by_the_time_they_took(server_store: ServerStore) -> None:
    short, long = (replace(JOB, program=name) for name in ("short", "long"))
    once = replace(JOB, program="once")
    jobs = [short, short, short, long, long, once]
    numbers = submissions_in(server_store).add([a_submission(decision="none", record=None, job=job) for job in jobs])
    for number, elapsed in zip(numbers, (1.0, 1.0, 1.0, 50.0, 60.0, 1e6), strict=True):
        submissions_in(server_store).note_end(number, "1", "COMPLETED", elapsed)
    found = submissions_in(server_store).unmatched()
    assert [(one.program, one.jobs, one.elapsed_s) for one in found] == [("long", 2, 110.0), ("short", 3, 3.0)]
    assert submissions_in(server_store).unmatched(author="bob") == []
    assert submissions_in(server_store).unmatched(since=AT.timestamp() + 1) == []


def test_jobs_of_a_removed_user_do_not_go_to_a_new_one(server_store: ServerStore) -> None:
    server_store.accounts.put_user(User("ada", "admin", 1.0))
    submissions_in(server_store).add([a_submission()])
    server_store.accounts.remove_user("ada")
    assert submissions_in(server_store).all(author="ada") == []
    assert submissions_in(server_store).all()[0].author == "ada/removed"
