import gzip
import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks import peers, plot, report, search, tables, worker
from testbeds.testbed import find_testbed

GRID = """x,mode,value,r1,r2
1,a,11,10,12
1,b,20,20,
2,a,30,30,30
2,b,,,
4,a,10,10,10
"""
WIDE = """flag,batch,time_s
False,1,8
True,1,16
True,9,4
True,8,6
False,64,
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    with gzip.open(folder / "grid.csv.gz", "wt") as file:
        file.write(GRID)
    (folder / "wide.csv").write_text(WIDE)
    grid = {
        "file": "grid.csv.gz",
        "params": {"x": [1, 2, 4], "mode": ["a", "b"]},
        "types": {"x": "int", "mode": "str"},
        "default": {"x": 2, "mode": "a"},
        "minimise": True,
        "value": "value",
        "repeats": ["r1", "r2"],
    }
    wide: dict[str, object] = {
        "file": "wide.csv",
        "params": {"flag": [False, True], "batch": [1, 8, 9, 64]},
        "types": {"flag": "bool", "batch": "int"},
        "default": None,
        "minimise": True,
        "value": "time_s",
        "repeats": [],
        "domain": {"flag": {"values": [False, True]}, "batch": {"range": [1, 64], "log": True}},
    }
    pair = {"grid": grid, "wide": wide, "largest": {**grid, "minimise": False, "default": None}}
    (folder / "meta.json").write_text(json.dumps({"primary": "grid", "tables": pair}))
    monkeypatch.setenv("LUTHIER_DATA", str(folder.parent))
    return folder.parent


def line(
    *values: float | tuple[float, ...], minimise: bool = True, default: tables.Point | None = None
) -> tables.Table:
    runs: dict[tables.Point, tuple[float, ...]] = {
        (i,): value if isinstance(value, tuple) else (value,) for i, value in enumerate(values)
    }
    return tables.Table("line", {"x": tuple(range(len(values)))}, runs, minimise, default)


def test_a_testbed_is_a_table() -> None:
    table, testbed = tables.load("testbed/sbb/latency"), find_testbed("sbb/latency")
    assert len(table.runs) == table.size == testbed.grid.size
    assert table.optimum() == testbed.table().min()
    assert table.true(table.point(testbed.optimum)) == table.optimum()


def test_a_table_is_read_with_its_repeats_failures_and_default(data: Path) -> None:
    table = tables.load("toy")
    assert tables.names() == [*tables.TESTBEDS, "toy/grid", "toy/wide", "toy/largest"]
    assert table.parameters == {"x": (1, 2, 4), "mode": ("a", "b")}
    assert table.size == 6
    assert table.default == (1, 0)
    assert table.runs_at((0, 0)) == (10.0, 12.0)
    assert table.runs_at((0, 1)) == (20.0,)
    assert math.isnan(table.true((1, 1)))
    assert table.runs_at((2, 1)) == ()
    assert table.true((0, 0)) == 11.0
    assert table.optimum() == 10.0
    assert tables.load("toy/largest").optimum() == 30.0


def test_a_pinned_parameter_leaves_the_table(data: Path) -> None:
    table = tables.load("toy/grid:mode=b")
    assert table.parameters == {"x": (1, 2)}
    assert table.runs_at((0,)) == (20.0,)
    assert table.default == (1,)


def test_the_nearest_measured_point_answers_where_a_table_is_a_sample(data: Path) -> None:
    table = tables.load("toy/wide")
    assert table.parameters == {"flag": (False, True), "batch": (1, 2, 4, 8, 16, 32, 64)}
    assert table.runs_at(table.point({"flag": True, "batch": 8})) == (4.0, 6.0)  # 9 snaps to 8
    assert table.runs_at(table.point({"flag": True, "batch": 16})) == (4.0, 6.0)
    assert table.runs_at(table.point({"flag": False, "batch": 2})) == (8.0,)
    assert math.isnan(table.true(table.point({"flag": False, "batch": 32})))
    assert table.optimum() == 5.0


def test_points_have_numbers(data: Path) -> None:
    table = tables.load("toy/grid")
    points = [(i, j) for i in range(3) for j in range(2)]
    assert [table.number(point) for point in points] == list(range(6))
    assert [table.from_number(n) for n in range(6)] == points


def test_unknown_tables_are_refused(data: Path) -> None:
    with pytest.raises(KeyError, match="toy has the tables grid, wide"):
        tables.load("toy/none")
    with pytest.raises(FileNotFoundError, match="LUTHIER_DATA"):
        tables.load("absent/none")


def test_replay_goes_round_the_repeats_from_a_start_that_depends_on_the_seed() -> None:
    table = line((1.0, 2.0, 3.0), (math.nan,))
    starts = set()
    for seed in range(20):
        replay = tables.Replay(table, seed)
        seen = [replay.run((0,)) for _ in range(6)]
        assert sorted(seen[:3], key=str) == [1.0, 2.0, 3.0]
        assert seen[:3] == seen[3:]
        assert seen == [tables.Replay(table, seed).run((0,)), *seen[1:]]
        assert replay.run((1,)) is None
        starts.add(seen[0])
    assert starts == {1.0, 2.0, 3.0}


def test_a_point_that_cannot_run_fails(data: Path) -> None:
    assert tables.Replay(tables.load("toy/grid"), 0).run((2, 1)) is None


def played(*points: int, seed: int = 0) -> report.Played:
    return report.Played("line", "someone:x", seed, "ok", 2.0, points)


def test_the_metrics_of_a_cell() -> None:
    # means 10, 10.4, 20, 30 and a failure; the distances of the six steps are 100, -, 200, 4, 200, 0 percent
    table = line(10.0, 10.4, 20.0, 30.0, math.nan, default=(3,))
    found = report.figures(table, table.optimum(), played(2, 4, 3, 1, 3, 0), 8)
    assert found.best == pytest.approx((100, 100, 100, 4, 4, 0, 0, 0))
    assert found.steps_to_5 == 4
    assert found.selected == 0
    assert found.average == pytest.approx((100 + 200 + 4 + 200 + 0) / 5)
    assert found.exploration == pytest.approx((200 - 100) / 100 + (200 - 4) / 100)
    assert found.failed == pytest.approx(100 / 6)
    assert found.distinct == 5
    assert found.improvement == pytest.approx(100 * 20 / 30)
    assert found.share == pytest.approx(100)


def test_the_metrics_of_a_cell_that_came_to_nothing() -> None:
    table = line(10.0, math.nan)
    for points in ((), (1, 1)):
        found = report.figures(table, 10.0, played(*points), 3)
        assert found.best == (math.inf,) * 3
        assert found.steps_to_5 is None
        assert (found.selected, found.average, found.failed) == (math.inf, math.inf, 100.0)
        assert (found.improvement, found.share) == (None, None)


def test_larger_may_be_better() -> None:
    table = line(50.0, 100.0, 80.0, minimise=False, default=(0,))
    found = report.figures(table, table.optimum(), played(0, 2), 2)
    assert found.best == pytest.approx((50, 20))
    assert found.selected == pytest.approx(20)
    assert found.improvement == pytest.approx(60)
    assert found.share == pytest.approx(60)


def test_what_is_selected_depends_on_what_was_observed() -> None:
    table = line((10.0, 20.0), 14.0)
    selected = {}
    for seed in range(20):
        lucky = tables.Replay(table, seed).run((0,)) == 10.0
        found = report.figures(table, 14.0, played(0, 1, seed=seed), 2)
        assert found.best[-1] == 0
        selected[lucky] = found.selected
    assert selected == {True: pytest.approx(100 / 14), False: 0}


def test_seeds_are_gathered_by_median_and_mean() -> None:
    table = line(10.0, 10.4, 20.0, 30.0)
    cells = [report.figures(table, 10.0, played(*points), 2) for points in ((3, 0), (3, 2), (3, 2), (2, 1))]
    found = report.summarise("line", "someone:x", cells, 2)
    assert found.medians == {2: pytest.approx((4 + 100) / 2)}
    assert found.means == {2: pytest.approx(204 / 4)}
    assert found.success == 25
    assert found.reached_5 == 50
    assert math.isinf(found.steps_to_5)
    assert found.curve == pytest.approx((200, 52))


def test_equals_share_their_rank() -> None:
    assert report.ranks({"a": 1.0, "b": 5.0, "c": 1.0 + 1e-9, "d": math.inf}) == {"a": 1.5, "b": 3, "c": 1.5, "d": 4}


def test_ranks_are_averaged_over_the_tables_everybody_played() -> None:
    table = line(10.0, 20.0)
    good, bad = (report.figures(table, 10.0, played(point), 1) for point in (0, 1))
    results = [("t", "a", good), ("t", "b", bad), ("u", "a", good), ("u", "b", good), ("v", "b", good)]
    summaries = [report.summarise(name, player, [cell], 1) for name, player, cell in results]
    assert report.average_ranks(summaries, 1) == ({"a": 1.25, "b": 1.75}, ["t", "u"])


def test_who_played_few_tables_has_no_rank() -> None:
    cell = report.figures(line(10.0, 20.0), 10.0, played(0), 1)
    results = [("t", "a"), ("t", "b"), ("u", "a"), ("u", "b"), ("v", "a"), ("v", "b"), ("u", "slow")]
    summaries = [report.summarise(name, player, [cell], 1) for name, player in results]
    assert report.average_ranks(summaries, 1) == ({"a": 1.5, "b": 1.5}, ["t", "u", "v"])


class InOrder:
    """Tries every point once and remembers what it was told."""

    def __init__(self, game: peers.Game) -> None:
        self.takes_failures = game.variant == "tough"
        self._points = [game.table.from_number(n) for n in range(game.table.size)]
        told.clear()

    def ask(self) -> tables.Point | None:
        return self._points.pop(0) if self._points else None

    def tell(self, point: tables.Point, value: float | None) -> None:
        told.append((point, value))


told: list[tuple[tables.Point, float | None]] = []


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAKERS", {"inorder": InOrder})
    monkeypatch.setattr(worker, "MAKERS", {"inorder": InOrder})


@pytest.mark.usefixtures("in_order")
def test_the_default_is_played_first_and_a_player_may_run_out_of_points(data: Path) -> None:
    points, costs = worker.play("inorder:tough", tables.load("toy/grid"), 20, 0)
    assert points == [(1, 0), (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert len(costs) == 7
    assert [value for _, value in told[-3:]] == [None, 10.0, None]


@pytest.mark.usefixtures("in_order")
def test_a_peer_is_told_the_worst_so_far_for_a_failure() -> None:
    worker.play("inorder:frail", line(math.nan, 5.0, math.nan, 7.0, math.nan), 5, 0)
    assert [value for _, value in told] == [6.0, 5.0, 5.0, 7.0, 7.0]


def test_a_cell_that_is_cut_off_keeps_what_it_has(data: Path, tmp_path: Path) -> None:
    player = search.Worker("luthier:random", Path(sys.executable), tmp_path / "log", 0.0)
    try:
        row = player.play(search.Cell("toy/grid", "luthier:random", 0, 5))
    finally:
        player.close()
    assert (row.status, row.reason) == ("timeout", "cut off after 0 s with 0 evaluations")
    cut = report.Played("line", "someone:x", 0, "timeout", 2.0, (1,))
    found = report.figures(line(10.0, 12.0), 10.0, cut, 3)
    assert found.best == pytest.approx((20, 20, 20))
    assert report.summarise("line", "someone:x", [found], 3).cut == 1


@pytest.mark.usefixtures("in_order")
def test_a_player_always_minimises() -> None:
    worker.play("inorder:frail", line(5.0, math.nan, 7.0, minimise=False), 2, 0)
    assert [value for _, value in told] == [-5.0, -5.0]


def test_a_play_resumes_and_reports(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results" / "search.csv"
    words = ["--players", "luthier:random", "--tables", "toy/grid", "--budget", "4", "--results", str(results)]
    assert search.main([*words, "--seeds", "1"]) == 0
    first = results.read_text()
    assert search.main([*words, "--seeds", "2"]) == 0
    assert results.read_text().startswith(first)
    rows = search.read_rows(results)
    assert [(cell.seed, row.status, row.reason) for cell, row in rows.items()] == [(0, "ok", ""), (1, "ok", "")]
    assert all(len(set(row.points.split())) == 4 for row in rows.values())
    before = results.read_text()
    assert search.main([*words, "--seeds", "2"]) == 0
    assert results.read_text() == before
    assert "| luthier:random | 2     |" in capsys.readouterr().out
    assert (results.parent / "search-summary.csv").read_text().startswith("table,player,seeds,")
    assert (results.parent / "search.svg").read_text().startswith("<svg")


def test_the_same_seed_plays_the_same_points(data: Path, tmp_path: Path) -> None:
    results = tmp_path / "search.csv"
    play = search.Play(["luthier:random"], ["toy/grid"], 1, 5, results, again=True)
    play.run()
    play.run()
    lines = [row.split(",") for row in results.read_text().splitlines()[1:]]
    assert len(lines) == 2
    assert lines[0][-1] == lines[1][-1]


def test_errors_are_tried_again_and_timeouts_are_not(tmp_path: Path) -> None:
    results = tmp_path / "search.csv"
    cells = [search.Cell("t", f"p:{status}", 0, 5) for status in ("ok", "timeout", "error")]
    for cell in cells:
        status = cell.player.partition(":")[2]
        search.append_row(results, search.Row(cell.table, cell.player, 0, 5, status, "", 0.0, 0.0, ""))
    play = search.Play([cell.player for cell in cells], ["t"], 1, 5, results)
    assert play.cells() == [[cells[2]]]


def test_cells_come_seed_by_seed(tmp_path: Path) -> None:
    play = search.Play(["a:x", "b:x"], ["t", "u"], 2, 5, tmp_path / "none.csv")
    order = [[(cell.seed, cell.player, cell.table) for cell in cells] for cells in play.cells()]
    assert order == [[(seed, player, table) for table in "tu"] for seed in (0, 1) for player in ("a:x", "b:x")]


def test_the_last_row_of_a_cell_counts(tmp_path: Path) -> None:
    results = tmp_path / "search.csv"
    for points in ("1 2", "3 4"):
        search.append_row(results, search.Row("t", "p:x", 0, 5, "ok", "a, b", 1.5, 2.5, points))
    (row,) = search.read_rows(results).values()
    assert row == search.Row("t", "p:x", 0, 5, "ok", "a, b", 1.5, 2.5, "3 4")


@pytest.mark.parametrize(("does", "status"), [("exec sleep 600", "timeout"), ("exit 1", "error")])
def test_a_worker_that_hangs_or_dies_costs_one_cell(tmp_path: Path, does: str, status: str) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)
    bad = search.Worker("p:x", script, tmp_path / "log", 0.25, 0.25 if status == "timeout" else 60.0)
    for _ in range(2):
        row = bad.play(search.Cell("t", "p:x", 0, 5))
        assert (row.status, row.points) == (status, "")
        assert row.reason


def test_what_breaks_in_a_player_is_an_error_row(data: Path, tmp_path: Path) -> None:
    player = search.Worker("luthier:no-such-search", Path(sys.executable), tmp_path / "log", 60.0)
    try:
        row = player.play(search.Cell("toy/grid", "luthier:no-such-search", 0, 5))
    finally:
        player.close()
    assert row.status == "error"
    assert "no-such-search" in row.reason


def test_an_unknown_family_is_absent(data: Path, tmp_path: Path) -> None:
    absent = search.Play(["nobody:x"], ["toy/grid"], 1, 5, tmp_path / "search.csv").run()
    assert list(absent) == ["nobody:x"]
    assert "luthier" in absent["nobody:x"]


def test_the_plot_names_every_table_and_player() -> None:
    drawn = plot.svg({("t<1>", "a:x"): (100.0, 0.0), ("t<1>", "b:x"): (math.inf, math.inf), ("u", "a:x"): (3.0,)})
    assert all(text in drawn for text in ("t&lt;1&gt;", ">u<", ">a:x<", ">b:x<"))
    assert drawn.count("<polyline") == 3
    assert "inf" not in drawn
