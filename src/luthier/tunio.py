"""The functions of TunIO (Rajesh et al., 2024) under the names of its paper, for tuners other than luthier's.

`discover_io(sources, options)` makes the I/O kernel of a C program, `subset_picker(space)` says which parameters to
tune next, `stop(production_runs)` when to stop. See docs/io-tune.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.io.kernel import discover_io
    from luthier.policies.attached import stop
    from luthier.policies.foreign import subset_picker

__all__ = ["discover_io", "stop", "subset_picker"]

# Each is imported when it is first used, as the names of `luthier` are.
_MODULES = {
    "discover_io": "luthier.io.kernel",
    "stop": "luthier.policies.attached",
    "subset_picker": "luthier.policies.foreign",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'luthier.tunio' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
