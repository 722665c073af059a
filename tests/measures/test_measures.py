import contextlib
import importlib.metadata
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, NotFoundError
from luthier.measures.json_output import JsonPath, last_document, look_up, parse_path
from luthier.measures.output import Regex, number_in, tail
from luthier.measures.registry import MEASURES, measure_from, measures_from
from luthier.plugins import entries_of
from luthier.trial import Completed, Execution, Failed, Json, Lost, Outcome, Problem, Pruned, TimedOut

METRICS = {"wall_s": 4.0, "user_s": 1.0, "system_s": 0.5, "peak_memory_bytes": 1024.0, "exit_code": 0.0}
PROBLEMS: list[Problem] = [Failed("bad"), Lost("gone"), TimedOut("late"), Pruned("slow")]


def execution(problem: Problem | None = None, logs: Path | None = None, value: float | None = None) -> Execution:
    return Execution("k", 0.0, 4.0, problem, METRICS, value, None if logs is None else str(logs))


def measure(text: str, folder: Path, stdout: str | bytes = "", stderr: str = "") -> Outcome:
    (folder / "stdout").write_bytes(stdout if isinstance(stdout, bytes) else stdout.encode())
    (folder / "stderr").write_text(stderr)
    return measure_from(text)(execution(logs=folder))


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.reason


@pytest.mark.parametrize(
    ("name", "value"), [("wall", 4.0), ("user", 1.0), ("system", 0.5), ("cpu", 1.5), ("memory", 1024.0)]
)
def test_metrics_and_their_lower_bounds(name: str, value: float) -> None:
    measured = measure_from(name)
    assert measured(execution()) == Completed(value)
    assert measured(execution(TimedOut("late"))) == TimedOut("late", at_least=value)
    assert measured(execution(Pruned("slow"))) == Pruned("slow", at_least=value)
    assert measured(execution(Failed("bad"))) == Failed("bad")
    assert measured(execution(Lost("gone"))) == Lost("gone")


def test_metrics_a_runner_does_not_give() -> None:
    bare = Execution("k", 0.0, 4.0, metrics={"wall_s": 4.0})
    assert reason(measure_from("memory")(bare)) == "this runner does not measure 'memory', only: wall_s"
    assert measure_from("cpu")(Execution("k", 0.0, 4.0, TimedOut("late"))) == TimedOut("late")


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, math.nan, math.inf])
def test_no_run_takes_no_time(value: float) -> None:
    run = Execution("k", 0.0, 4.0, metrics={**METRICS, "wall_s": value})
    assert "measured wall = " in reason(measure_from("wall")(run))
    assert "measured wall = " in reason(measures_from(["memory", "wall"])(run))


@pytest.mark.parametrize("name", ["user", "system", "cpu", "memory"])
def test_processor_time_may_be_nothing_but_never_less(name: str) -> None:
    for value in (-1.0, math.nan, math.inf):
        run = Execution("k", 0.0, 4.0, metrics=dict.fromkeys(METRICS, value))
        assert f"measured {name} = " in reason(measure_from(name)(run))
    assert measure_from(name)(Execution("k", 0.0, 4.0, metrics=dict.fromkeys(METRICS, 0.0))) == Completed(0.0)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("text", ["returned", "regex:([0-9]+)", "json:$.a"])
def test_runs_with_a_problem_have_no_number(text: str, problem: Problem, tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text('{"a": 3}')
    assert measure_from(text)(execution(problem, logs=tmp_path, value=3.0)) == problem


def test_returned() -> None:
    assert measure_from("returned")(execution(value=0.0)) == Completed(0.0)
    assert "Python function" in reason(measure_from("returned")(execution()))
    assert reason(measure_from("returned")(execution(value=float("nan")))) == "returned nan"


def test_several_numbers_returned() -> None:
    both = replace(execution(value=1.0), others=(2.0,))
    assert measures_from(["returned", "returned"])(both) == Completed(1.0, (2.0,))
    assert reason(measures_from(["returned"])(both)) == "returned 2 numbers, expected 1: one for each goal"
    assert reason(measures_from(["returned"] * 3)(both)) == "returned 2 numbers, expected 3: one for each goal"
    assert reason(measures_from(["returned"] * 2)(replace(both, others=(math.inf,)))) == "returned inf"


def test_several_measures_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("rate 7 error 3")
    run = execution(logs=tmp_path, value=5.0)
    assert measures_from(["regex:rate (.)", "regex:error (.)"])(run) == Completed(7.0, (3.0,))
    assert measures_from(["regex:rate (.)"])(run) == Completed(7.0)
    assert isinstance(measures_from(["regex:rate (.)", "regex:fault (.)"])(run), Failed)
    problem = TimedOut("late", 3.0)
    assert measures_from(["regex:rate (.)", "regex:error (.)"])(execution(problem)) == problem
    with pytest.raises(InvalidInputError, match="unknown measure 'wal'; did you mean 'wall'"):
        measures_from(["wall", "wal"])


@pytest.mark.parametrize("text", ["regex:a", "json:a"])
def test_output_that_is_not_there(text: str, tmp_path: Path) -> None:
    assert "needs a command's output" in reason(measure_from(text)(execution()))
    assert "it printed nothing" in reason(measure_from(text)(execution(logs=tmp_path)))


@pytest.mark.parametrize(
    ("pattern", "stdout", "value"),
    [
        (r"time: (\S+)", "time: 1\ntime: 2.5 s\n", 2.5),
        (r"[0-9.]+", "12 34.5 sec", 34.5),
        (r"(?:bw|BW)=([0-9.e+-]+)", "bw=1 BW=-1.5e+3", -1500.0),
        (r"^rate (.*)$", "rate 7 \nother", 7.0),
        (r"x=(.*)", "x=.5", 0.5),
        (r"x=(.*)", "x=5.", 5.0),
        (r"x=(.*)", "x=0\r\n", 0.0),
    ],
)
def test_regex(pattern: str, stdout: str, value: float, tmp_path: Path) -> None:
    assert measure(f"regex:{pattern}", tmp_path, stdout) == Completed(value)


@pytest.mark.parametrize(
    ("pattern", "stdout", "part", "whole"),
    [
        ("time: ([0-9.]+)", "time: 2.2e-05 s", "2.2", "2.2e-05"),
        ("time: ([0-9.]+)", "time: 1,234.5", "1", "1,234.5"),
        ("time: ([0-9]+)", "time: 12.5", "12", "12.5"),
        ("time: ([0-9]+)", "time: 1_000", "1", "1_000"),
        ("time: ([0-9]+)", "time: 0x1f", "0", "0x1f"),
        ("time.*([0-9.]+)", "time: 12.5", "5", "12.5"),
        ("time.*([0-9]+)", "time: 125", "5", "125"),
        ("time: -?([0-9.]+)", "time: -3", "3", "-3"),
        (r"time: 2\.2e-([0-9]+)", "time: 2.2e-05", "05", "2.2e-05"),
        (r"time: \.([0-9]+)", "time: .5", "5", ".5"),
        ("[0-9]+", "12,345", "345", "12,345"),
        ("time: ([0-9.]+).*", "time: 2E5 s", "2", "2E5"),
    ],
)
def test_a_part_of_a_number_is_no_measurement(pattern: str, stdout: str, part: str, whole: str, tmp_path: Path) -> None:
    told = f"takes {part!r} out of {whole!r}; let the group hold the whole number"
    assert told in reason(measure(f"regex:{pattern}", tmp_path, f"begin\n{stdout}\nend\n"))


@pytest.mark.parametrize(
    ("pattern", "stdout", "value"),
    [
        (r"time: (\S+)", "time: 2.2e-05 s", 2.2e-05),
        ("node([0-9]+)", "node12 up", 12.0),
        ("^([0-9]+)-", "12-05-2024", 12.0),
        ("-([0-9]+)$", "range 3-5", 5.0),
        ("took ([0-9]+)", "took 5. Then", 5.0),
        ("([0-9.]+),", "1.5,2.5,bye", 2.5),
        ("^[^,]*,([0-9.]+)", "1.5,2.5,3.5", 2.5),
        ("at ([0-9]+):", "at 12:30:01", 12.0),
        ("=([0-9]+)ms", "t=10ms", 10.0),
        ("t=([0-9]+)", "t=10, u=3", 10.0),
    ],
)
def test_a_number_beside_other_signs_is_whole(pattern: str, stdout: str, value: float, tmp_path: Path) -> None:
    assert measure(f"regex:{pattern}", tmp_path, stdout) == Completed(value)


def test_a_pattern_that_never_ends_is_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luthier.measures.output.LONGEST_SEARCH_S", 0.3)
    began = time.process_time()
    told = reason(measure("regex:(?:x+x+)+y", tmp_path, "x" * 200_000))
    assert "took longer than 0.3 s on this output; avoid repetitions within repetitions" in told
    assert time.process_time() - began < 20.0
    told = reason(measure("regex:(?:x|xx)+y|z", tmp_path, ("x" * 30 + "z\n") * 10_000))
    assert "took longer" in told


@pytest.mark.parametrize("pattern", ["a{99999999}", "(?:(?:(?:a?){100}){100}){100}", "(" * 900 + ")" * 900])
def test_patterns_that_take_much_memory_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="the pattern is too large"):
        measure_from(f"regex:{pattern}")


@pytest.mark.parametrize("text", ["wall" * 999, "regex:" + "a" * 5000, "json:" + "a." * 5000 + "a"])
def test_measures_are_short(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^measure: .* characters; at most 2000 are allowed$"):
        measure_from(text)


def test_regex_looks_at_the_error_output_last(tmp_path: Path) -> None:
    assert measure("regex:t=([0-9]+)", tmp_path, "t=1", "t=2") == Completed(1.0)
    assert measure("regex:t=([0-9]+)", tmp_path, "", "t=2") == Completed(2.0)


@pytest.mark.parametrize("found", ["1,234", "nan", "inf", "1e999", "1_000", "fast", "", "٣"])
def test_regex_matches_that_are_no_number(found: str, tmp_path: Path) -> None:
    assert "is not a finite number" in reason(measure("regex:t=(.*)", tmp_path, f"t={found}\n"))


def test_regex_without_a_match_shows_how_the_output_ended(tmp_path: Path) -> None:
    told = reason(measure("regex:time ([0-9]+)", tmp_path, "start\nno \x1b[1mtimes\n\n"))
    assert told == "no match for regex:time ([0-9]+) in its output (last line: 'no  [1mtimes')"


@pytest.mark.parametrize(
    ("pattern", "told"), [("(a", "position 0"), ("a)", "position 1"), ("*", "position 0"), ("", "empty")]
)
def test_patterns_are_checked(pattern: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        measure_from(f"regex:{pattern}")


def test_two_groups_are_ambiguous() -> None:
    with pytest.raises(InvalidInputError, match="2 groups"):
        Regex("(a)(b)")


def test_only_the_end_of_huge_outputs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(b"t=1\n123456\nt=2\n")
    assert tail(path, 100) == "t=1\n123456\nt=2\n"
    assert tail(path, 8) == "t=2\n"
    path.write_bytes(b"x" * 50)
    assert tail(path, 8) == "x" * 8
    with path.open("wb") as file:
        file.write(b"t=1\n")
        file.truncate(20 * 1024 * 1024)
        file.seek(0, 2)
        file.write(b"\nend\n")
    assert "last line: 'end'" in reason(Regex("t=([0-9])")(execution(logs=tmp_path)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back(number: float) -> None:
    assert number_in(repr(number)) == number


@given(st.text())
@example("1" * 5000)
def test_any_text_is_a_number_or_none(text: str) -> None:
    number_in(text)
    last_document(text)


FIO = """note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "jobname" : "a",
      "read" : { "iops" : 1234.5, "clat_ns" : { "percentile" : { "99.000000" : 700 } } }
    }
  ]
}
fio: done
"""


@pytest.mark.parametrize(
    ("path", "stdout", "value"),
    [
        ("$.jobs[0].read.iops", FIO, 1234.5),
        ("jobs.0.read.clat_ns.percentile['99.000000']", FIO, 700.0),
        (".jobs[-1]['read'][\"iops\"]", FIO, 1234.5),
        ("$", "12.5\n", 12.5),
        ("$", "warm\n12.5\n", 12.5),
        ("[1]", "[1, 2]", 2.0),
        ("a", '{"a": 1}\n{"a": 2}\nbye\n', 2.0),
        ("a", '[INFO] start\n{"a": 3}\n', 3.0),
        ("$['it''s']".replace("''", "\\'"), '{"it\'s": 4}', 4.0),
        ("a", '{"a": "5e1"}', 50.0),
        ("a.0", '{"a": {"0": 6}}', 6.0),
        ("größe", '{"größe": 0}', 0.0),
        ("a", '{"a": 3}\n[1] 4711\n[INFO] {"a": 4}\n[12:30:01] end {\n[2, 3] of 9\n[node7:1] {\n', 3.0),
        ("a", '{ x = [\n}\n{"a": 3} bye', 3.0),
        ("[0]", "log\n[\n  7,\n 8\n]\n", 7.0),
        ("[0]", "log\n[7.5e0]\n", 7.5),
        ("[1]", "log\n[true,\n 8]\n", 8.0),
    ],
)
def test_json(path: str, stdout: str, value: float, tmp_path: Path) -> None:
    assert measure(f"json:{path}", tmp_path, stdout) == Completed(value)


@pytest.mark.parametrize(
    ("path", "stdout", "told"),
    [
        ("b", '{"a": 1}', "'b' is not in the object with the keys a"),
        ("a.b", '{"a": 1}', "'b' is not in 1"),
        ("[2]", "[1, 2]", "2 is not in the list of 2"),
        ("[-3]", "[1, 2]", "-3 is not in the list of 2"),
        ("a", '{"a": true}', "True is not a finite number"),
        ("a", '{"a": NaN}', "nan is not a finite number"),
        ("a", '{"a": 1e999}', "inf is not a finite number"),
        ("a", '{"a": [1]}', "the list of 1 is not a finite number"),
        ("a", '{"a": null}', "None is not a finite number"),
        ("a", "a: 1", "no JSON document (last line: 'a: 1')"),
        ("a", '{"a": 1', "no complete JSON document: it breaks off before its last bracket (last line: '{\"a\": 1')"),
        ("a", "[" * 100_000, "no complete JSON document: it breaks off"),
        ("a", "[" * 9999 + "]" * 9999, "no complete JSON document: it has a number of too many digits, or is nested"),
        ("a", '{"a": ' + "9" * 5000 + "}", "no complete JSON document: it has a number of too many digits"),
        ("a", '{"b": {"c": 1,\n{"a": 2},\n{"a": 3}\n', "it breaks off before its last bracket"),
        ("a", '{"a": 1}\n{"b": [\n{"a": 2},\n', "it breaks off before its last bracket"),
        ("a", '{"b": [\nWARNING: slow\n{"a": 2}\n]}\nbye\n', "Expecting value in its line 2"),
        ("a", '{"t": nan, "b":\n{"a": 2}\n}', "Expecting value in its line 1"),
        ("a", '[1, nan,\n{"a": 2}\n]', "Expecting value in its line 1"),
        ("a", '{"a": ' + "9" * 400 + "}", "is not a finite number"),
    ],
)
def test_json_without_a_number(path: str, stdout: str, told: str, tmp_path: Path) -> None:
    assert told in reason(measure(f"json:{path}", tmp_path, stdout))


@pytest.mark.parametrize(
    "path", ["", "a..b", "$a", "a[", "a[b]", "a]", "a['b]", "a[0]b", "a.", "a b", "$.*[?]", "$[0:1]"]
)
def test_paths_are_checked(path: str) -> None:
    with pytest.raises(InvalidInputError, match="json:"):
        measure_from(f"json:{path}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


def places(document: Json, path: str = "$") -> list[tuple[str, Json]]:
    """Every place in a document with its path, built by walking it: the reference for `look_up`."""
    found = [(path, document)]
    if isinstance(document, list):
        for index, inner in enumerate(document):
            found += places(inner, f"{path}[{index}]")
            found += places(inner, f"{path}[{index - len(document)}]")
    if isinstance(document, dict):
        for key, inner in document.items():
            escaped = key.replace("\\", "\\\\").replace('"', '\\"')
            found += places(inner, f'{path}["{escaped}"]')
    return found


@given(JSON)
def test_every_place_of_a_document_can_be_named(document: Json) -> None:
    for path, there in places(document):
        assert look_up(document, parse_path(path)) is there


@given(JSON.filter(lambda document: document is not None), st.booleans())
def test_documents_are_found_however_they_are_printed(document: Json, pretty: bool) -> None:
    text = json.dumps(document, indent=2 if pretty else None)
    assert last_document(text) == document
    if isinstance(document, list | dict):
        assert last_document(f"starting\n{text}\nended {{well}}\n") == document


@given(st.text())
def test_any_path_is_read_or_refused(path: str) -> None:
    with contextlib.suppress(InvalidInputError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("wal", "did you mean 'wall'"),
        ("regexp:a", "did you mean 'regex'"),
        ("os.system", "unknown measure 'os.system'"),
    ],
)
def test_unknown_measures(text: str, hint: str) -> None:
    with pytest.raises(NotFoundError, match=hint) as caught:
        measure_from(text)
    assert all(name in str(caught.value) for name in [*MEASURES.names(), "regex:PATTERN", "json:PATH"])


@pytest.mark.parametrize("text", ["regex", "json"])
def test_patterns_need_an_argument(text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{text}:"):
        measure_from(text)


def half_the_wall(run: Execution) -> float:
    return run.metrics["wall_s"] / 2


def broken(run: Execution) -> float:
    raise KeyError("x")


def nothing(run: Execution) -> None:
    pass


def huge(_: Execution) -> float:
    return 10**5000


def no_number(_: Execution) -> float:
    return math.nan


not_a_function = 3


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def install(value: str) -> None:
        entries_of.cache_clear()
        entry = importlib.metadata.EntryPoint("mine", f"{__name__}:{value}", "luthier.measures")
        monkeypatch.setattr(
            importlib.metadata, "entry_points", lambda *, group: [entry] if group == entry.group else []
        )

    yield install
    entries_of.cache_clear()


def test_plugins(plugin: Callable[[str], None]) -> None:
    plugin("half_the_wall")
    assert measure_from("mine")(execution()) == Completed(2.0)
    assert measure_from("mine")(execution(Failed("bad"))) == Failed("bad")
    with pytest.raises(NotFoundError, match="mine"):
        measure_from("other")
    plugin("broken")
    assert reason(measure_from("mine")(execution())) == "measure 'mine' raised KeyError: 'x'"
    plugin("nothing")
    assert reason(measure_from("mine")(execution())) == "measure 'mine' returned None, expected a finite number"
    for name in ("huge", "no_number"):
        plugin(name)
        assert "expected a finite number" in reason(measure_from("mine")(execution()))


@pytest.mark.parametrize("value", ["absent", "not_a_function"])
def test_plugins_that_cannot_be_used(plugin: Callable[[str], None], value: str) -> None:
    plugin(value)
    with pytest.raises(InvalidInputError, match="plug-in 'mine'"):
        measure_from("mine")
