from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, NotFoundError
from luthier.space import Choice, Integer, Parameter, Real
from luthier.spec.component import Component, ComponentParameter, Grid
from luthier.spec.experiment import Experiment
from luthier.spec.experiment_file import Declared, declared
from luthier.spec.grids import parameter_of
from luthier.spec.objectives import Objective
from luthier.spec.script import JobScript
from luthier.spec.yaml_lines import parse_document
from luthier.trial import Config

KNOWN = Component.model_validate(
    {
        "command": "prog",
        "parameters": {
            "bs": {
                "cmd_var": True,
                "type": "int",
                "default": 4,
                "min": 1,
                "max": 8,
                "step": 2,
                "step_type": "multiplicative",
            },
            "mode": {"cmd_var": True, "type": "str", "default": "a"},
            "share": {"cmd_var": True, "type": "float", "default": 0.5},
        },
    }
)


def registered(name: str) -> Component:
    if name != "known":
        raise NotFoundError(f"no component {name!r} is registered")
    return KNOWN


def read(text: str, folder: Path = Path()) -> Declared:
    return declared(parse_document(text, "e.yaml"), folder, Path("/tmp"), registered)


def job_of(found: Declared) -> JobScript:
    assert isinstance(found.experiment.command, JobScript)
    return found.experiment.command


def test_a_registered_component_with_values_to_try() -> None:
    found = read("components: {known: {bs: {min: 1, max: 4}, mode: [a, b], share: {min: 0, max: 1, step: 0.25}}}")
    space = found.experiment.space
    assert space.parameters == (
        Integer("bs", 1, 4, default=4),
        Choice("mode", ["a", "b"]),
        Real("share", 0.0, 1.0, 0.25, default=0.5),
    )
    assert (found.name, found.experiment.objective.measure, found.experiment.budget, found.notes) == (
        "known",
        "wall",
        60,
        (),
    )
    assert found.experiment.cwd == "/tmp"


def test_the_values_that_the_component_declares() -> None:
    expected = (Integer("bs", 1, 8, 2, "log", default=4),)
    assert read("components: {known: {}}").experiment.space.parameters == expected
    assert read("components: {known: {bs: {}}}").experiment.space.parameters == expected


def test_every_setting(tmp_path: Path) -> None:
    (tmp_path / "app.sh").write_text("#!/bin/sh\ntrue\n")
    found = read(
        """\
experiment:
  name: mine
  application: app.sh
  runner: local
  budget: 20
  slots: 2
  seed: 3
  optimizer: gp
  options: {kernel: rbf}
  measure: max:regex:(.*)
  resample: static:2
  estimator: median
  prune: 90
  stop: ['target 3', no improvement over 5]
  timeout: 2m
  time_limit: 1.5h
  verify: 2
  first: [{bs: 2}, {bs: 4}, {}]
components: {known: {bs: [1, 2, 4]}}
""",
        tmp_path,
    )
    experiment = found.experiment
    assert job_of(found) == JobScript(KNOWN, "#!/bin/sh\ntrue\n", str(tmp_path / "app.sh"), component_name="known")
    assert experiment == Experiment(
        space=experiment.space,
        command=experiment.command,
        cwd="/tmp",
        objectives=(Objective("regex:(.*)", "maximize"),),
        optimizer="gp",
        options={"kernel": "rbf"},
        seed=3,
        budget=20,
        time_limit_s=5400.0,
        timeout_s=120.0,
        slots=2,
        resample="static:2",
        estimator="median",
        prune=90.0,
        stop=("target 3", "no improvement over 5"),
        verify_pairs=2,
        first=(Config({"bs": 2}),),
    )
    assert Experiment.from_json(experiment.to_json()) == experiment


def test_several_measures() -> None:
    found = read("experiment: {measure: [wall, 'max:regex:(.*)']}\ncomponents: {known: {bs: [1, 4]}}")
    assert [(one.measure, one.goal) for one in found.experiment.objectives] == [
        ("wall", "minimize"),
        ("regex:(.*)", "maximize"),
    ]


def test_definitions_inline_and_by_path(tmp_path: Path) -> None:
    described = (
        "{command: prog, constraints: 'a <= b', measure: user, parameters:"
        " {a: &p {cmd_var: true, type: int, default: 1, min: 1, max: 3}, b: *p}}"
    )
    (tmp_path / "c.yaml").write_text(f"components: {{mine: {described}}}")
    for definitions in ("c.yaml", f"{{mine: {described}}}"):
        found = read(f"definitions: {definitions}\ncomponents: {{mine: {{}}}}", tmp_path)
        assert found.experiment.space.size == 6
        assert found.experiment.objective.measure == "user"


def test_slurm_where_the_script_asks_for_it_and_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "experiment: {script: '#!/bin/sh\n\n#SBATCH -N 1\n\ntrue'}\ncomponents: {known: {bs: [1, 4]}}"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInputError, match=r"#SBATCH lines, and sbatch is not installed here; .*--runner local"):
        read(text)
    assert job_of(read(text.replace("{script", "{runner: local, script"))).where == "local"
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    assert job_of(read(text)).where == "slurm"
    assert job_of(read(text.replace("#SBATCH", "#OTHER"))).where == "local"
    assert job_of(read(text.replace("{script", "{runner: local, script"))).where == "local"
    parameter = "{env_var: true, type: int, default: 1, min: 1, max: 4}"
    for asks in (
        "plugin: fastio=yes, parameters: {p: " + parameter,
        "parameters: {p: " + parameter.replace("env", "cli"),
    ):
        described = f"definitions: {{mine: {{{asks}}}}}}}\ncomponents: {{mine: {{}}}}\nexperiment: {{script: 'true'}}"
        assert job_of(read(described)).where == "slurm"


def grid(**keys: object) -> Grid:
    return Grid.model_validate(keys)


def described(kind: str, default: object = None) -> ComponentParameter:
    return ComponentParameter.model_validate({"type": kind, "default": default})


@pytest.mark.parametrize(
    ("kind", "default", "values", "parameter"),
    [
        ("int", 1, grid(min=1, max=15, step=3), Integer("p", 1, 15, 3)),
        ("int", 2, grid(min=2, max=16, step=2, step_type="multiplicative"), Integer("p", 2, 16, 2, "log")),
        ("int", 0, grid(min=2, max=6, step=2), Choice("p", [0, 2, 4, 6], 0, ordered=True)),
        ("int", 5, grid(values=[8, 2]), Choice("p", [2, 5, 8], 5, ordered=True)),
        ("str", "5", grid(values=[8, "2"]), Choice("p", ["8", "2", "5"], "5")),
        ("float", 0.3, grid(min=0, max=0.5, step=0.25), Choice("p", [0.0, 0.25, 0.3, 0.5], 0.3, ordered=True)),
        ("float", 0.25, grid(min=0, max=1), Real("p", 0.0, 1.0, default=0.25)),
        ("str", "c", grid(values=["b", "a"]), Choice("p", ["b", "a", "c"], "c")),
        ("bool", False, grid(values=[True, False]), Choice("p", [True, False], default=False)),
        (
            "int",
            "16k",
            grid(min="4k", max="64k", step=2, step_type="multiplicative"),
            Integer("p", "4k", "64k", 2, "log", "16k"),
        ),
        ("int", None, grid(values=[3, 1]), Choice("p", [1, 3], ordered=True)),
    ],
)
def test_values_to_try(kind: str, default: object, values: Grid, parameter: Parameter) -> None:
    assert parameter_of("p", described(kind, default), values) == parameter


def test_the_last_value_of_a_range_is_there() -> None:
    axis = parameter_of("p", described("int", 1), grid(min=1, max=15, step=3))
    assert isinstance(axis, Integer)
    assert [axis.value(index) for index in range(axis.size)] == [1, 4, 7, 10, 13]
    axis = parameter_of("p", described("int", 2), grid(min=2, max=16, step=2, step_type="multiplicative"))
    assert axis.contains(16)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("components: {known: {bs: {min: x, max: 3}}}", "e.yaml:1: components.known.bs.min: 'x' is not a number"),
        ("components: {known: {bs: {min: 8, max: 3}}}", "components.known.bs: low 8 is above high 3; swap them"),
        ("components: {known: {bs: {min: 0, max: 8, step: 2, step_type: multiplicative}}}", "cannot begin at 0"),
        ("components: {known: {bs: {min: 1, max: 8, step: 1, step_type: multiplicative}}}", "needs a step above 1"),
        ("components: {known: {bs: {min: 1, max: 8, step: 0}}}", "components.known.bs: step 0 must be above 0"),
        ("components: {known: {bs: {min: 1, max: 8, step: 0.5}}}", "step 0.5 is not an integer"),
        ("components: {known: {bs: [1, 1]}}", "1 and 1 are the same value; remove one"),
        ("components: {known: {bs: [1, a]}}", "'a' is not of type int"),
        ("components: {known: {mode: [1.0]}}", "1.0 is not of type str"),
        ("components: {known: {mode: {min: 4, max: 3}}}", "low 4 is above high 3"),
        ("components: {known: {mode: {}}}", "components.known.mode: has no values to try"),
        ("components: {known: {sb: [1]}}", "components.known.sb: the component has no such parameter; it has bs, mode"),
        ("components: {known: {share: {min: 1, max: 2}}}", "the default 0.5 is not one of its values"),
        ("components: {unknown: {a: [1]}}", "components.unknown: no component 'unknown' is registered"),
        ("components: {known: {}, other: {}}", "components: known, other are listed; name one of them"),
        ("experiment: {component: x}\ncomponents: {known: {}}", "component: 'x' is not listed under components"),
        ("experiment: {}", "components: is missing"),
        (
            "experiment:\n  budgt: 3\ncomponents: {known: {}}",
            "e.yaml:2: experiment.budgt: is unknown; did you mean 'budget'?",
        ),
        (
            "experiment:\n  constraints: [bs < 3]\ncomponents: {known: {}}",
            "e.yaml:2: experiment.constraints: is unknown; valid here: ",
        ),
        ("components: {known: {bs: {min: 1, max: 4, stp: 2}}}", "bs.stp: is unknown; did you mean 'step'?"),
        ("experiment:\n  budget: 0\ncomponents: {known: {}}", "e.yaml:2: experiment.budget: 0 is not a whole number"),
        (
            "experiment:\n  budget: '3'\ncomponents: {known: {}}",
            "e.yaml:2: experiment.budget: '3' is not a whole number",
        ),
        ("experiment:\n  resample: x\ncomponents: {known: {}}", "e.yaml:2: experiment.resample: 'x' is not understood"),
        ("experiment:\n  stop: x\ncomponents: {known: {}}", "e.yaml:2: experiment.stop: 'x' is not understood"),
        ("experiment:\n  first: [{bs: 3}]\ncomponents: {known: {}}", "e.yaml:2: experiment.first: bs: 3 is not one of"),
        ("experiment:\n  first: [3]\ncomponents: {known: {}}", "e.yaml:2: experiment.first"),
        ("experiment:\n  first: {bs: 2}\ncomponents: {known: {}}", "e.yaml:2: experiment.first"),
        ("experiment:\n  timeout: x\ncomponents: {known: {}}", "e.yaml:2: experiment.timeout: 'x' is not a duration"),
        ("experiment:\n  prune: 5 x\ncomponents: {known: {}}", "e.yaml:2: experiment.prune: '5 x' is not a duration"),
        (
            "experiment:\n  runner: pbs\ncomponents: {known: {}}",
            "runner: unknown runner 'pbs'; known: local, slurm, psij",
        ),
        ("experiment:\n  application: no.sh\ncomponents: {known: {}}", "application: 'no.sh': No such file"),
        ("experiment: {application: a, script: b}\ncomponents: {known: {}}", "script: application is also given"),
        ("definitions: no.yaml\ncomponents: {known: {}}", "definitions: no.yaml: no such file"),
        (
            "definitions: {a: {parameters: {}}}\ncomponents: {known: {}}",
            "definitions: 'known' is missing; it contains a",
        ),
        (
            "definitions:\n  known: {parameters: {a: {type: x}}}\ncomponents: {known: {}}",
            "e.yaml:2: definitions.known.parameters.a.type: 'x'",
        ),
        (
            "definitions:\n  known:\n    parameters: {a: {type: int}}\ncomponents: {known: {}}",
            "e.yaml:3: definitions.known.parameters.a: is not passed",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(text, tmp_path)
    assert message in str(caught.value).replace(f"{tmp_path}/", "")
    assert str(caught.value).startswith("e.yaml:")
    assert len(str(caught.value).splitlines()) == 1


def test_one_file_for_several_workers_is_refused() -> None:
    text = (
        "experiment: {slots: 2}\ndefinitions: {c: {command: prog, files: [{path: f, text: '{A}'}],"
        " parameters: {A: {type: int, default: 1}}}}\ncomponents: {c: {A: [1, 2]}}"
    )
    with pytest.raises(InvalidInputError, match="would all write f"):
        read(text)
    assert read(text.replace("path: f", "path: $TMPDIR/f")).experiment.slots == 2
