"""Declared components from the command line: real files, real runs, a store of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from luthier.__main__ import main

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

COMPONENT = """\
components:
  counter:
    header: echo cleaned >> cleaned; sleep 0.2
    command: echo
    parameters:
      level: {cmd_var: True, type: int, default: 9}
      MODE: {env_var: True, type: str, default: slow}
"""
APPLICATION = "#!/bin/sh\n#SBATCH --ntasks=1\necho $MODE\n"


class User:
    """Somebody with a home, who types commands in it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._monkeypatch, self._capsys = home, monkeypatch, capsys
        monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
        monkeypatch.delenv("LUTHIER_STORE", raising=False)
        monkeypatch.chdir(home)

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._monkeypatch.setattr(sys, "argv", ["luthier", *arguments])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        assert ended.value.code == code, err
        assert not code or len(err.splitlines()) == 1
        return err if code else out

    def write(self, name: str, text: str) -> str:
        (self.home / name).write_text(text)
        return name


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    return User(tmp_path, monkeypatch, capsys)


def test_components_are_added_listed_shown_and_removed(user: User) -> None:
    assert "no components yet" in user("component", "list")
    file = user.write("c.yaml", COMPONENT)
    assert user("component", "add", file) == "registered: counter\n"
    other = user.write("o.yaml", "components: {other: {parameters: {A: {env_var: true, type: int, default: 0}}}}")
    user("component", "add", other)
    assert user("component", "list").splitlines() == ["counter  level, MODE", "other  A"]
    assert json.loads(user("component", "list", "--json")) == ["counter", "other"]
    shown = user("component", "show", "counter")
    user.write("again.yaml", shown)
    assert user("validate", "again.yaml", file) == "again.yaml: components: counter\nc.yaml: components: counter\n"
    assert json.loads(user("component", "show", "other", "--json")) == {
        "parameters": {"A": {"type": "int", "default": 0, "env_var": True}}
    }
    assert "already registered; use --replace" in user("component", "add", file, code=2)
    user("component", "add", "--replace", file)
    user("component", "remove", "counter")
    assert json.loads(user("component", "list", "--json")) == ["other"]
    assert "no component 'counter' is registered" in user("component", "show", "counter", code=2)


EXPERIMENT = """\
experiment:
  name: first
  budget: 16
  runner: local
  measure: 'regex:value=(.*)'
  script: |
    #!/bin/bash
    [ $level -ne 3 ] || exit 1
    echo value=$(( level * level ))
definitions:
  square:
    header: sleep 0.05
    parameters:
      level: {env_var: True, type: int, default: 9, min: 0, max: 9}
components:
  square: {}
"""


def test_every_store_has_components_of_its_own(user: User) -> None:
    assert "no component 'x' is registered; add it with: luthier component add FILE" in user(
        "component", "show", "x", code=2
    )
    file = user.write("c.yaml", COMPONENT)
    user("component", "add", file, "--store", "one.db")
    assert user("component", "list", "--json", "--store", "one.db") == '["counter"]\n'
    for other in ([], ["--store", "two.db"]):
        assert user("component", "list", "--json", *other) == "[]\n"
    user.write("e.yaml", "experiment: {script: echo, budget: 2}\ncomponents: {counter: {level: [9, 1]}}\n")
    for command in (["run", "e.yaml", "-q"], ["validate", "e.yaml"], ["render", "e.yaml"]):
        user(*command, "--store", "one.db")
        assert "no component 'counter' is registered" in user(*command, "--store", "two.db", code=2)


def test_a_failed_job_does_not_end_the_experiment_and_the_last_value_is_reached(user: User) -> None:
    file = user.write("e.yaml", EXPERIMENT)
    result = json.loads(user("run", file, "--json", "--set", "optimizer=exhaustive", "--set", "verify=2"))
    assert (result["name"], result["status"], result["recommended"]) == ("first", "finished", {"level": 0})
    trials = json.loads(user("show", "1", "--json"))["trials"]
    assert sorted(trial["config"]["level"] for trial in trials) == list(range(10))
    failed = [trial["config"]["level"] for trial in trials if trial["estimate"] is None]
    assert failed == [3]
    assert "command to use:\n  luthier apply 1 > tuned.sh" in user("show", "1")
    script = user.write("tuned.sh", user("apply", "1"))
    done = subprocess.run(["bash", script], cwd=user.home, capture_output=True, text=True, check=True)
    assert done.stdout == "value=0\n"
    assert user("apply", "1", "--env") == "export level=0\n"


def test_configurations_to_try_first_from_the_file_and_from_an_earlier_experiment(user: User) -> None:
    file = user.write(
        "e.yaml", EXPERIMENT.replace("  budget: 16\n", "  budget: 4\n  first: [{level: 5}, {level: 7}]\n")
    )
    user("run", file)
    assert levels(user, 1)[:3] == [9, 5, 7]
    user("run", file, "--after", "1", "--set", "first=[{level: 8}]")
    assert levels(user, 2)[:4] == [9, 8, *sorted(set(levels(user, 1)) - {3})[:2]]
    before = user("list", "--json")
    other = EXPERIMENT.replace("level", "depth")
    assert "none of the best configurations" in user("run", user.write("o.yaml", other), "--after", "1", code=2)
    assert user("list", "--json") == before


def levels(user: User, number: int) -> list[int]:
    return [run["config"]["level"] for run in json.loads(user("export", str(number), "--format", "json"))]


def test_an_experiment_needs_its_files_only_once(user: User) -> None:
    """What is stored is the component itself, not where it was."""
    user.write("app.sh", "echo $((level)) $#\n")
    component = "{square: {parameters: {level: {env_var: True, type: int, default: 9, min: 0, max: 9}}}}"
    user.write("c.yaml", f"components: {component}")
    text = "experiment: {application: app.sh, runner: local, budget: 3}\ndefinitions: c.yaml\ncomponents: {square: {}}"
    user("run", user.write("e.yaml", text))
    for name in ("app.sh", "c.yaml", "e.yaml"):
        (user.home / name).unlink()
    command = json.loads(user("show", "1", "--json"))["command"]
    assert command.startswith("#!/bin/bash\nexport level=")
    assert command.endswith("\necho $((level)) $#")


def test_only_the_application_is_timed(user: User) -> None:
    """The header takes 200 ms, the application next to nothing; the queue and the header count for nothing."""
    user.write("app.sbatch", APPLICATION)
    text = (
        "experiment: {application: app.sbatch, runner: local, budget: 2, verify: 0}\n"
        + COMPONENT.replace("components:", "definitions:")
        + "components: {counter: {level: [9, 8]}}\n"
    )
    user("run", user.write("e.yaml", text), "--json")
    runs = json.loads(user("export", "1", "--format", "json"))
    assert all(run["duration_s"] > 0.2 for run in runs)
    assert all(run["value"] < run["duration_s"] - 0.19 for run in runs)
    assert (user.home / "cleaned").read_text().splitlines() == ["cleaned"] * 2


def test_render_shows_no_value_that_a_shell_would_run(user: User) -> None:
    value = "a'\ntouch hacked\n'b"
    text = yaml.safe_dump(
        {
            "experiment": {"runner": "local"},
            "definitions": {
                "one": {"command": "true", "parameters": {"V": {"env_var": True, "type": "str", "default": value}}}
            },
            "components": {"one": {"V": [value, "c"]}},
        }
    )
    script = user("render", user.write("e.yaml", text))
    assert "touch hacked" in script
    subprocess.run(["sh", "-c", script], check=True, timeout=60)
    assert not (user.home / "hacked").exists()
    assert all(line.startswith("#") for line in script.splitlines() if "hacked" in line)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('name="\\ud800"', "contains U+D800, half of a character"),
        ('name="\\e[31mred"', r"contains \x1b, which is not printable"),
        ('name="a\\nb"', r"contains \n, which is not printable"),
        ('definitions.square.description="\\ud800"', "contains U+D800"),
        ('definitions.square.ld_preload="a\\nb"', "not printable"),
        ("timeout=" + "1:" * 9999 + "1", "a number has 19999 characters"),
        ("stop=target " + "1" * 9999 + "x", "at most 2000 are allowed"),
        ("resample=auto:least=" + "1" * 9999 + "x", "at most 2000 are allowed"),
        ("prune=default:factor=" + "1" * 9999 + "x", "at most 2000 are allowed"),
    ],
)
def test_texts_are_checked_where_they_come_in(user: User, setting: str, told: str) -> None:
    told_back = user("render", user.write("e.yaml", EXPERIMENT), "--set", setting, code=2)
    assert told in told_back
    assert told_back.rstrip("\n").isprintable()


def test_render_shows_the_script_and_the_command_line(user: User) -> None:
    file = user.write("e.yaml", EXPERIMENT)
    text = user("render", file, "-p", "level=4")
    assert text.splitlines()[0] == "#!/bin/bash"
    assert text.endswith("\n# run as: level=4 /bin/bash SCRIPT\n")
    slurm = json.loads(
        user("render", file, "--set", "runner=slurm", "--set", "definitions.square.plugin=fast=1", "--json")
    )
    assert slurm["options"] == ["--fast=1"]
    assert slurm["environment"] == {"level": "9"}
    assert "sbatch --fast=1 SCRIPT" in user(
        "render", file, "--set", "runner=slurm", "--set", "definitions.square.plugin=fast=1"
    )
    assert "level: 77 is not one of its values" in user("render", file, "-p", "level=77", code=2)
    assert "'lvel' is not tuned; did you mean 'level'?" in user("render", file, "-p", "lvel=7", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "none.yaml: no such file"),
        (["run", "e.yaml", "--set", "budget"], "--set budget: write KEY=VALUE"),
        (
            ["run", "e.yaml", "--set", "budget=x"],
            "--set budget=x: experiment.budget: 'x' is not a whole number of at least 1",
        ),
        (["run", "e.yaml", "--set", "optimizer=gpp"], "--set optimizer=gpp: experiment.optimizer: unknown optimizer"),
        (
            ["run", "e.yaml", "--set", "measure=walll"],
            "--set measure=walll: experiment.measure: unknown measure 'walll'",
        ),
        (["validate"], "nothing to check"),
        (["validate", "--schema", "x"], "--schema x: unknown; give component or experiment"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_stored(user: User, arguments: list[str], message: str) -> None:
    user.write("e.yaml", EXPERIMENT)
    assert message in user(*arguments, code=2)
    assert not (user.home / "data").exists()


def test_the_schemas_are_printed(user: User) -> None:
    component = json.loads(user("validate", "--schema", "component"))
    assert "components" in component["properties"]
    experiment = json.loads(user("validate", "--schema", "experiment"))
    assert {"experiment", "definitions", "components", "bbo"} <= set(experiment["properties"])
    tried = experiment["properties"]["components"]["additionalProperties"]["additionalProperties"]
    assert [kind.get("type", "Grid") for kind in tried["anyOf"]] == ["Grid", "array"]
    measure = experiment["$defs"]["Settings"]["properties"]["measure"]
    assert [kind["type"] for kind in measure["anyOf"]] == ["string", "array"]


def test_shamans_commands(user: User) -> None:
    user("shaman", "install", user.write("c.yaml", COMPONENT))
    user("shaman", "install", "c.yaml")
    user.write("app.sbatch", APPLICATION)
    user.write(
        "s.yaml",
        "experiment: {default_first: True, runner: local}\nbbo: {heuristic: random_search}\n"
        "components: {counter: {level: {min: 1, max: 9, step: 4}}, other: {}}\n",
    )
    options = {
        "--component-name": "counter",
        "--nbr-iteration": "3",
        "--sbatch-file": "app.sbatch",
        "--experiment-name": "été",
        "--configuration-file": "s.yaml",
        "--sbatch-dir": "scripts",
        "--slurm-dir": "logs",
        "--result-file": "result.json",
    }
    text = user("shaman", "optimize", *(word for pair in options.items() for word in pair))
    assert "3 of 3 runs" in text
    result = json.loads((user.home / "result.json").read_text())
    assert (result["name"], result["status"], result["runs"]) == ("été", "finished", 3)
    script = (user.home / "scripts" / "été_best.sbatch").read_text()
    assert script.startswith("#!/bin/sh\n#SBATCH --ntasks=1\n")
    assert "Missing option" in user("shaman", "optimize", "--component-name", "x", code=2)


@pytest.mark.parametrize("script", [APPLICATION, APPLICATION.replace("#SBATCH", "#")])
def test_shamans_command_never_runs_a_script_here_unasked(
    user: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    user("shaman", "install", user.write("c.yaml", COMPONENT))
    user.write("app.sbatch", script)
    user.write(
        "s.yaml", "experiment: {default_first: True}\ncomponents: {counter: {level: {min: 1, max: 9, step: 4}}}\n"
    )
    words = ["shaman", "optimize", "--component-name", "counter", "--nbr-iteration", "2", "--sbatch-file", "app.sbatch"]
    words += ["--experiment-name", "x", "--configuration-file", "s.yaml"]
    refused = user(*words, code=2)
    assert "sbatch is not installed here" in refused
    assert "--runner local" in refused
    assert len(refused.splitlines()) == 1
    monkeypatch.setenv("PATH", os.defpath)
    assert "2 of 2 runs" in user(*words, "--runner", "local")


def test_the_examples_are_valid(user: User) -> None:
    files = sorted(str(path) for path in EXAMPLES.rglob("*.yaml"))
    assert len(user("validate", *files).splitlines()) == len(files) >= 5


def test_the_files_of_the_documentation_are_valid(user: User) -> None:
    text = (EXAMPLES.parent / "docs" / "components.md").read_text(encoding="utf-8")
    described, experiment = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert user("validate", user.write("c.yaml", described)) == "c.yaml: components: webserver\n"
    user.write("openmpi.yaml", (EXAMPLES / "components" / "openmpi.yaml").read_text())
    user.write("app.sbatch", "#!/bin/sh\ntrue\n")
    assert "an experiment, 'allreduce on 2 nodes', over 72 configurations" in user(
        "validate", user.write("e.yaml", experiment)
    )


SEVERAL = """\
bbo: {heuristic: random_search}
components:
  counter: {level: {min: 1, max: 9, step: 4}}
  other: {level: {min: 1, max: 9, step: 4}}
"""


def test_every_component_of_a_file_is_checked(user: User) -> None:
    user("component", "add", user.write("c.yaml", COMPONENT))
    file = user.write("e.yaml", SEVERAL)
    said = user("validate", file)
    assert "an experiment, 'counter', over 3 configurations" in said
    assert "'other' cannot be tuned: e.yaml:4: components.other: " in said
    assert "--set component=NAME" in user("run", file, code=2)
    user("component", "remove", "counter")
    assert "components.counter: " in user("validate", file, code=2)


COMMANDS = ["run", "validate", "render", "shaman install", "shaman optimize"]
COMMANDS += [f"component {name}" for name in ("add", "list", "show", "remove")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(user: User, command: str) -> None:
    assert f"luthier {command}" in user(*command.split(), "--help").split("Example:")[1]


MPI = """\
components:
  mpi:
    parameters:
      OMP_NUM_THREADS: {env_var: true, type: int, default: 1}
      MODE: {env_var: true, type: str, default: slow, values: [slow, fast]}
      DEPTH: {env_var: true, type: int, default: 1, min: 1, max: 9}
      LD_PRELOAD: {env_var: true, type: str, default: x}
      option: {cli_var: true, type: int, default: 1}
"""


def allowed(user: User) -> dict[str, str]:
    return {one["variable"]: one["allowed"] for one in json.loads(user("component", "approvals", "--json"))}


def test_variables_are_shown_before_they_are_approved(user: User) -> None:
    user("component", "add", user.write("c.yaml", MPI))
    assert "nothing is approved" in user("component", "approvals")
    assert "add --yes" in user("component", "approve", "mpi", code=2)
    assert allowed(user) == {}
    said = user("component", "approve", "mpi", "--yes")
    assert "OMP_NUM_THREADS  1..4096  (known to be harmless)" in said
    assert "LD_PRELOAD  never set: LD_PRELOAD can change" in said
    assert "option" not in said
    assert allowed(user) == {"DEPTH": "1..9", "MODE": "slow fast", "OMP_NUM_THREADS": "1..4096"}
    assert re.search(r"mpi  DEPTH  1\.\.9  \S+ \(command line\), 20\d\d-", user("component", "approvals"))


def test_some_variables_are_approved_and_withdrawn(user: User) -> None:
    user("component", "add", user.write("c.yaml", MPI))
    user("component", "approve", "mpi", "--harmless", "--yes")
    assert allowed(user) == {"OMP_NUM_THREADS": "1..4096"}
    user("component", "approve", "mpi", "OMP_NUM_THREADS=1..8", "MODE=slow  other", "DEPTH", "--yes")
    assert allowed(user) == {"DEPTH": "1..9", "MODE": "slow other", "OMP_NUM_THREADS": "1..8"}
    assert "not approved any more: MODE" in user("component", "withdraw", "mpi", "MODE")
    user("component", "approve", "mpi", "--yes")
    assert allowed(user) == {"DEPTH": "1..9", "MODE": "slow fast", "OMP_NUM_THREADS": "1..8"}
    assert "no further variable" in user("component", "approve", "mpi", "--yes", code=2)
    user("component", "withdraw", "mpi", "MODE")
    assert "MODE is not approved for component mpi" in user("component", "withdraw", "mpi", "MODE", code=2)
    user("component", "withdraw", "mpi")
    assert allowed(user) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["LD_PRELOAD"], "can change"),
        (["LD_PRELOAD=evil.so"], "can change"),
        (["DEPTH=/bin/sh"], "other characters"),
        (["DEPTH="], "no values"),
        (["NONE"], "sets no variable NONE"),
        (["MODE", "--harmless"], "is not known to be harmless"),
        (["OMP_NUM_THREADS=x", "--harmless"], "is not known to be harmless"),
        (["DEPTH=9..1"], "is empty"),
    ],
)
def test_what_cannot_be_approved_is_one_line(user: User, words: list[str], said: str) -> None:
    user("component", "add", user.write("c.yaml", MPI))
    assert said in user("component", "approve", "mpi", *words, "--yes", code=2)
    assert allowed(user) == {}


def test_a_changed_component_is_not_approved_any_more(user: User) -> None:
    user("component", "add", user.write("c.yaml", MPI))
    user("component", "approve", "mpi", "DEPTH", "--yes")
    user("component", "add", "c.yaml", "--replace")
    assert allowed(user) == {"DEPTH": "1..9"}  # nothing has changed
    user("component", "add", user.write("c.yaml", MPI.replace("max: 9", "max: 10")), "--replace")
    assert allowed(user) == {}
