"""Sample runs for tests of stores."""

from dataclasses import replace

from luthier.store.base import Owner
from luthier.trial import Config, Outcome, Run, Value

ME = Owner("here", 1, "100")
OTHER = Owner("there", 1, "100")
NASTY = (
    "nul \x00, dle \x100041, lone \udce9 and \ud800, pair \ud83d\ude00, emoji 😀, quotes '\" \\ %s {x} :y\r\n\t\u2028"
)


def submitted(run: Run) -> Run:
    """The run as it was submitted, without its ending."""
    return Run(run.number, run.trial, run.purpose, run.config, run.submitted_at, run.submit_order, uid=run.uid)


def a_run(number: int, **config: Value) -> Run:
    """A run that is about to be submitted."""
    return Run(number, number, "search", Config(config or {"threads": number}), 1000.0 + number, 2 * number)


def ended(run: Run, outcome: Outcome) -> Run:
    """The run with an ending."""
    return replace(
        run, finish_order=run.submit_order + 1, started_at=1.5, duration_s=0.1, outcome=outcome, logs="/logs/1"
    )
