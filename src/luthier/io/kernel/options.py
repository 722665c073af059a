"""What the user can choose, and the limits."""

from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.texts import shown

FAMILIES = ("hdf5", "mpi-io", "posix")


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Choices of I/O discovery."""

    buffer_content: str = "keep"
    """keep, or cut: what is written to files is not computed."""
    families: tuple[str, ...] = FAMILIES
    """Which calls count as I/O."""
    io_calls: tuple[str, ...] = ()
    """Patterns of further functions that do I/O, such as `nc_*`."""
    compute_calls: tuple[str, ...] = ()
    """Patterns of functions outside the sources that do no I/O, such as `fftw_*`."""
    failures: str = "keep"
    """keep, or drop: calls that end the program with a failure are not kept for their own sake."""
    reduce: float = 1.0
    """The share of the executions of I/O that loops do; below 1 the loops with I/O are found and marked."""
    largest_file: int = 5_000_000
    """Bytes of a source."""
    most_statements: int = 200_000

    def __post_init__(self) -> None:
        _check("buffer_content", self.buffer_content, ("keep", "cut"))
        _check("failures", self.failures, ("keep", "drop"))
        if not 0 < self.reduce <= 1:
            raise InvalidInputError(f"reduce: {self.reduce:g} is invalid; choose a share above 0 and up to 1 (100%)")
        for name in self.families:
            _check("families", name, FAMILIES)


def share_from(text: str, option: str) -> float:
    """A share such as 10% or 0.1."""
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidInputError(f"{option} {shown(text)}: is not a share; write for example 10%")
    return share


def _check(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"{what}: {shown(value)} is invalid; choose from {', '.join(allowed)}")
