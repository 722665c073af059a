"""SHAMan's experiment files: the sections `bbo`, `noise_reduction` and `pruning` as settings of luthier.

SHAMan imports any dotted name in a file. Here the last part of such a name is only looked up in a table.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from luthier.spec.yaml_lines import Document, Place
from luthier.texts import closest, shown
from luthier.trial import Json

SECTIONS = ("api", "bbo", "noise_reduction", "pruning")
"""The sections that only files of SHAMan have."""

_TIMES = ("parse_execution_time", "parse_slurm_times")
_OSU = re.compile(r"parse_osu_output(?:_([0-9]{1,18}))?")
_OWN_TIME = re.compile(r"^(?:[^#\n]*[;&|({])?[ \t]*time(?=[ \t({])", re.MULTILINE)
"""A line of a script that calls `time`."""


def measure_of(target: str, application: str) -> str | None:
    """The measure for a function that `custom_target` names, "" for SHAMan's default; None if it is unknown.

    A script that calls `time` itself is measured by what that prints; SHAMan puts `time` around any other script.
    """
    function = target.rpartition(".")[2]
    if not function or function in _TIMES:
        return "time" if _OWN_TIME.search(application) else "wall"
    match = _OSU.fullmatch(function)
    return match and (f"osu:{match[1]}" if match[1] else "osu")


def is_of_shaman(document: Document) -> bool:
    """Whether a file has a section that only files of SHAMan have."""
    return any(name in document.values for name in SECTIONS)


_SEARCHES: Mapping[str, str] = {
    "genetic_algorithm": "genetic",
    "simulated_annealing": "annealing",
    "surrogate_model": "gp",
    "exhaustive_search": "exhaustive",
    "random_search": "random",
}
_NAMES: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "selection_method": ("selection", {"tournament_pick": "tournament", "probabilistic_pick": "roulette"}),
    "crossover_method": (
        "crossover",
        {"single_point_crossover": "one-point", "double_point_crossover": "two-point"},
    ),
    "cooldown_function": (
        "schedule",
        {
            "exponential_schedule": "exponential",
            "logarithmic_schedule": "logarithmic",
            "multiplicative_schedule": "linear",
        },
    ),
    "cooling_schedule": (
        "schedule",
        {"exponential": "exponential", "logarithmic": "logarithmic", "multiplicative": "linear"},
    ),
    "restart": (
        "restart",
        {
            "random_restart": "random",
            "threshold_restart": "threshold",
            "random": "random",
            "threshold": "threshold",
            "False": "none",
        },
    ),
    "next_parameter_strategy": (
        "acquisition",
        {"expected_improvement": "ei", "maximum_probability_improvement": "pi", "lower_confidence_bound": "lcb"},
    ),
    "initial_draw_method": (
        "design",
        {
            "uniform_random": "random",
            "latin_hypercube_sampling": "latin-hypercube",
            "hybrid_lhs_uniform_sampling": "latin-hypercube",
        },
    ),
}
"""Options whose value is a name: the option of luthier, and its value for each value of SHAMan."""

_NUMBERS: Mapping[str, str] = {
    "mutation_rate": "mutation",
    "pool_size": "tournament",
    "initial_temperature": "temperature",
    "cooling_factor": "cooling",
    "max_restart": "restarts",
    "bernouilli_parameter": "restart_at",
    "probability_threshold": "restart_at",
}
"""Options that only have another name in luthier."""

_MODELS: Mapping[str, str] = {
    "GaussianProcessRegressor": "gp",
    "RandomForestRegressor": "forest",
    "ExtraTreesRegressor": "forest",
}
_ESTIMATORS: Mapping[str, str] = {"mean": "mean", "median": "median", "min": "minimum", "amin": "minimum"}
_LEVELS: Mapping[str, str] = {"min": "best", "amin": "best", "mean": "mean", "median": "median"}

_ONLY_WAY: Mapping[str, str] = {
    "mutation_method": "a mutation moves to a neighbour",
    "neighbor_function": "a step goes to a neighbour",
    "max_repeat": "offspring are created until one is new",
    "reevaluate": "the resampling decides when a configuration runs again",
    "max_retry": "the resampling decides when a configuration runs again",
    "async_optim": "runs never wait for each other",
    "fitness_aggregation": "repeats are always combined by the estimator",
    "max_resamples": "the budget limits the repeats",
}
"""Options without an equivalent in luthier, and why."""

_OPTIONS_OF: Mapping[str, frozenset[str]] = {
    "genetic": frozenset({"selection", "crossover", "tournament", "mutation"}),
    "annealing": frozenset({"schedule", "restart", "temperature", "cooling", "restarts", "restart_at"}),
    "gp": frozenset({"acquisition", "design"}),
    "forest": frozenset({"acquisition", "design"}),
}
_SMALLEST_POPULATION = 10


@dataclass(slots=True)
class Translation:
    """Settings of luthier, the place in the file that each comes from, and notes about what is ignored."""

    settings: dict[str, Json] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def set(self, name: str, value: Json, place: Place) -> None:
        """Add a setting."""
        self.settings[name] = value
        self.places[name] = place


def with_components(document: Document) -> Document:
    """The document in the present layout: the first files of SHAMan have the components at the top."""
    if "bbo" not in document.values or "components" in document.values:
        return document
    known = (*SECTIONS, "experiment", "definitions")
    for name, grids in document.values.items():
        if name not in known and isinstance(grids, dict):
            document = document.moved((name,), ("components", name))
    return document


def translated(document: Document) -> Translation:
    """The settings in the SHAMan sections of an experiment file."""
    result = Translation()
    _search(document, result)
    _noise(document, result)
    _pruning(document, result)
    return result


def _items(document: Document, section: str) -> Iterator[tuple[str, Place, Json]]:
    values = document.values.get(section)
    if values is None:
        return
    if not isinstance(values, dict):
        raise document.error((section,), f"{shown(values)} is invalid; expected settings by name")
    for name, value in values.items():
        yield name, (section, name), value


def _last_part(value: Json) -> str:
    """The function at the end of a dotted name; a long name may be split into two lines after a dot."""
    return str(value).replace(" ", "").rpartition(".")[2]


def _looked_up(document: Document, place: Place, value: Json, table: Mapping[str, Json]) -> Json:
    name = _last_part(value)
    if name not in table:
        raise document.error(place, f"{shown(value)} is not supported; use one of {', '.join(table)}")
    return table[name]


def _search(document: Document, result: Translation) -> None:
    values = {name: value for name, _, value in _items(document, "bbo")}
    search = _looked_up(document, ("bbo", "heuristic"), values.get("heuristic", "surrogate_model"), _SEARCHES)
    if "regression_model" in values and search == "gp":
        search = _looked_up(document, ("bbo", "regression_model"), values["regression_model"], _MODELS)
    if "heuristic" in values:
        result.set("optimizer", search, ("bbo", "heuristic"))
    options: dict[str, Json] = {}
    for name, place, value in _items(document, "bbo"):
        if name in _NAMES:
            option, table = _NAMES[name]
            _option(result, options, str(search), name, option, _looked_up(document, place, value, table))
        elif name in _NUMBERS:
            _option(result, options, str(search), name, _NUMBERS[name], value)
        else:
            _other(document, result, options, str(search), place, value)
    if options:
        result.set("options", options, ("bbo",))
    _stopping(document, result, values)


def _option(result: Translation, options: dict[str, Json], search: str, name: str, option: str, value: Json) -> None:
    if option in _OPTIONS_OF.get(search, ()):
        options[option] = value
    else:
        result.notes.append(f"bbo.{name} is ignored: the search {search!r} has no such option")


def _other(
    document: Document, result: Translation, options: dict[str, Json], search: str, place: Place, value: Json
) -> None:
    name = str(place[-1])
    if name == "initial_sample_size":
        _first_draws(result, options, search, value)
    elif name == "elitism" and search == "genetic":
        if value is False:
            options["elite"] = 0
    elif name == "time_out":
        result.set("time_limit", value, place)
    elif name == "max_iteration":
        result.set("budget", value, place)
    elif name in _ONLY_WAY:
        if name not in ("mutation_method", "neighbor_function"):
            result.notes.append(f"bbo.{name} is ignored: {_ONLY_WAY[name]}")
    elif name not in ("heuristic", "regression_model", *_STOPS):
        known = [*_NAMES, *_NUMBERS, *_ONLY_WAY, *_STOPS, "heuristic", "regression_model", "initial_sample_size"]
        near = closest(name, known)
        raise document.error(place, "is unknown" + (f"; did you mean {near!r}?" if near else "; remove it"))


def _first_draws(result: Translation, options: dict[str, Json], search: str, value: Json) -> None:
    if search != "genetic":
        if search in _OPTIONS_OF:
            options["initial"] = value
        return
    if isinstance(value, int) and value >= _SMALLEST_POPULATION:
        options["population"] = value
    else:
        why = f"the genetic search needs a population of at least {_SMALLEST_POPULATION}"
        result.notes.append(f"bbo.initial_sample_size: {value} is ignored: {why}")


_CRITERIA: Mapping[str, str] = {
    "improvement_criterion": "improvement_threshold",
    "count_movement": "nbr_parametrizations",
    "distance_movement": "distance",
}
"""SHAMan's stop criteria, each with the number that it needs."""
_INITIAL = 10  # draws that SHAMan makes if the file does not say how many
_STOPS = (
    "stop_criterion",
    "improvement_threshold",
    "improvement_estimator",
    "stop_window",
    "nbr_parametrizations",
    "distance",
)


def _stopping(document: Document, result: Translation, values: Mapping[str, Json]) -> None:
    """The stop criterion; SHAMan asks it when its initial draws and one window of other runs are over."""
    given = [name for name in _STOPS if name in values]
    if not given:
        return
    place: Place = ("bbo", given[0])
    window = values.get("stop_window")
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise document.error(place, "also needs stop_window, a whole number above 0")
    initial = values.get("initial_sample_size", _INITIAL)
    first = 1 + window + (initial if isinstance(initial, int) else _INITIAL)  # 1 for the default
    result.set("stop", [f"{_criterion(document, values, window)}after {first} runs"], place)


def _criterion(document: Document, values: Mapping[str, Json], window: int) -> str:
    """The criterion and the word `and`; nothing if it always holds."""
    name = values.get("stop_criterion")
    if name is None:
        name = next((one for one in ("count_movement", "distance_movement") if _CRITERIA[one] in values), None)
    name = name or "improvement_criterion"
    if name not in _CRITERIA:
        raise document.error(
            ("bbo", "stop_criterion"), f"{shown(name)} is not supported; use one of {', '.join(_CRITERIA)}"
        )
    needed = _CRITERIA[str(name)]
    limit = values.get(needed)
    if limit is None:
        raise document.error(("bbo", needed), f"is missing; {name} needs this number")
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise document.error(("bbo", needed), f"{shown(limit)} is not a number")
    if name == "distance_movement":
        return f"units apart <= {limit} over {window} and "
    if name == "count_movement":
        return f"distinct < {int(limit) + 1} over {window} and " if limit < window else ""
    level = _looked_up(
        document, ("bbo", "improvement_estimator"), values.get("improvement_estimator", "numpy.min"), _LEVELS
    )
    return f"{level} improvement < {100 * limit:g}% over {window} runs and "


def _noise(document: Document, result: Translation) -> None:
    values = {name: value for name, _, value in _items(document, "noise_reduction")}
    for name, place, value in _items(document, "noise_reduction"):
        if name == "resampling_policy":
            result.set("resample", _resampling(document, place, value, values), place)
        elif name == "estimator":
            result.set("estimator", _looked_up(document, place, value, _ESTIMATORS), place)
        elif name not in (*_RESAMPLING, *_ONLY_WAY):
            near = closest(name, ["resampling_policy", "estimator", *_RESAMPLING])
            raise document.error(place, "is unknown" + (f"; did you mean {near!r}?" if near else "; remove it"))


_RESAMPLING = (
    "nbr_resamples",
    "percentage",
    "resampling_schedule",
    "allow_resampling_schedule",
    "allow_resampling_start",
)


def _resampling(document: Document, place: Place, value: Json, values: Mapping[str, Json]) -> str:
    if value == "simple_resampling":
        return f"static:{values.get('nbr_resamples', 1)}"
    if not str(value).startswith("dynamic_resampling"):
        raise document.error(place, f"{shown(value)} is unknown; use simple_resampling or dynamic_resampling")
    if "allow_resampling_schedule" in values:
        return "evadyr"
    percentage = values.get("percentage", 0.1)
    if isinstance(percentage, bool) or not isinstance(percentage, int | float):
        raise document.error(("noise_reduction", "percentage"), f"{shown(percentage)} is not a number")
    return f"sedr:{100 * percentage:g}%"


def _pruning(document: Document, result: Translation) -> None:
    for name, place, value in _items(document, "pruning"):
        if name != "max_step_duration":
            raise document.error(place, "is unknown; use max_step_duration")
        names = {"default": "default", "median": "median", "mean": "mean"}
        limit = _looked_up(document, place, value, names) if isinstance(value, str) else value
        result.set("prune", limit, place)
