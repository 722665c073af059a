"""A stand-in for the HEPnOS workflow on Theta: fitted to the measured evaluations of one setup, noise and failures too.

What it returns are a model's values, not measurements. The data (docs/benchmarks.md#hepnos) is read from the folder
`hepnos` of LUTHIER_DATA.
"""

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from benchmarks import tables
from luthier.arrays import BoolArray, FloatArray
from luthier.learn.forest import Forest
from luthier.runners.replay import ReplayedRun
from luthier.space import Choice, Integer, Parameter, Space
from luthier.trial import Config, Failed, TimedOut, Value

WORKERS: Mapping[str, int] = {
    "4n-1s-11p": 32,
    "4n-2s-16p": 32,
    "4n-2s-20p": 32,
    "8n-2s-20p": 16,
    "16n-2s-20p": 8,
}
"""The setups in the order of the published chain of transfer, with the evaluations that ran at a time."""

LIMIT_S = 300.0
"""The time limit of a step: a run that was killed would have taken at least this."""

_TREES = 32
_NOISE = 0.03  # the median coefficient of variation of repeated evaluations


def _switch(name: str) -> Choice:
    return Choice(name, [False, True])


def _size(name: str, low: int, high: int, default: int) -> Integer:
    return Integer(name, low, high, scale="log", default=default)


def _powers(name: str, most: int, default: int) -> Choice:
    return Choice(name, [1 << at for at in range(most)], default=default, ordered=True)


_ELEVEN: tuple[Parameter, ...] = (
    _switch("busy_spin"),
    _switch("hepnos_progress_thread"),
    Integer("hepnos_num_rpc_threads", 0, 63),
    Integer("hepnos_num_event_databases", 1, 16),
    Integer("hepnos_num_product_databases", 1, 16),
    Integer("hepnos_num_providers", 1, 32),
    Choice("hepnos_pool_type", ["fifo", "fifo_wait"], default="fifo_wait"),
    _powers("hepnos_pes_per_node", 6, 2),
    _switch("loader_progress_thread"),
    _size("loader_batch_size", 1, 2048, 512),
    _powers("loader_pes_per_node", 5, 2),
)
_SIXTEEN: tuple[Parameter, ...] = (
    *_ELEVEN,
    _switch("pep_progress_thread"),
    Integer("pep_num_threads", 1, 31, default=4),
    _size("pep_ibatch_size", 8, 1024, 128),
    _size("pep_obatch_size", 8, 1024, 128),
    _powers("pep_pes_per_node", 6, 8),
)
_TWENTY: tuple[Parameter, ...] = (
    *_SIXTEEN,
    _switch("loader_async"),
    _size("loader_async_threads", 1, 63, 1),
    _switch("pep_no_preloading"),
    _switch("pep_no_rdma"),
)


def space_of(setup: str) -> Space:
    """The parameters of a setup."""
    return Space(*{"11p": _ELEVEN, "16p": _SIXTEEN, "20p": _TWENTY}[setup.rpartition("-")[2]])


@dataclass(frozen=True, slots=True)
class Measured:
    """One evaluation on Theta; `runtime_s` is NaN if there is none."""

    method: str
    repetition: int
    config: Config
    status: str
    runtime_s: float
    started_s: float
    ended_s: float

    @property
    def overhead_s(self) -> float:
        """What the evaluation took beyond its run time; all of it if there is none."""
        return self.ended_s - self.started_s - (0.0 if np.isnan(self.runtime_s) else self.runtime_s)


def measured(setup: str) -> list[Measured]:
    """Every evaluation of a setup, as published."""
    space = space_of(setup)
    with gzip.open(tables.data_folder() / "hepnos" / f"theta_{setup}.csv.gz", "rt", newline="") as file:
        return [
            Measured(
                ("TL-" if row["transfer"] == "1" else "") + row["model"],
                int(row["rep"]),
                Config({parameter.name: _value(parameter, row[parameter.name]) for parameter in space.parameters}),
                row["status"],
                float(row["runtime_s"] or "nan"),
                float(row["timestamp_start"]),
                float(row["timestamp_end"]),
            )
            for row in csv.DictReader(file)
        ]


def _value(parameter: Parameter, text: str) -> Value:
    if isinstance(parameter, Integer):
        return int(text)
    return next(value for value in parameter.values if str(value) == text) if isinstance(parameter, Choice) else text


class StandIn:
    """Answers as the workflow did: time-outs and failures by chance, else a run time with noise, and the overhead.

    The same configuration always ends in the same way; its noise and its overhead depend on `repetition`. If it
    `is_plain`, there is neither, and no failure.
    """

    def __init__(self, setup: str, rows: Sequence[Measured], *, is_plain: bool = False) -> None:
        self.space, self._is_plain = space_of(setup), is_plain
        self._ordered: BoolArray = np.asarray(self.space.ordered, dtype=np.bool_)
        x = self._units([row.config for row in rows])
        status = np.array([row.status for row in rows])
        runtime, overhead = np.array([row.runtime_s for row in rows]), np.array([row.overhead_s for row in rows])
        fine = status == "ok"
        self._times = self._grown(x[fine], np.log(runtime[fine]))
        self._timeouts = self._grown(x, (status == "timeout").astype(np.float64))
        self._failures = self._grown(x, (status == "failed").astype(np.float64))
        self._overheads = {one: np.sort(overhead[status == one]) for one in ("ok", "timeout", "failed")}

    def _units(self, configs: Sequence[Config]) -> FloatArray:
        return self.space.to_unit(self.space.codes(configs))

    def _grown(self, x: FloatArray, y: FloatArray) -> Forest:
        forest = Forest(self._ordered, _TREES)
        forest.grow(x, y)
        return forest

    def predict(self, configs: Sequence[Config]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The logarithm of the run time, and the chances of a time-out and of a failure."""
        x = self._units(configs)
        time, timeout, failure = (
            forest.predict(forest.leaves(x))[0] for forest in (self._times, self._timeouts, self._failures)
        )
        return time, timeout, failure

    def answer(self, config: Config, repetition: int) -> ReplayedRun:
        """How one evaluation ends, and how long it occupies its worker."""
        (log_time,), (timeout,), (failure,) = self.predict([config])
        if self._is_plain:
            return ReplayedRun(float(np.exp(log_time)), float(np.exp(log_time)))
        chance = _rng(config, -1).random()
        rng = _rng(config, repetition)
        status = "timeout" if chance < timeout else "failed" if chance < timeout + failure else "ok"
        overhead_s = float(rng.choice(self._overheads[status]))
        if status == "timeout":
            return ReplayedRun(overhead_s, TimedOut("300 s", at_least=LIMIT_S))
        if status == "failed":
            return ReplayedRun(overhead_s, Failed("exit code 1"))
        runtime_s = float(np.exp(log_time + _NOISE * rng.standard_normal()))
        return ReplayedRun(overhead_s + runtime_s, runtime_s)


def _rng(config: Config, number: int) -> np.random.Generator:
    digest = blake2b(repr((sorted(config.items()), number)).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How well a stand-in predicts a fifth of the rows it was not fitted to."""

    explained: float
    error: float
    fast_error: float
    timeouts_told: float


def held_out(setup: str, rows: Sequence[Measured]) -> HeldOut:
    """Fit to four fifths, predict the rest; `timeouts_told` is the area under the ROC curve."""
    order = np.random.default_rng(0).permutation(len(rows))
    cut = len(rows) // 5
    test, train = [rows[at] for at in order[:cut]], [rows[at] for at in order[cut:]]
    log_time, timeout, _ = StandIn(setup, train).predict([row.config for row in test])
    fine = np.array([row.status == "ok" for row in test])
    true = np.log([row.runtime_s for row, ok in zip(test, fine, strict=True) if ok])
    miss = log_time[fine] - true
    fast = true <= np.quantile(true, 0.1)
    killed = np.array([row.status == "timeout" for row in test])
    above = timeout[killed][:, None] > timeout[~killed]
    equal = timeout[killed][:, None] == timeout[~killed]
    return HeldOut(
        explained=1.0 - float(np.var(miss) / np.var(true)),
        error=float(np.median(np.abs(np.expm1(miss)))),
        fast_error=float(np.median(np.expm1(miss[fast]))),
        timeouts_told=float((above + 0.5 * equal).mean()),
    )
