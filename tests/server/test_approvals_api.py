"""Approving variables of components through REST."""

from typing import cast

import pytest
from tests.server.server_fixtures import Running
from tests.submission.server.test_approved_jobs import account

YAML = """
components:
  mpi:
    parameters:
      OMP_NUM_THREADS: {env_var: true, type: int, default: 1}
      DEPTH: {env_var: true, type: int, default: 1, min: 1, max: 9}
      LD_PRELOAD: {env_var: true, type: str, default: x}
      option: {cli_var: true, type: int, default: 1}
"""
PATH = "/api/v1/components/mpi"


@pytest.fixture
def registered(server: Running) -> Running:
    assert server.ask("POST", "/api/v1/components", {"yaml": YAML}).status == 201
    return server


def look(server: Running, token: str = "") -> tuple[str, dict[str, dict[str, object]]]:
    found = cast("dict[str, list[dict[str, object]]]", server.ask("GET", f"{PATH}/variables", token=token).json)
    return str(found["version"]), {str(one["name"]): one for one in found["variables"]}


def test_variables_are_listed_approved_and_withdrawn(registered: Running) -> None:
    version, variables = look(registered)
    assert list(variables) == ["OMP_NUM_THREADS", "DEPTH", "LD_PRELOAD"]
    assert [one["harmless"] for one in variables.values()] == ["1..4096", None, None]
    assert [one["declared"] for one in variables.values()] == ["1", "1..9", None]
    assert "can change" in str(variables["LD_PRELOAD"]["problem"])
    assert {one["allowed"] for one in variables.values()} == {None}
    root = account(registered, "root", "admin")
    given = {"version": version, "variables": {"DEPTH": " 1..4  6 "}}
    assert registered.ask("POST", f"{PATH}/approvals", given, token=root).status == 200
    depth = look(registered, root)[1]["DEPTH"]
    assert (depth["allowed"], depth["approved_by"]) == ("1..4 6", "root")
    assert cast("float", depth["approved_at"]) > 1.7e9
    assert registered.ask("DELETE", f"{PATH}/approvals/DEPTH", token=root).status == 204
    assert registered.ask("DELETE", f"{PATH}/approvals/DEPTH", token=root).status == 404
    assert look(registered, root)[1]["DEPTH"]["allowed"] is None
    actions = [(one.user, one.action, one.target) for one in registered.store.accounts.entries(limit=2)]
    assert actions == [
        ("root", "withdraw approval", "component mpi"),
        ("root", "approve variables", "component mpi"),
    ]


def test_only_administrators_approve(registered: Running) -> None:
    version = look(registered)[0]
    root = account(registered, "root", "admin")
    given = {"version": version, "variables": {"DEPTH": "1"}}
    registered.ask("POST", f"{PATH}/approvals", given, token=root)
    for role in ("submitter", "viewer", "user"):
        token = account(registered, role, role)
        assert registered.ask("POST", f"{PATH}/approvals", given, token=token).status == 403
        assert registered.ask("DELETE", f"{PATH}/approvals/DEPTH", token=token).status == 403
        status = registered.ask("GET", f"{PATH}/variables", token=token).status
        assert status == (403 if role == "submitter" else 200)
    assert registered.ask("POST", f"{PATH}/approvals", given, token=None).status == 401
    assert [one.variable for one in registered.store.components.approvals()] == ["DEPTH"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"DEPTH": "1", "LD_PRELOAD": "x"}, "LD_PRELOAD can change"),
        ({"DEPTH": "$(rm)"}, "other characters"),
        ({"DEPTH": ""}, "no values"),
        ({"DEPTH": "1" * 2_001}, "2000"),
        ({"option": "1"}, "sets no variable option"),
        ({}, "at least 1"),
    ],
)
def test_what_cannot_be_approved(registered: Running, variables: dict[str, str], said: str) -> None:
    version = look(registered)[0]
    reply = registered.ask("POST", f"{PATH}/approvals", {"version": version, "variables": variables})
    assert reply.status == 422
    assert said in str(reply.json)
    assert registered.store.components.approvals() == []


def test_a_component_that_changed_after_it_was_shown_is_not_approved(registered: Running) -> None:
    version = look(registered)[0]
    registered.ask("PUT", PATH, {"yaml": YAML.replace("max: 9", "max: 10")})
    given = {"version": version, "variables": {"DEPTH": "1..9"}}
    reply = registered.ask("POST", f"{PATH}/approvals", given)
    assert reply.status == 422
    assert "was changed meanwhile" in str(reply.json)
    assert registered.ask("POST", f"{PATH}/approvals", {**given, "version": look(registered)[0]}).status == 200
    registered.ask("PUT", PATH, {"yaml": YAML})
    assert look(registered)[1]["DEPTH"]["allowed"] is None
