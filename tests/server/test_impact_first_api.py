"""Impact first over REST and in the report."""

from typing import Any, cast

from tests.server.server_fixtures import Running

API = "/api/v1"
EXPERIMENT = """
experiment: {name: first try, budget: 40, impact_first: statistical, script: "echo $A $B $C"}
definitions:
  knobs:
    parameters:
      A: {env_var: true, type: int, default: 1}
      B: {env_var: true, type: int, default: 1}
      C: {env_var: true, type: int, default: 1}
components:
  knobs: {A: {min: 1, max: 9}, B: {min: 1, max: 9}, C: {min: 1, max: 9}}
"""


def launch_narrowed(server: Running) -> int:
    """An experiment with impact first, in the queue."""
    reply = server.ask("POST", f"{API}/experiments", {"yaml": EXPERIMENT})
    return int(cast("dict[str, Any]", reply.json)["id"])


def test_the_details_and_the_report_say_what_is_tuned_now(server: Running) -> None:
    number = launch_narrowed(server)
    found = cast("dict[str, Any]", server.ask("GET", f"{API}/experiments/{number}").json)["impact_first"]
    assert found["sentence"] == "tuned now: all 3 parameters: nothing is known yet"
    assert found["of"] == 3
    assert found["steps"] == [{"first_trial": 0, "parameters": ["A", "B", "C"], "reason": "nothing is known yet"}]
    assert (
        "Impact first: tuned now: all 3 parameters"
        in server.ask("GET", f"{API}/experiments/{number}/report").body.decode()
    )


def test_without_it_there_is_nothing_to_say(server: Running) -> None:
    number = server.launch()
    assert cast("dict[str, Any]", server.ask("GET", f"{API}/experiments/{number}").json)["impact_first"] is None
