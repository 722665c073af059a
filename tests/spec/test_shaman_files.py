import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from luthier.engine.session import optimizer_of
from luthier.errors import InvalidInputError
from luthier.policies import Progress, Stop
from luthier.runners.supervisor import MARK_VARIABLE
from luthier.spec.component import Component
from luthier.spec.experiment_file import Declared, declared
from luthier.spec.rules import TunedProblem, stop_from
from luthier.spec.script import JobScript
from luthier.spec.yaml_lines import parse_document
from luthier.trial import Completed, Config, Estimate, Trial

COMPONENT: dict[str, object] = {
    "command": "prog",
    "parameters": {
        "param_1": {"cmd_var": True, "type": "int", "default": 2},
        "param_2": {"cmd_var": True, "type": "int", "default": 1},
    },
}

# The keys and the layout of the experiment file in Robert's thesis, listing 6.3, with its name broken into two lines.
LISTING = """\
experiment:
  default_first: True
bbo:
  heuristic: genetic_algorithm
  initial_sample_size: 2
  selection_method: bbo.heuristics.genetic_algorithm.selections.tournament_pick
  crossover_method: bbo.heuristics.genetic_algorithm.crossover.
    single_point_crossover
  mutation_method: bbo.heuristics.genetic_algorithm.mutations.
    mutate_chromosome_to_neighbor
  pool_size: 5
  mutation_rate: 0.4
  elitism: False
noise_reduction:
  resampling_policy: simple_resampling
  nbr_resamples: 3
  fitness_aggregation: simple_fitness_aggregation
  estimator: numpy.median
pruning:
  max_step_duration: numpy.median
components:
  component_1:
    param_1:
      min: 2
      max: 16
      step: 2
      step_type: multiplicative
    param_2:
      min: 1
      max: 15
      step: 3
"""


def read(text: str, **keys: object) -> Declared:
    component = Component.model_validate({**COMPONENT, **keys})
    return declared(parse_document(text, "s.yaml"), Path(), Path(), lambda _: component)


def with_sections(sections: str) -> Declared:
    return read(f"{sections}\ncomponents: {{component_1: {{param_1: {{min: 1, max: 9, step: 1}}}}}}")


def test_the_listing_of_the_thesis() -> None:
    found = read(LISTING)
    experiment = found.experiment
    assert experiment.optimizer == "genetic"
    assert experiment.options == {
        "selection": "tournament",
        "crossover": "one-point",
        "tournament": 5,
        "mutation": 0.4,
        "elite": 0,
    }
    assert (experiment.resample, experiment.estimator, experiment.prune) == ("static:3", "median", "median")
    assert experiment.space.size == 4 * 5
    assert found.notes == (
        "bbo.initial_sample_size: 2 is ignored: the genetic search needs a population of at least 10",
    )
    optimizer_of(experiment)


def test_annealing_in_own_words() -> None:
    found = with_sections(
        "bbo: {heuristic: simulated_annealing, initial_sample_size: 4, initial_temperature: 50,"
        " neighbor_function: bbo.heuristics.simulated_annealing.neighbor_functions.random_walk, cooling_factor: 2,"
        " cooldown_function: bbo.heuristics.simulated_annealing.cooldown_functions.multiplicative_schedule,"
        " restart: bbo.heuristics.simulated_annealing.restart_functions.random_restart, bernouilli_parameter: 0.2,"
        " max_restart: 5, max_iteration: 40, time_out: 600}"
    )
    assert found.experiment.optimizer == "annealing"
    assert found.experiment.options == {
        "initial": 4,
        "temperature": 50,
        "cooling": 2,
        "schedule": "linear",
        "restart": "random",
        "restart_at": 0.2,
        "restarts": 5,
    }
    assert (found.experiment.budget, found.experiment.time_limit_s, found.notes) == (40, 600.0, ())
    optimizer_of(found.experiment)


@pytest.mark.parametrize(
    ("model", "strategy", "optimizer", "acquisition"),
    [
        ("sklearn.gaussian_process.GaussianProcessRegressor", "expected_improvement", "gp", "ei"),
        ("sklearn.ensemble.RandomForestRegressor", "maximum_probability_improvement", "forest", "pi"),
    ],
)
def test_models_in_own_words(model: str, strategy: str, optimizer: str, acquisition: str) -> None:
    found = with_sections(
        f"bbo: {{heuristic: surrogate_model, regression_model: {model}, initial_draw_method: uniform_random,"
        f" next_parameter_strategy: bbo.heuristics.surrogate_models.next_parameter_strategies.{strategy}}}"
    )
    assert found.experiment.optimizer == optimizer
    assert found.experiment.options == {"acquisition": acquisition, "design": "random"}
    optimizer_of(found.experiment)


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("noise_reduction: {resampling_policy: dynamic_resampling, percentage: 0.1}", "resample", "sedr:10%"),
        (
            "noise_reduction: {resampling_policy: dynamic_resampling, percentage: 0.1,"
            " resampling_schedule: logarithmic, allow_resampling_schedule: logarithmic}",
            "resample",
            "evadyr",
        ),
        ("noise_reduction: {estimator: numpy.mean}", "estimator", "mean"),
        ("pruning: {max_step_duration: default}", "prune", "default"),
        ("pruning: {max_step_duration: 5}", "prune", 5.0),
        ("pruning: {max_step_duration: numpy.mean}", "prune", "mean"),
        (
            "bbo: {improvement_threshold: 0.05, stop_window: 15}",
            "stop",
            ("best improvement < 5% over 15 runs and after 26 runs",),
        ),
        (
            "bbo: {stop_criterion: improvement_criterion, improvement_threshold: 0.1,"
            " improvement_estimator: numpy.median, stop_window: 9, initial_sample_size: 4}",
            "stop",
            ("median improvement < 10% over 9 runs and after 14 runs",),
        ),
        ("bbo: {nbr_parametrizations: 3, stop_window: 9}", "stop", ("distinct < 4 over 9 and after 20 runs",)),
        ("bbo: {nbr_parametrizations: 9, stop_window: 9}", "stop", ("after 20 runs",)),
        (
            "bbo: {stop_criterion: distance_movement, distance: 0.5, stop_window: 9}",
            "stop",
            ("units apart <= 0.5 over 9 and after 20 runs",),
        ),
        ("bbo: {heuristic: exhaustive_search}", "optimizer", "exhaustive"),
        ("bbo: {heuristic: random_search}", "optimizer", "random"),
        ("api: {host: localhost, port: 5000}", "optimizer", "auto"),
        ("bbo:\npruning:\nnoise_reduction:", "optimizer", "auto"),
    ],
)
def test_sections_in_own_words(section: str, field: str, value: object) -> None:
    assert getattr(with_sections(section).experiment, field) == value


@pytest.mark.parametrize(
    ("sections", "note"),
    [
        ("experiment: {default_first: false}", "default_first: false is ignored"),
        ("bbo: {reevaluate: false}", "bbo.reevaluate is ignored"),
        ("bbo: {heuristic: random_search, mutation_rate: 0.1}", "the search 'random' has no such option"),
    ],
)
def test_what_is_ignored_is_said(sections: str, note: str) -> None:
    assert note in " ".join(with_sections(sections).notes)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ("bbo:\n  heuristic: os.system", "s.yaml:2: bbo.heuristic: 'os.system' is not supported; use one of"),
        (
            "bbo:\n  heuristic: genetic_algorithm\n  mutation_rat: 0.3",
            "s.yaml:3: bbo.mutation_rat: is unknown; did you",
        ),
        (
            "bbo: {heuristic: genetic_algorithm, selection_method: os.system}",
            "bbo.selection_method: 'os.system' is not supported",
        ),
        ("bbo: {improvement_threshold: 0.05}", "bbo.improvement_threshold: also needs stop_window"),
        ("bbo: {stop_criterion: patience, stop_window: 4}", "bbo.stop_criterion: 'patience' is not supported; use one"),
        (
            "bbo: {stop_criterion: distance_movement, stop_window: 4}",
            "bbo.distance: is missing; distance_movement needs",
        ),
        ("noise_reduction: {resampling_policy: x}", "noise_reduction.resampling_policy: 'x' is unknown"),
        ("noise_reduction: {estimater: numpy.mean}", "estimater: is unknown; did you mean 'estimator'?"),
        ("noise_reduction: {estimator: os.remove}", "noise_reduction.estimator: 'os.remove' is not supported"),
        ("pruning: {max_step_duration: os.getpid}", "pruning.max_step_duration: 'os.getpid' is not supported"),
        ("pruning: {max: 3}", "pruning.max: is unknown; use max_step_duration"),
        ("pruning: 3", "pruning: 3 is invalid; expected settings by name"),
        (
            "experiment: {prune: default}\npruning: {max_step_duration: 3}",
            "experiment.prune: is also set by",
        ),
        (
            "noise_reduction:\n  resampling_policy: simple_resampling\n  nbr_resamples: 0",
            "s.yaml:2: noise_reduction.resampling_policy: ",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(sections: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        with_sections(sections)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_targets_are_looked_up_and_never_imported() -> None:
    grid = "components: {component_1: {param_1: [1, 2]}}"
    assert read(grid, custom_target="parse_osu_output.parse_osu_output").experiment.objective.measure == "osu"
    with pytest.raises(InvalidInputError, match="files cannot import functions; give") as caught:
        read(grid, custom_target="os.system")
    assert str(caught.value).count("s.yaml:1:") == 1
    assert (
        read(f"experiment: {{measure: user}}\n{grid}", custom_target="os.system").experiment.objective.measure == "user"
    )


@pytest.mark.parametrize(
    ("function", "measure"), [("parse_osu_output_1024", "osu:1024"), ("parse_slurm_times", "wall")]
)
def test_other_targets(function: str, measure: str) -> None:
    grid = "components: {component_1: {param_1: [1, 2]}}"
    assert read(grid, custom_target=f"any.{function}").experiment.objective.measure == measure


def of_shaman(script: str) -> Declared:
    return with_sections(
        f"bbo: {{heuristic: random_search}}\nexperiment: {{runner: local, script: {json.dumps(script)}}}"
    )


@pytest.mark.parametrize(
    ("script", "measure"),
    [
        ("#!/bin/bash\ntime (\nhostname\n)", "time"),
        ("cd /tmp; time hostname", "time"),
        ("  time -p hostname", "time"),
        ("hostname", "wall"),
        ("# time hostname\ntimeout 5 hostname", "wall"),
    ],
)
def test_a_script_that_times_itself_is_measured_by_that(script: str, measure: str) -> None:
    found = of_shaman(script)
    assert found.experiment.objective.measure == measure
    note = "script's own time" if measure == "time" else "command is not timed"
    assert note in " ".join(found.notes)


@pytest.mark.parametrize(
    ("header", "is_noted"), [("module load mpi", True), ("set +e; rm x", False), ("#SBB x", False)]
)
def test_what_luthier_does_about_a_header_that_fails_is_said(header: str, *, is_noted: bool) -> None:
    file = "components: {component_1: {param_1: [1, 2]}}"
    theirs = read(f"bbo: {{heuristic: random_search}}\n{file}", header=header)
    assert ("header fails" in " ".join(theirs.notes)) == is_noted
    assert read(file, header=header).notes == ()


def test_the_clock_starts_after_the_command_in_files_of_shaman_only() -> None:
    def lines(found: Declared) -> list[str]:
        job = found.experiment.command
        assert isinstance(job, JobScript)
        assert JobScript.from_json(job.to_json()) == job
        return job.batch(found.experiment.space, found.experiment.space.default).script.splitlines()

    theirs = lines(of_shaman("hostname"))
    clock = next(number for number, line in enumerate(theirs) if MARK_VARIABLE in line)
    command = next(number for number, line in enumerate(theirs) if line.startswith("prog "))
    assert command < clock < theirs.index("hostname")
    own = with_sections("experiment: {runner: local, script: hostname}")
    assert not any(MARK_VARIABLE in line for line in lines(own))
    assert own.notes == ()


def test_components_at_the_top_of_the_file() -> None:
    old = "bbo: {heuristic: random_search}\ncomponent_1:\n  param_1: {min: 1, max: 4}\n  param_2: {min: 3, max: 1}"
    with pytest.raises(InvalidInputError, match=r"s.yaml:4: component_1.param_2: low 3 is above high 1"):
        read(old)
    assert read(old.replace("max: 1", "max: 3")).experiment.space.size == 8  # param_2 has its default, 1, as well


def test_a_range_for_a_text() -> None:
    text = {"param_1": {"env_var": True, "type": "str", "default": "/home/"}}
    space = read("components: {component_1: {param_1: {min: 2, max: 8, step: 3}}}", parameters=text).experiment.space
    assert [space.parameters[0].value(index) for index in range(4)] == ["2", "5", "8", "/home/"]


# Values of SHAMan's history, worked out by hand: two initial draws and a window of three. The criterion is first asked
# after five values, so after six runs with the default. There the best of the last three (9) is no better than the best
# before (8), so the first one stops; in the second the last three improve it by a quarter until the seventh value.
@pytest.mark.parametrize(
    ("values", "stops_after"),
    [([8, 10, 9, 9, 9, 9, 9], 5), ([8, 10, 9, 9, 6, 7, 7, 6.0, 7], 8), ([1, 8, 4, 2, 1, 0.5, 0.25], 5)],
)
def test_improvement_stops_at_the_same_step(values: list[float], stops_after: int) -> None:
    found = with_sections(
        "bbo: {heuristic: random_search, initial_sample_size: 2, stop_criterion: improvement_criterion,"
        " improvement_threshold: 0.2, improvement_estimator: numpy.min, stop_window: 3}"
    ).experiment
    rule = stop_from(found.stop, TunedProblem(found.space))
    assert steps_until(rule, values, list(range(2, 2 + len(values)))) == stops_after


# The window of three holds 2, 3, 4: distances 1, 1 and 2, over three points 4 / 3. Then 3, 4, 3: one distance of 1
# between two points, 0.5.
@pytest.mark.parametrize(("distance", "stops_after"), [(1.4, 5), (1.3, 6), (0.4, None)])
def test_distances_are_in_the_units_of_the_parameters(distance: float, stops_after: int | None) -> None:
    found = with_sections(f"bbo: {{initial_sample_size: 2, distance: {distance}, stop_window: 3}}").experiment
    rule = stop_from(found.stop, TunedProblem(found.space))
    assert steps_until(rule, [1.0] * 7, [9, 1, 2, 3, 4, 3]) == stops_after


# SHAMan goes on while there are more than two different configurations in the last three.
def test_two_distinct_configurations_stop_it() -> None:
    found = with_sections("bbo: {initial_sample_size: 2, nbr_parametrizations: 2, stop_window: 3}").experiment
    rule = stop_from(found.stop, TunedProblem(found.space))
    assert steps_until(rule, [1.0] * 7, [5, 5, 5, 6, 7, 8, 7]) == 7


def steps_until(rule: Stop, values: Sequence[float], drawn: Sequence[int]) -> int | None:
    """How many values SHAMan's history has when the rule stops it; the default was measured before them."""
    trials, steps = [Trial(Config({"param_1": -1}), (Completed(0.1),), Estimate(0.1, 1))], [0]
    for value, point in zip(values, drawn, strict=False):
        steps.append(len(trials))
        known = [number for number, trial in enumerate(trials) if trial.config["param_1"] == point]
        if known:
            steps[-1] = known[0]
            trials[known[0]] = replace(trials[known[0]], outcomes=(*trials[known[0]].outcomes, Completed(value)))
        else:
            trials.append(Trial(Config({"param_1": point}), (Completed(value),), Estimate(value, 1)))
        if rule(Progress(trials, 0, [], steps, 0, 100, 0.0)) is not None:
            return len(steps) - 1
    return None
