"""What counts of a run is its application, not what was done before."""

from pathlib import Path

import pytest

from luthier.measures.metrics import Metric
from luthier.runners.application import ApplicationRunner
from luthier.runners.command import Command, CommandRunner
from luthier.trial import Completed, Config, Execution, Job, Pruned

MARK = "begins"


class Ended:
    """A runner whose jobs ended before anybody asked."""

    slots = 1

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.cancelled: list[str] = []

    def submit(self, job: Job) -> None:
        pass

    def poll(self, many: list[str], wait_s: float) -> list[Execution]:
        return [self.execution]

    def cancel(self, many: list[str]) -> None:
        self.cancelled += many


def counted(folder: Path, text: str, execution: Execution) -> float:
    (folder / "stderr").write_text(text)
    runner = ApplicationRunner(Ended(execution), folder, MARK)  # type: ignore[arg-type]  # sequences are lists here
    return runner.poll(["k"], 0.0)[0].metrics["wall_s"]


def execution(folder: Path) -> Execution:
    return Execution("k", 100.0, 10.0, metrics={"wall_s": 10.0, "user_s": 1.0}, logs=str(folder))


@pytest.mark.parametrize(
    ("text", "wall_s"),
    [
        ("noise\nbegins 104.500000000\nmore\n", 5.5),
        ("begins 104.5\nbegins 109.0\n", 5.5),
        ("begins 99.0\n", 10.0),
        ("begins 111.0\n", 0.0),
        ("it begins 104.5\n", 0.0),
        ("", 0.0),
    ],
)
def test_time_is_counted_from_the_first_mark(tmp_path: Path, text: str, wall_s: float) -> None:
    assert counted(tmp_path, text, execution(tmp_path)) == wall_s


def test_the_bound_of_a_pruned_run_is_the_applications(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text("begins 104.5\n")
    stopped = Execution("k", 100.0, 10.0, Pruned("slow"), {"wall_s": 10.0}, logs=str(tmp_path))
    runner = ApplicationRunner(Ended(stopped), tmp_path, MARK)  # type: ignore[arg-type]  # as above
    outcome = Metric("wall", ("wall_s",))(runner.poll(["k"], 0.0)[0])
    assert outcome == Pruned("slow", at_least=5.5)


def test_a_run_has_started_when_its_mark_is_there(tmp_path: Path) -> None:
    runner = ApplicationRunner(Ended(execution(tmp_path)), tmp_path, MARK)  # type: ignore[arg-type]  # as above
    assert runner.started_at("k") is None
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "stderr").write_text("wait\n")
    assert runner.started_at("k") is None
    (tmp_path / "k" / "stderr").write_text("wait\nbegins 104.5\n")
    assert runner.started_at("k") == 104.5


def test_a_real_script(tmp_path: Path) -> None:
    script = 'sleep 0.3; echo "begins $(date +%s.%N)" >&2; sleep 0.1'
    command = Command(("bash", "-c", script))
    runner = ApplicationRunner(CommandRunner(lambda _: command, tmp_path), tmp_path, MARK)
    runner.submit(Job("k", Config({})))
    ended = runner.poll(["k"], 60.0)[0]
    assert ended.problem is None
    assert 0.1 <= ended.metrics["wall_s"] <= ended.duration_s - 0.29
    assert isinstance(Metric("wall", ("wall_s",))(ended), Completed)
