"""The CPU time that one client may use, and what happens to the others."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from tests.server.server_fixtures import Running

from luthier.server.login_limits import TooManyError
from luthier.submission.server import cpu_budget
from luthier.submission.server.cpu_budget import BUDGET_S, WINDOW_S, CpuBudget
from luthier.submission.server.state import submission_of

HOSTILE = {"user": "eve", "script": "#!/bin/sh\n" + "$((" * 80_000}
ORDINARY = {"user": "ada", "script": "#!/bin/sh\nsrun ./solver\n"}
PATH = "/api/v1/submissions"


def submit_from(server: Running, address: str, token: str, given: object) -> tuple[int, str, str | None]:
    """The status, the error and Retry-After, for a client with this address."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60, source_address=(address, 0))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", PATH, json.dumps(given), headers)
    answer = connection.getresponse()
    error = json.loads(answer.read()).get("error", "")
    connection.close()
    return answer.status, error, answer.headers["Retry-After"]


def test_a_client_that_used_its_budget_waits_and_nobody_else(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_budget, "BUDGET_S", 0.1)
    server.add_user("root", "admin")
    eve, ada = (server.add_user(name, "submitter") for name in ("eve", "ada"))
    now = [0.0]
    submission_of(server.context).budget._clock = lambda: now[0]
    answers = [submit_from(server, "127.0.0.1", eve, HOSTILE)]
    while answers[-1][0] == 201 and len(answers) < 2000:
        answers.append(submit_from(server, "127.0.0.1", eve, HOSTILE))
    status, error, after = answers[-1]
    assert (status, len(answers) > 2) == (429, True)
    assert error.startswith("this token and address used more than 0.1 s of CPU time within 10 s; try again in ")
    assert after is not None
    assert submit_from(server, "127.0.0.1", eve, ORDINARY)[0] == 429
    assert submit_from(server, "127.0.0.1", ada, ORDINARY)[0] == 201
    assert submit_from(server, "127.0.0.2", eve, ORDINARY)[0] == 201
    assert server.ask("GET", "/api/v1/health").status == 200
    now[0] += float(after)
    assert submit_from(server, "127.0.0.1", eve, ORDINARY)[0] == 201


def test_what_was_used_is_forgotten_evenly() -> None:
    now = [0.0]
    budget = CpuBudget(lambda: now[0])
    one, other = (1, "10.0.0.1"), (1, "10.0.0.2")
    for _ in range(10_000):
        budget.spend(one, 0.0009)  # ordinary work is free
    budget.spend(one, 2 * BUDGET_S + 0.001)
    budget.check(other)
    with pytest.raises(TooManyError, match=f"try again in {WINDOW_S:g} s"):
        budget.check(one)
    now[0] = 0.99 * WINDOW_S
    with pytest.raises(TooManyError, match="try again in 1 s"), budget.charged(one):
        pytest.fail("it is not checked")
    now[0] = 1.01 * WINDOW_S
    budget.check(one)
    for number in range(20_000):
        budget.spend((number, "10.0.0.3"), 1.0)
    assert len(budget._used) == 10_000


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b'{"user": "a", "script": "", "variables": [' + b'"",' * 20_000 + b'""]}', 422),
        (b'{"user": "a", "script": "' + b"," * 90_000 + b'"}', 201),
        (b"[" + b"[]," * 100_000 + b"1]", 413),
        (b"[" + b"{}," * 100_000 + b"1]", 413),
    ],
)
def test_requests_with_very_many_values_are_refused_before_they_are_read(
    server: Running, text: bytes, status: int
) -> None:
    assert server.ask("POST", PATH, raw=text).status == status
