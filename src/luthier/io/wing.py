"""Input and output of programs, as the core knows them."""

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
