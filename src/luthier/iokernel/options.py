"""What the user can choose, and the limits."""

from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.texts import shown

FAMILIES = ("hdf5", "mpi-io", "posix")


@dataclass(frozen=True, slots=True)
class Options:
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
    largest_file: int = 5_000_000
    """Bytes of a source."""
    most_statements: int = 200_000

    def __post_init__(self) -> None:
        _check("buffer_content", self.buffer_content, ("keep", "cut"))
        _check("failures", self.failures, ("keep", "drop"))
        for name in self.families:
            _check("families", name, FAMILIES)


def _check(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"{what}: {shown(value)} is invalid; choose from {', '.join(allowed)}")
