"""Finding things by name: built-in ones, and those that other packages add through entry points."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from luthier.errors import InvalidInputError, NotFoundError
from luthier.texts import closest, shown, visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Registry(Generic[Thing]):
    """Everything of one kind, by name.

    A built-in can be written as "module:attribute"; it is then imported when it is first used. Other packages add
    plug-ins through the entry point group `luthier.KINDs`, for example `luthier.optimizers`. A name is never imported
    as such: it must be a built-in one or that of an installed entry point; a built-in one wins. `notations` are further
    ways to write one, which error messages list. A plug-in for which `fits` is False is refused. `kinds` is the plural
    of `kind` where that is not just one letter more.
    """

    kind: str
    built_in: Mapping[str, Thing | str]
    notations: tuple[str, ...] = ()
    fits: Callable[[object], bool] = callable
    kinds: str = ""

    def names(self) -> list[str]:
        """Every name: the built-in ones, then those of plug-ins."""
        return [*self.built_in, *sorted(set(self._entries()) - set(self.built_in))]

    def __contains__(self, name: str) -> bool:
        return name in self.built_in or name in self._entries()

    def get(self, name: str) -> Thing:
        """The thing of this name; imports it if need be."""
        if name not in self.built_in:
            return self._plugin(name)
        found = self.built_in[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            return cast("Thing", getattr(import_module(module), attribute))
        return found

    def _plugin(self, name: str) -> Thing:
        entries = self._entries()
        if name not in entries:
            known = [*self.names(), *self.notations]
            raise NotFoundError(f"unknown {self.kind} {shown(name)}; {instead(name, known)}")
        what = f"{self.kind}: the plug-in {name!r} ({entries[name].value})"
        try:
            found = entries[name].load()
        except Exception as error:  # the code of others may fail in any way
            reason = visible(f"{type(error).__name__}: {error}")
            raise InvalidInputError(f"{what} cannot be loaded: {reason}; reinstall or remove it") from error
        if not self.fits(found):
            raise InvalidInputError(f"{what} is a {type(found).__name__}, which is no {self.kind}; ask its author")
        return cast("Thing", found)

    def _entries(self) -> "Mapping[str, EntryPoint]":
        return entries_of(f"luthier.{self.kinds or self.kind + 's'}")


@cache
def entries_of(group: str) -> "Mapping[str, EntryPoint]":
    """The entry points of a group by name, read once: that takes tens of milliseconds."""
    from importlib import metadata  # slow to import as well

    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def instead(wrong: str, known: list[str]) -> str:
    """What could be meant by a wrong name, for the end of an error message; what follows a colon is not compared."""
    near = closest(wrong.partition(":")[0], [name.partition(":")[0] for name in known])
    return (f"did you mean {near!r}? " if near else "") + f"known: {', '.join(known)}"
