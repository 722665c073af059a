"""Input and output of programs: counted, changed, predicted, and cut out of C programs as I/O kernels.

`discover` makes an I/O kernel, and `tune` tunes the I/O of a program with one. Start reading at `counts.py`; `kernel`
makes kernels, and `tuning.py` tunes with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from luthier.plugins import Wing, join

if TYPE_CHECKING:
    from luthier.io.kernels import WrittenKernel, discover
    from luthier.io.tuning import tune

__all__ = ["WING", "WrittenKernel", "discover", "tune"]

WING = Wing(
    "io",
    commands="luthier.io.commands.io:register",
    plugs={
        "luthier.measure-kinds": {"io": "luthier.io.measures:KIND"},
        "luthier.instruments": {"io": "luthier.io.instrument:COUNTERS"},
        "luthier.follow-ups": {"io": "luthier.io.comparison:FOLLOW_UP"},
    },
)

# Each is imported when it is first used, as the names of `luthier` are.
_MODULES = {
    "WrittenKernel": "luthier.io.kernels",
    "discover": "luthier.io.kernels",
    "tune": "luthier.io.tuning",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'luthier.io' has no attribute {name!r}")
    join([WING])  # a program that uses these needs the measures of this wing, and what follows a search
    return getattr(import_module(_MODULES[name]), name)
