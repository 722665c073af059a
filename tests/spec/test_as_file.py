"""Experiments of the command line as experiment files: what runs is the same."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from luthier.cli.arguments import space_from, template_from
from luthier.errors import InvalidInputError
from luthier.server.api.yaml_text import yaml_text
from luthier.space import Integer, Space
from luthier.spec.as_file import as_file
from luthier.spec.component import Component
from luthier.spec.experiment import Experiment, settings_json
from luthier.spec.experiment_file import declared
from luthier.spec.script import JobScript
from luthier.spec.yaml_lines import parse_document
from luthier.trial import Config

FOLDER = Path("/tmp")
PRINT = ["printf", "%s|"]


def nobody(name: str) -> NoReturn:
    raise AssertionError(f"{name} is described in the file")


def read_back(experiment: Experiment, name: str = "a test") -> Experiment:
    document, _ = as_file(experiment, name)
    found = declared(parse_document(yaml_text(document), "e.yaml"), FOLDER, FOLDER, nobody)
    assert found.name == name
    return found.experiment


def output(experiment: Experiment, config: Config) -> str:
    assert experiment.command is not None
    argv, environment = experiment.command.render(experiment.space, config)
    done = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("parameters", "command", "environment", "is_shell"),
    [
        (["x=1..9"], [*PRINT, "{x}", "a b", "", "{{x}}", "--bs={x}k $HOME"], [], False),
        (["b=4k..1M:x2@64k", "n=1..16:3"], [*PRINT, "{b}", "{n}{n}"], [], False),
        (["r=0.5..2.5", "q=0.25..1:0.25"], [*PRINT, "{r} {q}"], [], False),
        (["m=a b,c\\,d,it's,-n", "k=1,2,4@2", "t=true,false", "f=1.5,2"], [*PRINT, "{m}", "{k}{t}", "{f}"], [], False),
        (["x=1,auto"], ["sh", "-c", 'printf "%s|" "$A" "$B"'], ["A=v {x}'", "B={{x}} $HOME"], False),
        (["x=1..9", "m=a b,$c,'"], ["printf '%s|' {x} {m} '{m}' \"{m} {x}\"; : `echo {x}`"], [], True),
    ],
)
def test_the_same_command_line(
    parameters: list[str], command: list[str], environment: list[str], is_shell: bool
) -> None:
    space = space_from(parameters, [])
    template = template_from(command, environment, shell=is_shell)
    experiment = Experiment(space=space, command=template, cwd="/tmp", budget=20)
    copy = read_back(experiment)
    assert copy.space.names == space.names
    assert copy.space.size == space.size
    for config in (space.default, *space.sample(5, np.random.default_rng(1))):
        formatted = {one.name: one.format(config[one.name]) for one in space.parameters}
        same = copy.space.check({one.name: one.parse(formatted[one.name]) for one in copy.space.parameters})
        assert output(copy, same) == output(experiment, config)


def test_every_setting_is_kept() -> None:
    experiment = Experiment(
        space=space_from(["x=1..9", "y=1..9"], ["x <= y"]),
        command=template_from(["echo", "{x}", "{y}"], [], shell=False),
        cwd="/usr", budget=33, slots=2, seed=7, optimizer="gp", options={"kernel": "rbf"}, stop=("target 3",),
        first=(Config({"x": 2, "y": 3}),), timeout_s=90.0, prune="q75", verify_pairs=4, sentinels=9,
    )  # fmt: skip
    copy = read_back(experiment)
    assert settings_json(copy) == settings_json(experiment)
    assert copy.space == experiment.space


def test_a_job_keeps_its_script_and_component() -> None:
    component = Component.model_validate(
        {"command": "echo", "parameters": {"x": {"cmd_var": True, "type": "int", "default": 1, "flag": "n"}}}
    )
    job = JobScript(component, "#!/bin/bash\necho done\n", "app", "local", None, "echoer")
    experiment = Experiment(space=Space(Integer("x", 1, 9)), command=job, cwd="/usr")
    copy = read_back(experiment)
    assert isinstance(copy.command, JobScript)
    assert copy.command.batch(copy.space, copy.space.default) == job.batch(copy.space, copy.space.default)
    assert (copy.space, copy.cwd, copy.command.component_name) == (experiment.space, "/usr", "echoer")


def test_what_no_file_can_describe_is_one_line() -> None:
    with pytest.raises(InvalidInputError, match="tunes a Python function"):
        as_file(Experiment(space=Space(Integer("x", 1, 9))), "f")
    command = template_from(["echo", "{a-b}"], [], shell=False)
    with pytest.raises(InvalidInputError, match="parameter a-b cannot be the name of an environment variable"):
        as_file(Experiment(space=Space(Integer("a-b", 1, 9)), command=command), "f")


def test_a_command_keeps_its_runner() -> None:
    template = replace(template_from([*PRINT, "{x}"], [], shell=False), where="dask:tcp://127.0.0.1:8786")
    command = read_back(Experiment(space=Space(Integer("x", 1, 9)), command=template)).command
    assert command is not None
    assert command.where == template.where
