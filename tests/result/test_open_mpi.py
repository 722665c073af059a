"""Rules files for Open MPI, and the check of its environment variables."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.result.open_mpi import (
    ALGORITHMS,
    PREFIX,
    RULES_FILE,
    SWITCH,
    Rule,
    algorithms_for,
    ignored_settings,
    parse_rules,
    rule_of,
    rules_text,
)
from luthier.spec.component import Component, read_components
from luthier.spec.experiment_file import declared
from luthier.spec.yaml_lines import read_document

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "openmpi"
COUNTS = st.integers(0, 2**31 - 1)


@st.composite
def some_rules(draw: st.DrawFn) -> Rule:
    collective = draw(st.sampled_from(sorted(ALGORITHMS)))
    ranks = draw(st.integers(2, 9) | st.integers(2, 100_000))
    algorithm = draw(st.integers(1, len(algorithms_for(collective, ranks)) - 1))
    return Rule(collective, ranks, draw(st.integers(0, 9) | COUNTS), algorithm, draw(COUNTS), draw(COUNTS))


SETS = st.lists(some_rules(), min_size=1, unique_by=lambda rule: (rule.collective, rule.ranks, rule.size_bytes))


def decision(rules: tuple[Rule, ...], collective: str, ranks: int, size_bytes: int) -> Rule | None:
    """What Open MPI does: the last communicator size that is not above, else the first; likewise the message size."""
    own = [rule for rule in rules if rule.collective == collective]
    if not own:
        return None
    sizes = [rule.ranks for rule in own]
    chosen = max((known for known in sizes if known <= ranks), default=sizes[0])
    return [rule for rule in own if rule.ranks == chosen and rule.size_bytes <= size_bytes][-1]


def intended(rules: list[Rule], collective: str, ranks: int, size_bytes: int) -> Rule | None:
    fitting = [
        rule for rule in rules if (rule.collective, rule.ranks) == (collective, ranks) and rule.size_bytes <= size_bytes
    ]
    return max(fitting, key=lambda rule: rule.size_bytes, default=None)


@given(rules=SETS, data=st.data())
def test_a_rule_holds_for_its_ranks_and_sizes_and_nowhere_else(rules: list[Rule], data: st.DataObject) -> None:
    written = parse_rules(rules_text(rules))
    one = data.draw(st.sampled_from(rules))
    ranks = max(1, one.ranks + data.draw(st.integers(-2, 2)))
    size_bytes = max(0, one.size_bytes + data.draw(st.integers(-2, 2)))
    found = decision(written, one.collective, ranks, size_bytes)
    expected = intended(rules, one.collective, ranks, size_bytes)
    assert (found if found is None or found.algorithm else None) == expected


@given(rules=SETS)
def test_nothing_is_added_but_open_mpi_s_own_decision(rules: list[Rule]) -> None:
    written = parse_rules(rules_text(rules))
    assert sorted(map(repr, rules)) == sorted(repr(rule) for rule in written if rule.algorithm)
    assert rules_text(reversed(rules)) == rules_text(rules)


def test_the_text() -> None:
    text = rules_text([Rule("allreduce", 4, 1024, 5, 0, 65536)])
    numbers = [line.partition(" #")[0] for line in text.splitlines()]
    assert numbers == ["1", "2", "3", "1", "1", "0 0 0 0", "4", "2", "0 0 0 0", "1024 5 0 65536", "5", "1", "0 0 0 0"]
    assert "1024 5 0 65536 # segmented_ring" in text


def test_a_configuration_becomes_a_rule() -> None:
    name = f"{PREFIX}bcast_algorithm"
    config = {name: 2, f"{name}_chain_fanout": 3, f"{name}_segmentsize": 4096, SWITCH: 1}
    assert rule_of("bcast", 8, 65536, config) == Rule("bcast", 8, 65536, 2, 3, 4096)
    for collective in ("allgather", "alltoall", "gather"):
        key = f"{PREFIX}{collective}_algorithm"
        assert rule_of(collective, 8, 1024, {key: 3}) == Rule(collective, 8, 8192, 3)
    ring = {f"{PREFIX}reduce_scatter_algorithm": "ring"}
    assert rule_of("reduce_scatter", 8, 1024, ring) == Rule("reduce_scatter", 8, 1024, 3)
    assert rule_of("bcast", 8, 65536, {**config, name: "chain"}) == rule_of("bcast", 8, 65536, config)
    assert rule_of("bcast", 8, 65536, {}).algorithm == 0
    with pytest.raises(InvalidInputError, match="is 'ring'; give 0 to 9, or one of ignore, basic_linear"):
        rule_of("bcast", 8, 65536, {name: "ring"})
    with pytest.raises(InvalidInputError, match=r"is 1\.5; a rules file has whole numbers"):
        rule_of("bcast", 8, 65536, {f"{name}_segmentsize": 1.5})
    with pytest.raises(InvalidInputError, match="'scan' is not a supported collective"):
        rule_of("scan", 8, 65536, {})


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (list, "at least one"),
        (lambda: [Rule("bcast", 1, 0, 1)], "1 ranks; give 2"),
        (lambda: [Rule("bcast", 4, 8, 1), Rule("bcast", 4, 8, 2)], "two rules for 4 ranks and 8 bytes"),
        (lambda: [Rule("gather", 4, 0, 4)], "unknown algorithm 4; give 0 to 3"),
        (lambda: [Rule("gather", 4, 0, -1)], "algorithm is -1"),
        (lambda: [Rule("allgather", 4, 0, 6)], "two_proc for 4 ranks; it works with 2 ranks only"),
        (lambda: [Rule("gather", 4, 2**31, 1)], "size_bytes is 2147483648"),
    ],
)
def test_what_cannot_be_written(rules: "object", problem: str) -> None:
    assert callable(rules)
    with pytest.raises(InvalidInputError, match=problem):
        rules_text(rules())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: it ends where the number of collectives"),
        ("1\n2 # allreduce\n1\n4\n2\n0 1 0 0\n", "line 6: it ends where a message size"),
        ("1\n2\n1\n4\n1\n8 1 0 0\n", "line 6: the first message size is 8; it must be 0"),
        ("1\n2\n1\n4\n1\n0 7 0 0\n", "line 6: allreduce: unknown algorithm 7"),
        ("1\n3\n1\n0\n1\n0 5 0 0\n", "line 6: alltoall: two_proc for 0 ranks"),
        ("1\n22\n", "line 2: '22' is not the number of a collective; give a whole number from 0 to 21"),
        ("1\n2\n1\n4\n1\n0 ring 0 0\n", "line 6: 'ring' is not an algorithm"),
        ("1\n2\n1\n4\n1\n0 1 0 0\n4 4 0 0\n", "line 7: '4' comes after the last rule"),
    ],
)
def test_a_bad_file_is_named_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parse_rules(text)


@given(text=st.text(alphabet="0123456789 \n#x", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        rules = parse_rules(text)
    except InvalidInputError:
        return
    assert all(rule.algorithm < len(ALGORITHMS[rule.collective]) for rule in rules)


def test_rules_of_other_collectives_are_counted_through() -> None:
    assert parse_rules("2\n4 # alltoallv\n1\n0\n1\n0 99 0 0\n7\n1\n0\n1\n0 6 0 0") == (Rule("bcast", 0, 0, 6),)


ON = {SWITCH: "1"}
RING = {f"{PREFIX}allreduce_algorithm": "4"}


def test_settings_that_are_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text(rules_text([Rule("bcast", 4, 0, 1)]))
    assert ignored_settings({"PATH": "/bin", "OMPI_MCA_btl": "self"}) == []
    assert ignored_settings({SWITCH: "0"}) == []
    for on in ("1", "true", "yes", "Enabled"):
        assert ignored_settings({SWITCH: on, **RING}) == []
    assert ignored_settings({**ON, f"{PREFIX}allreduce_algorithm": "ring"}) == []
    assert ignored_settings({**ON, **RING, RULES_FILE: str(path)}, reads_rules=True) == []
    assert ignored_settings({**ON, RULES_FILE: str(path), f"{PREFIX}bcast_algorithm": "0"}, reads_rules=True) == []


@pytest.mark.parametrize("off", [{}, {SWITCH: "0"}, {SWITCH: "no"}, {SWITCH: ""}])
def test_the_switch_is_missed(off: dict[str, str]) -> None:
    assert ignored_settings({**off, **RING}) == [f"{PREFIX}allreduce_algorithm has no effect without {SWITCH}=1"]


@pytest.mark.parametrize("text", ["7", "-1", "rings", ""])
def test_an_unknown_algorithm_is_named(text: str) -> None:
    [line] = ignored_settings({**ON, f"{PREFIX}allreduce_algorithm": text})
    assert f"allreduce_algorithm={text} is ignored" in line
    assert "give 0 to 6" in line


def test_what_is_wrong_with_the_rules_file(tmp_path: Path) -> None:
    path = tmp_path / "rules"
    [line] = ignored_settings({**ON, RULES_FILE: str(path)}, reads_rules=True)
    assert line == f"{RULES_FILE}={path} is ignored: No such file or directory"
    path.write_text("1\n2\n")
    [line] = ignored_settings({**ON, RULES_FILE: str(path)}, reads_rules=True)
    assert f"{path} is ignored at least in part: rules file, line 2: it ends" in line
    path.write_text(rules_text([Rule("allreduce", 4, 0, 1), Rule("bcast", 4, 0, 1)]))
    [line] = ignored_settings({**ON, **RING, RULES_FILE: str(path)}, reads_rules=True)
    assert line == f"{PREFIX}allreduce_algorithm=4 is ignored where {path} has a rule for allreduce"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/", "a\0b"])
def test_a_rules_file_that_is_no_regular_file_is_not_read(path: str) -> None:
    [line] = ignored_settings({**ON, RULES_FILE: path}, reads_rules=True)
    assert line.startswith(f"{RULES_FILE}={path} is ")


def test_a_rules_file_that_never_begins_or_is_too_long_is_not_read(tmp_path: Path) -> None:
    pipe, long = tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    long.write_bytes(b"0\n" * 600_000)
    for path, problem in ((pipe, "it is not a regular file"), (long, "it is longer than 1000000 bytes")):
        [line] = ignored_settings({**ON, RULES_FILE: str(path)}, reads_rules=True)
        assert line == f"{RULES_FILE}={path} is ignored at least in part: {problem}"


def test_no_rules_file_is_read_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text("secret")
    assert ignored_settings({**ON, RULES_FILE: str(path)}) == []


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
def test_the_component_files_know_every_algorithm(collective: str) -> None:
    parameters = read_components(EXAMPLES / f"{collective}.yaml")[collective].parameters
    assert parameters[SWITCH].default == 1
    assert parameters[f"{PREFIX}{collective}_algorithm"].values == list(ALGORITHMS[collective])
    assert ignored_settings({name: str(one.default) for name, one in parameters.items()}) == []


def test_the_example_tries_what_the_component_file_declares() -> None:
    def registered(name: str) -> Component:
        raise AssertionError(f"{name} was looked for among the registered ones")

    found = declared(read_document(EXAMPLES / "experiment.yaml"), EXAMPLES, ROOT, registered)
    assert (found.experiment.space.size, found.notes) == (58, ())  # 4 that look at nothing else, 5 * 6, and 4 * 6


def test_the_python_of_the_documentation() -> None:
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "open-mpi.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert Rule("bcast", 4, 262144, 3, 0, 16384) in names["rules"]  # type: ignore[operator]  # the documented tuple
    assert f"# {names['lines']}" in code
