from collections.abc import Mapping
from dataclasses import replace

import pytest

from luthier.launch.declared import declared_by
from luthier.server.operations import parsed
from luthier.spec.environment_rules import problem_of_variable
from luthier.spec.experiment import Experiment
from luthier.submission.submitted_job import JobText, Offer, is_refused, objection, offer_of
from luthier.trial import Value

PARAMETERS = """
    DEPTH: {env_var: true, type: int, default: 1, suffix: M}
    MODE: {env_var: true, type: str, default: slow}
"""


def experiment(extra: str = "", parameters: str = PARAMETERS, grid: str = "DEPTH: {min: 1, max: 99}") -> Experiment:
    text = f"""
experiment: {{name: x, budget: 20, runner: slurm, script: "srun ./x"}}
definitions:
  knob:
    {extra or "description: a knob"}
    parameters: {{{", ".join(line.strip() for line in parameters.strip().splitlines())}}}
components:
  knob: {{{grid}}}
"""
    from pathlib import Path

    return declared_by(parsed(text, "x.yaml"), Path("/"), None, lambda _: pytest.fail("no library")).experiment


def offer(extra: str = "", config: Mapping[str, Value] | None = None, **more: str) -> Offer:
    return offer_of(experiment(extra, **more), config or {"DEPTH": 42})


PLAIN = Offer("knob", {"DEPTH": "42M", "MODE": "slow"})


def test_the_whole_configuration_is_offered() -> None:
    assert replace(offer(), version="") == PLAIN


def test_only_values_of_the_space() -> None:
    problem = offer(config={"DEPTH": 100}).problem
    assert problem is not None
    assert "not in the space" in problem


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("LD_PRELOAD: {env_var: true, type: str, default: x}", "LD_PRELOAD can change"),
        ("OMPI_MCA_component_path: {env_var: true, type: str, default: x}", "can change which programs"),
        ("BASH_ENV: {env_var: true, type: str, default: x}", "BASH_ENV can change"),
        ('HINT: {env_var: true, type: str, default: "a b"}', "the value of HINT has other characters"),
        ('HINT: {env_var: true, type: str, default: "$(id)"}', "the value of HINT has other characters"),
        ('HINT: {env_var: true, type: str, default: "/tmp/evil.so"}', "the value of HINT has other characters"),
    ],
)
def test_variables_that_could_run_programs_are_never_set(parameter: str, said: str) -> None:
    problem = offer(parameters=f"{PARAMETERS}{parameter}").problem
    assert problem is not None
    assert said in problem


def test_a_parameter_that_is_no_variable_cannot_be_set() -> None:
    given = "COUNT: {cli_var: true, flag: nodes, type: int, default: 1}"
    found = offer(parameters=f"{PARAMETERS}{given}", grid="COUNT: {min: 1, max: 4}", config={"COUNT": 2})
    assert found.problem is not None
    assert "COUNT is not an environment variable" in found.problem


@pytest.mark.parametrize(
    "script",
    [
        "export DEPTH=3",
        "  DEPTH=3 srun ./x",
        "unset MODE",
        "setenv DEPTH 3",
        "read DEPTH",
        "env DEPTH=3 ./x",
        "mpirun -x DEPTH=3 ./x",
        "#SBATCH --export=ALL,DEPTH=3",
    ],
)
def test_settings_in_the_script_win(script: str) -> None:
    found = objection(PLAIN, JobText(f"#!/bin/sh\n{script}\nsrun ./x\n"))
    assert found is not None
    assert "sets" in found


@pytest.mark.parametrize("script", ["echo $DEPTH", "srun ./x --DEPTHS=3", "mpirun -x DEPTH ./x", "NO_DEPTH=3"])
def test_a_variable_that_is_only_read_is_set(script: str) -> None:
    assert objection(PLAIN, JobText(script)) is None


def test_settings_of_the_environment_and_the_command_line_win() -> None:
    assert objection(PLAIN, JobText("x", variables={"DEPTH"})) == "the job sets DEPTH itself"
    assert objection(PLAIN, JobText("x", ["--export=ALL,MODE=fast"])) == "the job sets MODE itself"
    for words in (["--export=NONE"], ["--export", "PATH"], ["--export=ALL", "--export=NIL"]):
        assert "--export" in (objection(PLAIN, JobText("x", words)) or "")
    assert objection(PLAIN, JobText("x", ["--export=all"])) is None


def test_commas_need_another_way_than_export() -> None:
    listed = Offer("mpi", {"BTL": "self,vader"})
    assert objection(listed, JobText("x")) is None
    assert "comma" in (objection(listed, JobText("x", takes_commas=False)) or "")


def test_only_jobs_that_use_the_component() -> None:
    enabled = offer("plugin: bb=1")
    assert "--bb=1" in (objection(enabled, JobText("srun ./x")) or "")
    assert objection(enabled, JobText("#!/bin/sh\n#SBATCH --bb=1\nsrun ./x")) is None
    assert objection(enabled, JobText("srun ./x", ["--bb=1"])) is None
    loaded = offer("ld_preload: /opt/lib/libfast.so")
    assert "libfast.so" in (objection(loaded, JobText("srun ./x")) or "")
    assert objection(loaded, JobText("export LD_PRELOAD=/other/libfast.so\nsrun ./x")) is None
    called = offer("command: start-cache --fast")
    assert objection(called, JobText("srun ./x")) is not None
    assert objection(called, JobText("start-cache --fast\nsrun ./x")) is None


def test_an_experiment_without_a_component_offers_nothing() -> None:
    plain = Experiment(space=experiment().space, budget=5)
    assert offer_of(plain, {"DEPTH": 2}).problem is not None


@pytest.mark.parametrize(
    ("script", "options"), [("#SBATCH --comment=luthier:off", []), ("x", ["--comment", "luthier:off"])]
)
def test_a_comment_refuses(script: str, options: list[str]) -> None:
    assert is_refused(JobText(f"#!/bin/sh\n{script}\n", options))
    assert not is_refused(JobText("echo --comment=luthier:off"))


@pytest.mark.parametrize(
    "name", ["", "1A", "A B", "A-B", "A=B", "PATH", "ld_library_path", "PYTHONSTARTUP", "A\n", "É"]
)
def test_names_that_are_not_set(name: str) -> None:
    assert problem_of_variable(name, "1") is not None


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OMPI_MCA_coll_tuned_bcast_algorithm", "I_MPI_ADJUST_BCAST", "a"])
def test_names_that_are_set(name: str) -> None:
    assert problem_of_variable(name, "self,vader-1.5%") is None
