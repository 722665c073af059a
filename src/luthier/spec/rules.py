"""The short notation of the rules that steer an experiment: resampling, pruning, stopping."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TypeAlias, TypeVar, cast

from luthier.errors import InvalidInputError
from luthier.plugins import Registry, instead
from luthier.policies import AUTO_PICKER, PRUNES, RESAMPLES, STOPS, SUBSET_PICKERS, stop
from luthier.policies.base import Prune, Resample, Stop, SubsetPicker
from luthier.policies.learned import USUAL_PRODUCTION_RUNS, LearnedStop
from luthier.policies.prune import BeyondSeconds, Never, beyond_quantile
from luthier.policies.resample import Sedr, Static
from luthier.space import Space
from luthier.spec.durations import parse_duration
from luthier.texts import NUMBER, check_length, shown
from luthier.trial import Json

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_CONSTANT = re.compile(rf"(\w+) ?= ?({NUMBER}) ?(%?)")

Rule = TypeVar("Rule")


def resample_from(text: str) -> Resample:
    """Read `auto`, `once`, `static:3`, `sedr:10%` (of the mean), `sedr:0.5` (in the measure's unit) or `evadyr`.

    The constants of a rule can be named: `evadyr:least=3,most=20%`. A plug-in is written in the same way.
    """
    check_length(text, "resample")
    rule = _counted(text) if text.startswith(("static:", "sedr:")) else _named("resample", RESAMPLES, text)
    if rule is None:
        known = f"{', '.join(RESAMPLES.names())}, static:RUNS, sedr:PERCENT% or sedr:WIDTH"
        raise InvalidInputError(f"resample: {shown(text)} is not understood; write {known}")
    return rule


def _counted(text: str) -> Resample | None:
    """Read `static:3`, `sedr:10%` or `sedr:0.5`."""
    name, _, number = text.partition(":")
    relative = number.endswith("%")
    try:
        if name == "static":
            return Static(int(number))
        return Sedr(float(number.removesuffix("%")) / (100.0 if relative else 1.0), relative=relative)
    except ValueError:
        return None


def prune_from(what: str | float | None) -> Prune:
    """Read `default`, `median`, `mean`, `q75`, `chance`, or a number of seconds; None prunes nothing.

    The constants of a rule can be named: `default:factor=1.5`, `chance:least=1%`. A plug-in is written in the same way.
    """
    if what is None:
        return Never()
    if not isinstance(what, str):
        return BeyondSeconds(float(what))
    check_length(what, "prune")
    if re.fullmatch(r"q[0-9]{1,2}", what) and int(what[1:]):
        return beyond_quantile(int(what[1:]) / 100.0)
    rule = _named("prune", PRUNES, what)
    if rule is None:
        known = f"{', '.join(PRUNES.names())}, a quantile such as q75, or a time such as 90s"
        raise InvalidInputError(f"prune: {shown(what)} is not understood; write {known}")
    return rule


def is_learned(impact_first: str) -> bool:
    """Whether the picker has weights, which are stored with the experiment."""
    return (AUTO_PICKER if impact_first == "auto" else impact_first) == "learned"


def picker_from(text: str, weights: Mapping[str, Json] | None = None) -> SubsetPicker | None:
    """Read `off`, `auto` or the name of a subset picker, with constants if it has any: `statistical:enough=80%`.

    `weights` are those of the learned one; by default, it uses the weights that come with the package.
    """
    check_length(text, "impact_first")
    if text == "off":
        return None
    if weights is not None and is_learned(text):
        from luthier.policies.learned_subset import picker_with

        return picker_with(weights)
    picker = _named("impact_first", SUBSET_PICKERS, AUTO_PICKER if text == "auto" else text)
    if picker is None:
        known = ["off", "auto", *SUBSET_PICKERS.names()]
        raise InvalidInputError(f"impact_first: {shown(text)} is unknown; {instead(text, known)}")
    return picker


def _named(what: str, rules: Registry[Callable[..., Rule]], text: str) -> Rule | None:
    """Read the name of a rule, alone or with constants: `evadyr`, `evadyr:least=3`; None if there is no such rule."""
    name, colon, constants = text.partition(":")
    if not _NAME.fullmatch(name) or name not in rules:
        return None
    make, where = rules.get(name), f"{what}: {shown(text)}"
    known = signature(make).parameters
    if colon and not known:
        return None
    found = _constants(where, constants, {name: one.annotation for name, one in known.items()}) if colon else {}
    if missing := [name for name, one in known.items() if one.default is Parameter.empty and name not in found]:
        raise InvalidInputError(f"{where}: {missing[0]} is missing; write {name}:{missing[0]}=NUMBER")
    return make(**found)


def _constants(where: str, text: str, known: Mapping[str, object]) -> dict[str, float]:
    """Read `least=3,most=20%`: numbers by name; `known` has the type of each."""
    found: dict[str, float] = {}
    for part in text.split(","):
        match = _CONSTANT.fullmatch(_one_blank(part))
        if match is None or match[1] not in known:
            told = ", ".join(f"{name}=NUMBER" for name in known)
            raise InvalidInputError(
                f"{where}: {shown(part.strip())} is not understood; write {told}, separated by commas"
            )
        value, is_whole = float(match[2]) / (100.0 if match[3] else 1.0), known[match[1]] in (int, "int")
        if is_whole and not value.is_integer():
            raise InvalidInputError(f"{where}: {match[1]} must be a whole number")
        found[match[1]] = int(value) if is_whole else value
    return found


@dataclass(frozen=True, slots=True)
class TunedProblem:
    """What criteria need to know of the experiment: its space, its goal, and how often the program is going to run.

    `saves_seconds` tells whether a lower value makes a run shorter by the same number of seconds.
    """

    space: Space
    maximize: bool = False
    production_runs: int | None = None
    saves_seconds: bool = False


def stop_from(texts: Sequence[str], tuned: TunedProblem) -> Stop:
    """The rule that ends a search as soon as one of `texts` holds; in each of them ` and ` joins what must all hold.

    A plug-in is written as its name, with constants if it has any: `NAME:limit=3,share=5%`.
    """
    return stop.any_of(*(_all_from(text, tuned) for text in texts))


def compares_times(text: str) -> bool:
    """Whether a criterion takes the measured values for times."""
    return re.search(r"\bgain\b", text, re.IGNORECASE) is not None


def needs_relation_to_time(text: str) -> bool:
    """Whether a criterion takes the time of a run to be in proportion to its value, or in inverse proportion."""
    return re.search(r"\blearned\b", text, re.IGNORECASE) is not None


def _all_from(text: str, tuned: TunedProblem) -> Stop:
    check_length(text, "stop")
    parts = [_criterion(part, tuned) for part in _one_blank(text).split(" and ")]
    return parts[0] if len(parts) == 1 else stop.all_of(*parts)


def _criterion(text: str, tuned: TunedProblem) -> Stop:
    for form, (pattern, make) in _CRITERIA.items():
        match = re.fullmatch(pattern.replace(" ", " ?"), text, re.IGNORECASE)
        if match is not None:
            try:
                return make(match, tuned)
            except InvalidInputError as error:
                raise InvalidInputError(f"stop: {shown(text)}: {error}; it is read as: {form}") from None
    rule = _named("stop", STOPS, text)
    if rule is None:
        known = "; ".join([*_CRITERIA, *STOPS.names()])
        raise InvalidInputError(f"stop: {shown(text)} is not understood; write one of: {known}")
    return rule


def _one_blank(text: str) -> str:
    """The text with single blanks only, so that patterns stay simple."""
    return " ".join(text.split())


def _target(match: re.Match[str], tuned: TunedProblem) -> Stop:
    return stop.AtTarget(-float(match[1]) if tuned.maximize else float(match[1]))


def _share_of_default(match: re.Match[str], tuned: TunedProblem) -> Stop:
    share = float(match[1]) / 100.0
    if (share <= 1.0) if tuned.maximize else (share >= 1.0):
        better = "more" if tuned.maximize else "less"
        raise InvalidInputError(f"{match[1]} % of the default is not better than the default; give {better} than 100")
    return stop.AtShareOfDefault(share)


def _improvement(match: re.Match[str], _: TunedProblem) -> Stop:
    level = cast("stop.Level", (match[1] or "best").lower())
    rule = stop.NoImprovementOfRuns if match[4] else stop.NoImprovement
    return rule(int(match[3]), float(match[2]) / 100.0, level)


def _learned(match: re.Match[str], tuned: TunedProblem) -> Stop:
    runs = int(match[1]) if match[1] else tuned.production_runs or USUAL_PRODUCTION_RUNS
    return LearnedStop(runs, saves_seconds=tuned.saves_seconds)


_Make: TypeAlias = Callable[[re.Match[str], TunedProblem], Stop]
"""Takes what was matched, and what is known of the experiment."""

_CRITERIA: Mapping[str, tuple[str, _Make]] = {
    "target VALUE": (rf"target ({NUMBER})", _target),
    "target PERCENT% of default": (rf"target ({NUMBER}) % of default", _share_of_default),
    "no improvement over COUNT": (
        r"no improvement over ([0-9]+)",
        lambda match, _: stop.NoImprovement(int(match[1])),
    ),
    "[best|mean|median] improvement < PERCENT% over COUNT [runs]": (
        rf"(?:(best|mean|median) )?improvement < ({NUMBER}) % over ([0-9]+)( runs)?",
        _improvement,
    ),
    "distinct < COUNT over RUNS": (
        r"distinct < ([0-9]+) over ([0-9]+)",
        lambda match, _: stop.FewDistinct(int(match[1]), int(match[2])),
    ),
    "distance < NUMBER over RUNS": (
        rf"distance < ({NUMBER}) over ([0-9]+)",
        lambda match, tuned: stop.CloseTogether(tuned.space, float(match[1]), int(match[2])),
    ),
    "units apart <= NUMBER over RUNS": (
        rf"units apart <= ({NUMBER}) over ([0-9]+)",
        lambda match, tuned: stop.CloseInUnits(tuned.space, float(match[1]), int(match[2])),
    ),
    "gain < cost for RUNS runs": (
        r"gain < cost for ([0-9]+) runs",
        lambda match, _: stop.NotWorthIt(int(match[1])),
    ),
    "learned [for RUNS runs]": (r"learned(?: for ([0-9]+) runs)?", _learned),
    "after RUNS runs": (r"after ([0-9]+) runs", lambda match, _: stop.AfterRuns(int(match[1]))),
    "after TIME": (r"after (.+)", lambda match, _: stop.AfterSeconds(parse_duration(match[1]))),
}
"""Every criterion: how it is written, what it looks like (a blank may be left out), what it makes."""
