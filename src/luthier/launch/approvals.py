"""Approving variables of components for jobs of other people; every change is in the audit log."""

from collections.abc import Collection, Mapping, Sequence

from luthier.spec.library import Library
from luthier.store.server_store import Entry, ServerStore


def approve(store: ServerStore, name: str, wanted: Mapping[str, str], version: str, by: str, now: float) -> None:
    """Approve variables of a component with the values in `wanted`; `version` is that of the review."""
    Library(store.components).approve(name, wanted, version, by, now)
    detail = ", ".join(f"{variable}: {allowed}" for variable, allowed in wanted.items())
    store.accounts.note(Entry(0, now, by, "approve variables", f"component {name}", detail))


def withdraw(store: ServerStore, name: str, variables: Collection[str] | None, by: str, now: float) -> Sequence[str]:
    """Take approvals of a component back, by default all; returns the variables that were approved."""
    gone = Library(store.components).withdraw(name, variables)
    if gone:
        store.accounts.note(Entry(0, now, by, "withdraw approval", f"component {name}", ", ".join(gone)))
    return gone
