"""Tuning of programs while they run: strategies, on-line sessions, their service and its clients."""

from luthier.plugins import Wing

WING = Wing(
    "online",
    commands="luthier.online.commands.online:register",
    server="luthier.online.server.serving:PART",
    options="luthier.online.commands:OnlineServeOptions",
    tables="luthier.online.store:TABLES",
    plugs={"luthier.tune-modes": {"online": "luthier.online.commands.tune_options:MODE"}},
)
