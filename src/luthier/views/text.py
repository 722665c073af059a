"""Values, configurations and durations as short texts."""

from collections.abc import Sequence

from luthier.space import Space
from luthier.trial import Completed, Config, Estimate, Lost, Outcome, Pruned, TimedOut

_BARS = "▁▂▃▄▅▆▇█"
_SECONDS = ("wall", "user", "system", "cpu")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def value_text(value: float, measure: str) -> str:
    """A measured value with its unit, to four digits."""
    if measure in _SECONDS:
        return f"{value * 1000:.4g} ms" if abs(value) < 1 else f"{value:.4g} s"
    if measure == "memory":
        size, unit = value, _BYTES[0]
        for larger in _BYTES[1:]:
            if abs(size) < 1024:
                break
            size, unit = size / 1024, larger
        return f"{size:.4g} {unit}"
    return f"{value:.5g}"


def estimate_text(estimate: Estimate | None, measure: str) -> str:
    """An estimate with its interval where it has one."""
    if estimate is None:
        return "no value"
    text = value_text(estimate.value, measure)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return text
    return f"{text} ({value_text(estimate.low, measure)} to {value_text(estimate.high, measure)})"


def outcome_text(outcome: Outcome | None, measure: str) -> str:
    """How a run ended, in a few words."""
    match outcome:
        case None:
            return "running"
        case Completed(value):
            return value_text(value, measure)
        case TimedOut(reason):
            return f"timed out: {reason}"
        case Pruned(reason):
            return f"pruned: {reason}"
        case Lost(reason):
            return f"lost: {reason}"
        case _:
            return f"failed: {outcome.reason}"


def config_text(config: Config, space: Space) -> str:
    """`threads=8 block=64k`, values written as the command gets them."""
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


def sparkline(values: Sequence[float]) -> str:
    """The values as little bars, low to high."""
    if not values:
        return ""
    low, span = min(values), (max(values) - min(values)) or 1.0
    return "".join(_BARS[min(int((value - low) / span * len(_BARS)), len(_BARS) - 1)] for value in values)
