"""The counters of I/O, as an instrument of runs."""

from collections.abc import Mapping
from pathlib import Path

from luthier.compiled import preload
from luthier.errors import UnavailableError
from luthier.io.counts import COUNT_FOLDER, LAYER_NAMES, LAYERS, layer_total, read_run
from luthier.measures.instruments import Instrument, Quantity
from luthier.runners.supervisor import COUNT_VARIABLE

_COUNTERS = ("io", "io-mpi")


def counters() -> str:
    """The libraries that count I/O, for LD_PRELOAD: that for MPI only where it can be built."""
    needed, for_mpi = _COUNTERS
    try:
        return preload([needed, for_mpi])
    except UnavailableError:
        return preload([needed])


def _of_layer(layer: str) -> dict[str, Quantity]:
    name = LAYER_NAMES[layer]
    return {
        f"{layer}_reads": Quantity(f"{name} reads", f"makes {{}} {name} reads"),
        f"{layer}_read_bytes": Quantity(f"{name} bytes read", f"reads {{}} through {name}", "B", 65536),
        f"{layer}_writes": Quantity(f"{name} writes", f"makes {{}} {name} writes"),
        f"{layer}_write_bytes": Quantity(f"{name} bytes written", f"writes {{}} through {name}", "B", 65536),
        f"{layer}_opens": Quantity(f"{name} opens", f"opens files {{}} times through {name}"),
        f"{layer}_seeks": Quantity(f"{name} seeks", f"makes {{}} {name} seeks"),
        f"{layer}_syncs": Quantity(f"{name} syncs", f"makes {{}} {name} syncs", "", 10),
        f"{layer}_read_s": Quantity(f"time in {name} reads", f"spends {{}} in {name} reads", "s", 0.02),
        f"{layer}_write_s": Quantity(f"time in {name} writes", f"spends {{}} in {name} writes", "s", 0.02),
        f"{layer}_other_s": Quantity(f"time in other {name} calls", f"spends {{}} in other {name} calls", "s", 0.02),
    }


def _counted(folder: Path) -> Mapping[str, float]:
    """What the processes of a run counted, in each layer."""
    processes = [one for one in read_run(folder) if Path(one.program).name != "perf"]
    found: dict[str, float] = {}
    for layer in LAYERS if processes else ():
        counts = layer_total(processes, layer)
        found |= {key: float(getattr(counts, key.removeprefix(f"{layer}_"))) for key in _of_layer(layer)}
    return found


COUNTERS = Instrument(
    "I/O",
    counters,
    {COUNT_VARIABLE: COUNT_FOLDER},
    {key: one for layer in reversed(LAYERS) for key, one in _of_layer(layer).items()},
    _counted,
    "The runs left no counters of I/O: the program is statically linked, or ran on another machine.",
)
