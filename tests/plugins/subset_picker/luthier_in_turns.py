"""A subset picker: a few parameters at a time are tuned, one group after the other."""

from dataclasses import dataclass

from luthier.policies.base import SearchSoFar, Subset


@dataclass(frozen=True)
class InTurns:
    size: int = 1

    def __call__(self, search: SearchSoFar) -> Subset:
        names = search.space.names
        first = self.size * len(search.steps) % len(names)
        return Subset((names + names)[first : first + min(self.size, len(names))], "it is their turn")
