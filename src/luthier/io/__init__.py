"""Input and output of programs: counted, changed, predicted, and cut out of C programs as I/O kernels.

Start reading at `counts.py`; `kernel` makes kernels, and `tuning.py` tunes with them.
"""

from luthier.plugins import Wing

WING = Wing(
    "io",
    commands="luthier.io.commands.io:register",
    plugs={
        "luthier.measure-kinds": {"io": "luthier.io.measures:KIND"},
        "luthier.instruments": {"io": "luthier.io.instrument:COUNTERS"},
        "luthier.resumes": {"io": "luthier.io.commands.pipeline:resume"},
    },
)
