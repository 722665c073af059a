"""A stop rule: end the search when its runs have taken so many seconds together."""

from dataclasses import dataclass

from luthier.policies import Progress


@dataclass(frozen=True)
class Spent:
    limit: float

    def __call__(self, progress: Progress) -> str | None:
        return f"{self.limit:g} s were spent on runs" if progress.cost_s >= self.limit else None
