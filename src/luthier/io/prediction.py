"""Compares what a reduced I/O kernel predicts for its application with what the application did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from luthier.io.counts import LAYER_NAMES, LAYERS, Counts, ProcessCounts, total
from luthier.io.kernel_comparison import own_files

_LOWER_OPERATIONS = 0.05  # below the highest layer, which also write metadata


@dataclass(frozen=True, slots=True)
class PredictedCounter:
    """A counter of the application, and what the reduced kernel predicts; errors are relative to `size`."""

    layer: str
    name: str
    actual: int
    predicted: int
    size: int
    tolerance: float

    @property
    def error(self) -> float:
        """How far the prediction is off, relative to the actual number."""
        return (self.predicted - self.actual) / self.size if self.size else float(self.predicted != self.actual)

    @property
    def is_good(self) -> bool:
        """Whether it is within the tolerance."""
        return abs(self.error) <= self.tolerance

    @property
    def text(self) -> str:
        """The prediction in one line."""
        return f"{LAYER_NAMES[self.layer]} {self.name}: {self.predicted} predicted, {self.actual} in the application"


def predictions(
    application: Sequence[ProcessCounts], kernel: Sequence[ProcessCounts], tolerance: float
) -> tuple[PredictedCounter, ...]:
    """Operations and bytes of each layer that the application uses, the highest layer first."""
    return tuple(_all(application, kernel, tolerance))


def _all(
    application: Sequence[ProcessCounts], kernel: Sequence[ProcessCounts], tolerance: float
) -> Iterator[PredictedCounter]:
    is_highest = True
    for layer in LAYERS:
        actual, predicted = _of_layer(application, layer), _of_layer(kernel, layer)
        if not actual.bytes and not predicted.bytes:
            continue
        for name, one, other in (
            ("bytes read", actual.read_bytes, predicted.read_bytes),
            ("bytes written", actual.write_bytes, predicted.write_bytes),
        ):
            # a few bytes of metadata beside much data need not be exact
            size = one if one > tolerance * actual.bytes else actual.bytes
            yield PredictedCounter(layer, name, one, other, size, tolerance)
        limit = tolerance if is_highest else max(tolerance, _LOWER_OPERATIONS)
        yield PredictedCounter(layer, "operations", actual.operations, predicted.operations, actual.operations, limit)
        is_highest = False


def _of_layer(processes: Sequence[ProcessCounts], layer: str) -> Counts:
    return total(file.counts for process in processes for file in own_files(process) if file.layer == layer)
