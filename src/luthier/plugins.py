"""Finding things by name: built-in ones, those of wings, and those that other packages add through entry points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from luthier.errors import InvalidInputError, NotFoundError
from luthier.texts import closest, shown, visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Wing:
    """A large feature that joins the core through this value only, such as tuning of programs while they run.

    Everything in it is written as "module:attribute" and imported when it is first used. `commands` is a function that
    adds commands to the command line, `server` a `luthier.server.parts.ServerPart`, `options` a frozen dataclass whose
    fields are annotated as options of `luthier serve` and which checks them when it is made, `tables` a
    `luthier.store.wing_tables.WingTables`. `plugs` are entries for registries of the core, by the registry's group.
    """

    name: str
    commands: str = ""
    server: str = ""
    options: str = ""
    tables: str = ""
    plugs: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))


_joined: dict[str, Wing] = {}


def join(wings: Sequence[Wing]) -> None:
    """Add wings to the core of this process; a second time changes nothing."""
    _joined.update({wing.name: wing for wing in wings})


def joined() -> Sequence[Wing]:
    """The wings of this process, in the order in which they were added."""
    return tuple(_joined.values())


def loaded(text: str) -> object:
    """What "module:attribute" names. The text is written in the source of luthier, never by a user."""
    module, _, attribute = text.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True, slots=True)
class Registry(Generic[Thing]):
    """Everything of one kind, by name.

    What a wing plugs into the group counts as built in. A built-in can be written as "module:attribute"; it is then
    imported when it is first used. Other packages add plug-ins through the entry point group `luthier.KINDs`, for
    example `luthier.optimizers`. A name is never imported as such: it must be a built-in one or that of an installed
    entry point; a built-in one wins. `notations` are further ways to write one, which error messages list. A plug-in
    for which `fits` is False is refused. `kinds` is the plural of `kind`, if it is not `kind` with an s.
    """

    kind: str
    built_in: Mapping[str, Thing | str]
    notations: Callable[[], Sequence[str]] = tuple
    fits: Callable[[object], bool] = callable
    kinds: str = ""

    def names(self) -> list[str]:
        """Every name: the built-in ones, then those of plug-ins."""
        own = self.own()
        return [*own, *sorted(set(self._entries()) - set(own))]

    def own(self) -> Mapping[str, Thing | str]:
        """What is built in, and what wings add."""
        found = dict(self.built_in)
        for wing in joined():
            found.update(wing.plugs.get(self.group, {}))
        return found

    @property
    def group(self) -> str:
        """The group of wings and entry points."""
        return f"luthier.{self.kinds or self.kind + 's'}"

    def __contains__(self, name: str) -> bool:
        return name in self.own() or name in self._entries()

    def get(self, name: str) -> Thing:
        """The thing of this name; imports it if necessary."""
        own = self.own()
        if name not in own:
            return self._plugin(name)
        found = own[name]
        return cast("Thing", loaded(found)) if isinstance(found, str) else found

    def _plugin(self, name: str) -> Thing:
        entries = self._entries()
        if name not in entries:
            known = [*self.names(), *self.notations()]
            raise NotFoundError(f"unknown {self.kind} {shown(name)}; {instead(name, known)}")
        what = f"{self.kind}: the plug-in {name!r} ({entries[name].value})"
        try:
            found = entries[name].load()
        except Exception as error:  # the code of others may fail in any way
            reason = visible(f"{type(error).__name__}: {error}")
            raise InvalidInputError(f"{what} cannot be loaded: {reason}; reinstall or remove it") from error
        if not self.fits(found):
            raise InvalidInputError(f"{what} is a {type(found).__name__}, not a valid {self.kind}; ask its author")
        return cast("Thing", found)

    def _entries(self) -> "Mapping[str, EntryPoint]":
        return entries_of(self.group)


@cache
def entries_of(group: str) -> "Mapping[str, EntryPoint]":
    """The entry points of a group by name, read once: that takes tens of milliseconds."""
    from importlib import metadata  # slow to import as well

    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def instead(wrong: str, known: list[str]) -> str:
    """What could be meant by a wrong name, for the end of an error message; what follows a colon is not compared."""
    near = closest(wrong.partition(":")[0], [name.partition(":")[0] for name in known])
    return (f"did you mean {near!r}? " if near else "") + f"known: {', '.join(known)}"
