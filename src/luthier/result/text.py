"""Values, configurations and durations as short texts."""

from collections.abc import Sequence

from luthier.measures.base import about
from luthier.space import Space
from luthier.spec.experiment import Experiment
from luthier.trial import Completed, Config, Estimate, Outcome, Trial, outcome_name

_BARS = "▁▂▃▄▅▆▇█"
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def value_text(value: float, measure: str) -> str:
    """A measured value with its unit, to four digits."""
    match about(measure).unit:
        case "s":
            return seconds_text(value)
        case "B/s":
            return f"{bytes_text(value)}/s"
        case "B":
            return bytes_text(value)
        case _:
            return f"{value:.5g}"


def share_text(share: float) -> str:
    """A share in per cent, to two digits but without an exponent: `3.5 %`, `134 %`."""
    percent = 100.0 * share
    return f"{percent:.0f} %" if abs(percent) >= 99.5 else f"{percent:.2g} %"


def seconds_text(seconds: float) -> str:
    """`12.5 ms`, `3.25 s`."""
    return f"{seconds * 1000:.4g} ms" if abs(seconds) < 1 else f"{seconds:.4g} s"


def bytes_text(size_bytes: float) -> str:
    """`512 B`, `1.5 MiB`."""
    size, unit = size_bytes, _BYTES[0]
    for larger in _BYTES[1:]:
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def estimate_text(estimate: Estimate | None, measure: str) -> str:
    """An estimate with its interval where it has one."""
    if estimate is None:
        return "no value"
    text = value_text(estimate.value, measure)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return text
    return f"{text} ({value_text(estimate.low, measure)} to {value_text(estimate.high, measure)})"


def measure_names(experiment: Experiment) -> list[str]:
    """A short heading for each objective, all different: `regex`, or `regex:a (.)` beside `regex:b (.)`; `io:perf`."""
    whole = [objective.measure for objective in experiment.objectives]
    short = [measure if measure.startswith("io:") else measure.partition(":")[0] for measure in whole]
    names = short if len(set(short)) == len(short) else whole
    return names if len(set(names)) == len(names) else [f"{name} {i}" for i, name in enumerate(names, start=1)]


def estimates_text(trial: Trial, experiment: Experiment) -> list[str]:
    """The estimates of all objectives, or the outcome of the last run."""
    if trial.estimate is None:
        last = trial.outcomes[-1] if trial.outcomes else None
        return [outcome_text(last, experiment.objective.measure), *("" for _ in experiment.objectives[1:])]
    guesses = zip((trial.estimate, *trial.others), experiment.objectives, strict=True)
    return [estimate_text(guess, objective.measure) for guess, objective in guesses]


def outcome_text(outcome: Outcome | None, *measures: str) -> str:
    """The values of a completed run for each of `measures`, or the name and reason of another outcome."""
    match outcome:
        case None:
            return "running"
        case Completed(value, others):
            values = zip((value, *others), measures, strict=False)
            return ", ".join(value_text(number, measure) for number, measure in values)
        case _:
            return f"{outcome_name(outcome)}: {outcome.reason}"


def config_text(config: Config, space: Space) -> str:
    """`threads=8 block=64k`, with the values as the command gets them."""
    return " ".join(f"{parameter.name}={parameter.format(config[parameter.name])}" for parameter in space.parameters)


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def sentence_text(text: str) -> str:
    """A remark as a sentence: with a capital at the beginning and a full stop at the end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def sparkline(values: Sequence[float]) -> str:
    """The values as a row of small bars."""
    if not values:
        return ""
    low, span = min(values), (max(values) - min(values)) or 1.0
    return "".join(_BARS[min(int((value - low) / span * len(_BARS)), len(_BARS) - 1)] for value in values)
