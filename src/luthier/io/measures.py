"""Measures of the I/O of a run: `io:perf`, `io:write_bandwidth`, `io:posix_writes` and so on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.io.counts import LAYERS, NUMBERS, Counts, ProcessCounts, layer_total, read_run, used_layer
from luthier.measures.base import About, MeasureKind
from luthier.plugins import instead
from luthier.trial import Completed, Execution, Failed, Outcome

PREFIX = "io:"


def time_s(processes: Sequence[ProcessCounts]) -> float:
    """Seconds in I/O of the process that spent most, in the highest layer that the run used."""
    return _slowest(processes, lambda counts: counts.time_s)


def write_bandwidth(processes: Sequence[ProcessCounts]) -> float | None:
    """Bytes written per second; None if nothing was written, or in no measurable time."""
    written = layer_total(processes, used_layer(processes)).write_bytes
    return _rate(written, _slowest(processes, lambda one: one.write_s + one.written_share * one.other_s))


def read_bandwidth(processes: Sequence[ProcessCounts]) -> float | None:
    """Bytes read per second; None if nothing was read, or in no measurable time."""
    read = layer_total(processes, used_layer(processes)).read_bytes
    return _rate(read, _slowest(processes, lambda one: one.read_s + (1.0 - one.written_share) * one.other_s))


def perf(processes: Sequence[ProcessCounts]) -> float | None:
    """`(1 - a) BW_r + a BW_w` with `a` the share of the bytes that was written (Rajesh et al., TunIO)."""
    share = layer_total(processes, used_layer(processes)).written_share
    reading = read_bandwidth(processes) if share < 1.0 else 0.0
    writing = write_bandwidth(processes) if share > 0.0 else 0.0
    return None if reading is None or writing is None else (1.0 - share) * reading + share * writing


def _slowest(processes: Sequence[ProcessCounts], seconds: Callable[[Counts], float]) -> float:
    """The time of the slowest process, which the others wait for; sums over processes would count it several times."""
    layer = used_layer(processes)
    return max((seconds(process.layer(layer)) for process in processes), default=0.0)


def _rate(size_bytes: int, seconds: float) -> float | None:
    return size_bytes / seconds if size_bytes and seconds > 0 else None


_DERIVED: Mapping[str, Callable[[Sequence[ProcessCounts]], float | None]] = {
    "perf": perf,
    "write_bandwidth": write_bandwidth,
    "read_bandwidth": read_bandwidth,
    "time": time_s,
}
NAMES = (*_DERIVED, *(f"{layer}_{name}" for layer in reversed(LAYERS) for name in NUMBERS))
"""Everything that can follow `io:`."""
RATES = tuple(f"{PREFIX}{name}" for name in ("perf", "write_bandwidth", "read_bandwidth"))
"""The measures in bytes per second, of which more is better."""


@dataclass(frozen=True, slots=True)
class IoMeasure:
    """A number of what all processes of a run counted; luthier starts runs that it measures with the counters."""

    name: str

    @classmethod
    def named(cls, text: str) -> "IoMeasure":
        """The measure that follows `io:`."""
        if text not in NAMES:
            raise InvalidInputError(f"measure: unknown {PREFIX}{text[:60]}; {instead(text, list(NAMES))}")
        return cls(text)

    def __call__(self, execution: Execution) -> Outcome:
        """Return the number, or the reason why it is missing."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed(f"{PREFIX}{self.name} needs a command whose I/O was counted, and this run has none")
        try:
            processes = read_run(Path(execution.logs))
        except (OSError, ValueError) as error:
            return Failed(f"the I/O counters of this run are damaged: {error}")
        if not processes:
            return Failed(
                "no process left I/O counters; statically linked programs and runs on Dask workers are not counted"
            )
        value = self._value(processes)
        if value is None:
            done = {"write_bandwidth": "wrote", "read_bandwidth": "read"}.get(self.name, "read or wrote")
            return Failed(f"{PREFIX}{self.name}: the run {done} nothing, or in no measurable time")
        return Completed(float(value))

    def _value(self, processes: Sequence[ProcessCounts]) -> float | None:
        if self.name in _DERIVED:
            return _DERIVED[self.name](processes)
        layer, _, counter = self.name.partition("_")
        return float(getattr(layer_total(processes, layer), counter))


def _about(name: str) -> About:
    """What is known about `io:NAME`."""
    counted = ("io",)
    if f"{PREFIX}{name}" in RATES:
        return About(goal="maximize", unit="B/s", instruments=counted)
    if name == "time":
        return About(unit="s", quantity="part", instruments=counted)
    if name.endswith("_s"):
        return About(unit="s", instruments=counted)
    return About(unit="B" if name.endswith("_bytes") else "", quantity="amount", instruments=counted)


KIND = MeasureKind(IoMeasure.named, "NAME", _about)
