"""When a run under way is not worth finishing."""

from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress


@dataclass(frozen=True, slots=True)
class Never:
    """Let every run finish."""

    def __call__(self, elapsed_s: float, progress: Progress) -> str | None:  # noqa: ARG002 - the protocol's arguments
        """Return None: let it go on."""
        return None


@dataclass(frozen=True, slots=True)
class BeyondSeconds:
    """Stop a run that takes longer than a fixed time."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds > 0.0:
            raise InvalidInputError(f"beyond_seconds: {self.seconds} is not above 0; give a number of seconds")

    def __call__(self, elapsed_s: float, progress: Progress) -> str | None:  # noqa: ARG002 - the protocol's arguments
        """Return the reason to stop the run, or None to let it go on."""
        return f"longer than {self.seconds:g} s" if elapsed_s > self.seconds else None


@dataclass(frozen=True, slots=True)
class BeyondDefault:
    """Stop a run that takes longer than `factor` times the estimate of the default configuration.

    It compares seconds with the measured value, so it makes sense only where what is measured is the elapsed time.
    While the default has no estimate, every run finishes.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.factor > 0.0:
            raise InvalidInputError(
                f"beyond_default: factor {self.factor} is not above 0; 1 stops at the default's time"
            )

    def __call__(self, elapsed_s: float, progress: Progress) -> str | None:
        """Return the reason to stop the run, or None to let it go on."""
        if progress.default is None or progress.default.estimate is None:
            return None
        limit_s = self.factor * progress.default.estimate.value
        return (
            f"longer than {self.factor:g} times the default's {progress.default.estimate.value:g} s"
            if (elapsed_s > limit_s)
            else None
        )


never = Never
beyond_seconds = BeyondSeconds
beyond_default = BeyondDefault
