"""Stop and verify through REST, with a worker."""

from tests.server.server_fixtures import EXPERIMENT, Running
from tests.server.test_stop_now import wait_until

import luthier as lt

API = "/api/v1"
SLOW = (
    EXPERIMENT.replace("budget: 40", "budget: 400, optimizer: random, measure: 'regex:(.+)'")
    .replace("echo $LEVEL", "sleep 0.05; echo $LEVEL")
    .replace("default: 1", "default: 99")
)


def test_the_search_ends_and_the_best_is_verified(worked: Running) -> None:
    number = worked.launch(SLOW)
    wait_until(lambda: len(worked.store.history.runs(number)) >= 8)
    client = lt.Client(worked.url, worked.token)
    client.stop(number, verify=True)
    wait_until(lambda: worked.store.history.experiment(number).status == "finished")
    detail = client.experiment(number)
    assert detail["result"]["ending"] == "stopped by request, then verified"  # type: ignore[index,call-overload]  # JSON
    assert detail["improved"] is True
    assert worked.store.history.experiment(number).runs < 400
    assert [entry.action for entry in worked.store.accounts.entries()] == ["stop and verify", "launch"]
    assert worked.ask("POST", f"{API}/experiments/{number}/stop?verify=true").status == 409


def test_what_cannot_be_verified_is_refused(server: Running) -> None:
    number = server.launch()
    answer = server.ask("POST", f"{API}/experiments/{number}/stop?verify=true")
    assert (answer.status, answer.json) == (
        422,
        {"error": "experiment 1 is queued; the search can be stopped while it runs"},
    )
    assert server.ask("POST", f"{API}/experiments/{number}/stop?verify=true&now=true").status == 422
    server.play(number, [None], None)
    assert server.ask("POST", f"{API}/experiments/{number}/stop?verify=true").status == 200
    detail = server.ask("GET", f"{API}/experiments/{number}").json
    assert (detail["verify_requested"], detail["stop_requested"]) == (True, False)  # type: ignore[index]  # JSON
