"""Which variables reach which jobs: those of the user's own experiments, and those that an administrator approved."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from tests.server.server_fixtures import Running, running_server
from tests.spec.test_approved_variables import HOSTILE
from tests.submission.server.test_submissions_api import JOB, Answer, submit
from tests.submission.submitting import EXPERIMENT, approve_all, record_of, with_tuned_job

from luthier.spec.component import Component
from luthier.spec.environment_rules import problem_of_variable
from luthier.spec.library import Library
from luthier.store import open_server_store
from luthier.store.server_store import Role, User
from luthier.submission.commands import SubmissionServeOptions
from luthier.submission.server import job_index
from luthier.submission.store import job_records_in, submissions_in

SET = {"KNOB_LEVEL": "42", "KNOB_MODE": "fast"}

OWN = {"submission": SubmissionServeOptions(accounts_are_logins=True)}


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_index, "LOOK_EVERY_S", 0.0)


def account(server: Running, name: str, role: Role) -> str:
    """Add an account without a password, and give a token of it."""
    server.store.accounts.put_user(User(name, role, time.time()))
    return server.context.authenticator.issue_token(name, "test", None)[0]


@pytest.fixture
def logins(tmp_path: Path) -> Iterator[Running]:
    """A server whose accounts are logins of the cluster, with a tuned job of ada that nobody approved."""
    with running_server(f"sqlite:///{tmp_path / 'logins.db'}", options=OWN) as server:
        account(server, "root", "admin")
        token = account(server, "ada", "user")
        with_tuned_job(server.store, server.launch(EXPERIMENT, token=token), "ada", is_approved=False)
        yield server


def test_no_variable_of_the_attack_is_set(server: Running) -> None:
    """Recorded by one user, matched with another's job; nothing is approved."""
    for name, value in HOSTILE.items():
        record = record_of(server.store, {name: value}, "mallory")
        answer = submit(server)
        assert (answer["decision"], answer["environment"], answer["record_id"]) == ("unused", {}, record), name
        lines = server.ask("POST", "/api/v1/submissions?form=lines", JOB).body.decode().split("\n")
        assert [line.partition(" ")[0] for line in lines] == ["luthier", "decision", "say", "end", ""], name
        assert "luthier component approve openmpi" in lines[2] or str(problem_of_variable(name, value)) in lines[2]
        job_records_in(server.store).withdraw(record, "the next one")


def test_nor_beside_an_approved_one(server: Running) -> None:
    """The component has an approved variable; the attack adds one in its file, or in the registered component."""
    library = Library(server.store.components)
    threads = {"OMP_NUM_THREADS": {"env_var": True, "type": "int", "default": 1}}
    for name, value in HOSTILE.items():
        hostile = {name: {"env_var": True, "type": "str", "default": value}}
        for parameters, said in ((threads, "another version"), ({**hostile, **threads}, f"{name} of component")):
            library.add({"openmpi": Component.model_validate({"parameters": parameters})}, replace=True)
            library.approve("openmpi", {"OMP_NUM_THREADS": "1..8"}, library.review("openmpi").version, "root", 1.0)
            record = record_of(server.store, {name: value}, "mallory")
            answer = submit(server)
            assert (answer["decision"], answer["environment"], answer["record_id"]) == ("unused", {}, record), name
            assert (problem_of_variable(name, value) or said) in str(answer["reason"])
            job_records_in(server.store).withdraw(record, "the next one")


def test_approved_variables_are_set(server: Running) -> None:
    record_of(server.store, {}, "mallory")
    assert submit(server)["environment"] == {}
    approve_all(server.store, 1)
    assert submit(server)["environment"] == {"OMP_NUM_THREADS": "4"}


def test_only_the_approved_values(server: Running) -> None:
    with_tuned_job(server.store, server.launch(EXPERIMENT), "ada")
    library = Library(server.store.components)
    version = library.review("knob").version
    for allowed, decision in (("1..41", "unused"), ("41..42", "set"), ("40 41", "unused"), ("1 42", "set")):
        library.approve("knob", {"KNOB_LEVEL": allowed}, version, "root", 1.0)
        answer = submit(server)
        assert answer["decision"] == decision, allowed
        assert answer["environment"] == (SET if decision == "set" else {})
        if decision == "unused":
            assert f"KNOB_LEVEL=42 is not among the values approved for component knob: {allowed}" in str(
                answer["reason"]
            )


def test_a_record_that_was_replaced_is_looked_at_again(server: Running) -> None:
    number = server.launch(EXPERIMENT)
    record = with_tuned_job(server.store, number, "ada")
    assert submit(server)["environment"] == SET
    found = job_records_in(server.store).get(record)
    job_records_in(server.store).put(
        number, found.job, replace(found.tuned, config={**found.tuned.config, "KNOB_LEVEL": 7}), 2.0
    )
    assert cast("Answer", submit(server)["environment"])["KNOB_LEVEL"] == "7"


def test_withdrawn_or_changed_it_is_not_set_any_more(server: Running) -> None:
    with_tuned_job(server.store, server.launch(EXPERIMENT), "ada")
    library, before = Library(server.store.components), Library(server.store.components).get("knob")
    assert submit(server)["environment"] == SET
    library.withdraw("knob", ["KNOB_MODE"])
    assert "KNOB_MODE of component knob is not approved" in str(submit(server)["reason"])
    approve_all(server.store, 1)
    assert submit(server)["environment"] == SET
    library.add({"knob": before.model_copy(update={"description": "changed"})}, replace=True)
    assert submit(server)["environment"] == {}
    library.add({"knob": before}, replace=True)
    assert "no variable of component knob is approved" in str(submit(server)["reason"])


def test_the_own_user_of_a_job_needs_no_approval(logins: Running) -> None:
    submitter = account(logins, "slurm", "submitter")
    assert submit(logins, submitter)["environment"] == SET
    assert submit(logins, submitter, user="bob")["environment"] == {}
    approve_all(logins.store, 1)
    assert submit(logins, submitter, user="bob")["environment"] == SET


def test_by_default_accounts_are_no_logins(tmp_path: Path, logins: Running) -> None:
    with running_server(logins.store_url) as other:
        submitter = account(other, "slurm", "submitter")
        assert submit(other, submitter)["environment"] == {}


def test_own_variables_that_are_refused_in_any_case_stay_so(logins: Running) -> None:
    record_of(logins.store, {"LD_PRELOAD": "evil.so"}, "carol")
    submitter = account(logins, "slurm", "submitter")
    answer = submit(logins, submitter, user="carol")
    assert answer["environment"] == {}
    assert "LD_PRELOAD can change" in str(answer["reason"])


def test_a_removed_account_is_nobody(logins: Running) -> None:
    submitter = account(logins, "slurm", "submitter")
    assert submit(logins, submitter)["environment"] == SET
    logins.store.accounts.remove_user("ada")
    account(logins, "ada", "user")
    for user in ("ada", "ada/removed", "ada (removed)"):
        assert submit(logins, submitter, user=user)["environment"] == {}, user


@pytest.mark.parametrize("author", ["", "local"])
def test_experiments_without_an_account_are_somebody_elses(logins: Running, author: str) -> None:
    store = open_server_store(logins.store_url)
    record_of(store, {"KNOB": "1"}, author)
    submitter = account(logins, "slurm", "submitter")
    assert submit(logins, submitter, user="local")["environment"] == {}


def test_each_asker_gets_the_answer_for_the_user_that_they_named(logins: Running) -> None:
    """Whoever names another user gets that user's variables for a job of their own, and nobody else does."""
    submitter = account(logins, "slurm", "submitter")
    wrong: list[Answer] = []

    def ask(user: str, expected: dict[str, str]) -> None:
        answers = [submit(logins, submitter, user=user) for _ in range(20)]
        wrong.extend(answer for answer in answers if answer["environment"] != expected)

    threads = [threading.Thread(target=ask, args=each) for each in (("ada", SET), ("bob", {}), ("ada", SET))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    named = {one.job.user: one.author for one in submissions_in(logins.store).all(limit=100)}
    assert named == {"ada": "ada", "bob": "bob"}
