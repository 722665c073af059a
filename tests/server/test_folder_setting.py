"""The working folder of experiments that are launched on a server."""

from pathlib import Path

import pytest
from tests.server.server_fixtures import EXPERIMENT, Running
from tests.server.test_stop_now import wait_until

from luthier.server.app import ServerAddress, create_app

API = "/api/v1"


def document(folder: str) -> str:
    return EXPERIMENT.replace("budget: 40", f"budget: 2, folder: {folder!r}").replace("echo $LEVEL", "pwd > where")


def test_runs_start_in_the_folder(worked: Running, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    number = worked.launch(document(str(tmp_path / "there")))
    wait_until(lambda: worked.store.history.experiment(number).status not in ("queued", "running"))
    assert (tmp_path / "there" / "where").read_text().strip() == str(tmp_path / "there")
    detail = worked.ask("GET", f"{API}/experiments/{number}").json
    assert detail["settings"]["cwd"] == str(tmp_path / "there")  # type: ignore[index]  # JSON
    assert ["Runs", [["Working folder", str(tmp_path / "there")]]] in detail["settings_texts"]  # type: ignore[index]  # JSON


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("data", "'data' is not an absolute path; start it with /"),
        ("/no/where", "'/no/where' does not exist on the server"),
        ("/" + "x" * 5000, "does not exist on the server"),
    ],
)
def test_a_bad_folder_is_one_line(server: Running, folder: str, message: str) -> None:
    for path, status in (("experiments", 422), ("experiments/check", 200)):
        reply = server.ask("POST", f"{API}/{path}", {"yaml": document(folder)})
        assert reply.status == status
        error = reply.json["error"]  # type: ignore[index]  # JSON
        assert "experiment.folder: " in error
        assert message in error
        assert "\n" not in error
    assert server.store.history.experiments() == []


def test_who_may_not_launch_learns_nothing_about_folders(server: Running) -> None:
    server.add_user("root", "admin")
    viewer = server.add_user("eve", "viewer")
    answers = [
        server.ask("POST", f"{API}/experiments/check", {"yaml": document(folder)}, token=viewer).json
        for folder in ("/", "/no/where")
    ]
    assert answers[0] == answers[1]


def test_folders_of_other_machines_are_not_judged(server: Running, tmp_path: Path) -> None:
    """Without a worker on this machine, the runs are made elsewhere."""
    app = create_app(server.store, ServerAddress(1), has_worker=False)
    who = server.context.authenticator.recognise(server.token, "token")
    assert who is not None
    record = app.state.context.operations.create(who, document("/no/where")).record
    assert record.settings["cwd"] == "/no/where"
