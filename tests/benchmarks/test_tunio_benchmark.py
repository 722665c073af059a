"""The benchmark of the parts of TunIO: the cost of a tuning, and searches of a table."""

import pytest
from benchmarks.tunio import PRODUCTION_RUNS, RULES, rows_of, show_tables
from benchmarks.tunio import replayed as searches_of
from benchmarks.tunio_applications import PAIRS, Measured, Way, Whole

from luthier.trial import Completed, Config, Run

CONFIGS = [Config({"x": number}) for number in range(30)]


def run(number: int, value: float) -> Run:
    metrics = {"user_s": 0.25, "system_s": 0.25}
    outcome = Completed(value)
    return Run(number, number, "search", CONFIGS[number], 0.0, 2 * number, 2 * number + 1, 0.0, 2.0, outcome, metrics)


def test_a_tuning_costs_its_preparation_its_runs_and_the_comparison() -> None:
    values = [10.0, 5.0, *[6.0] * 28]
    chosen = [CONFIGS[0], *[CONFIGS[1]] * 29]
    whole = Whole(Way("kernel", "kernel"), 30.0, 4.0, [run(at, value) for at, value in enumerate(values)], chosen)
    default, best = Measured(10.0, 20.0, 12.0), Measured(4.0, 14.0, 6.0)
    rows = {row.rule: row for row in rows_of([whole], {CONFIGS[0]: default, CONFIGS[1]: best}, CONFIGS[0])}
    assert set(rows) == set(RULES)
    full = rows["no stop"]
    assert full.runs == 30
    assert full.total_s == pytest.approx(30.0 + 30 * 2.0 + (PAIRS + 1) * 34.0)
    assert full.cpu_s == pytest.approx(4.0 + 30 * 0.5 + (PAIRS + 1) * 18.0)
    assert full.io_s == 4.0
    assert full.roti == pytest.approx(6.0 / (full.total_s / 60.0))
    assert full.paid_after == pytest.approx(full.total_s / 6.0)
    assert rows["5 % over 5"].runs == 7
    assert rows["5 % over 5"].total_s < full.total_s


def test_searches_of_a_table_with_impact_first_and_without(capsys: pytest.CaptureFixture[str]) -> None:
    found = searches_of(("testbed/sro/b",), 1)
    assert [len(pairs) for pairs in found.values()] == [1, 1]
    show_tables(found)
    shown = capsys.readouterr().out
    assert all(f"{way:<14}{rule}" in shown for way in ("off", "auto") for rule in RULES)
    assert f"net gain over {PRODUCTION_RUNS} runs" in shown
