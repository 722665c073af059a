"""Open MPI does what settings and rules files say: seen by who sends how many messages, not by how long it takes."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import missing

from luthier.result.open_mpi import (
    ALGORITHMS,
    PREFIX,
    RULES_FILE,
    SWITCH,
    Rule,
    algorithms_for,
    ignored_settings,
    rule_of,
    rules_text,
)
from luthier.trial import Value

REPEATS = 50

# One machine, more ranks than processors, perhaps root.
QUIET = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl": "self,vader",
}
Pairs = dict[tuple[int, int], int]


@dataclass(frozen=True)
class Mpi:
    """Runs collbench and looks at its messages."""

    collbench: Path
    folder: Path

    def run(
        self, *words: object, ranks: int = 4, settings: Mapping[str, object] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
        environment |= QUIET | {name: str(value) for name, value in (settings or {}).items()}
        command = ["mpirun", "-n", str(ranks), str(self.collbench), *map(str, words)]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)

    def messages(self, collective: str, size: int, settings: Mapping[str, object], *, ranks: int = 4) -> Pairs:
        """How many messages a call and its barrier send, by sender and receiver."""
        monitoring = {"enable": 2, "enable_output": 3, "filename": self.folder / "messages"}
        settings = {**settings, **{f"OMPI_MCA_pml_monitoring_{name}": value for name, value in monitoring.items()}}
        ended = self.run(collective, "-m", size, "-r", REPEATS, "-w", 0, ranks=ranks, settings=settings)
        assert ended.returncode == 0, ended.stderr
        counted: Pairs = {}
        for path in self.folder.glob("messages.*.prof"):
            found = re.findall(r"^[EI]\t(\d+)\t(\d+)\t\d+ bytes\t(\d+) msgs", path.read_text(), re.MULTILINE)
            counted |= {(int(sender), int(receiver)): int(count) for sender, receiver, count in found}
            path.unlink()
        # What remains are the few messages that gather the times at the end.
        return {pair: count // REPEATS for pair, count in counted.items() if count >= REPEATS}


@pytest.fixture
def mpi(collbench: Path, tmp_path: Path) -> Mpi:
    known = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    if "(Open MPI) 4." not in known:
        missing(f"these tests count the messages of Open MPI 4, and this is {known.splitlines()[0]}")
    return Mpi(collbench, tmp_path)


def on(**settings: object) -> dict[str, object]:
    return {SWITCH: 1, **{f"{PREFIX}{name}": value for name, value in settings.items()}}


def ruled(folder: Path, *rules: Rule) -> dict[str, object]:
    path = folder / "rules.conf"
    path.write_text(rules_text(rules))
    return {SWITCH: 1, RULES_FILE: path}


def extra(one: Pairs, other: Pairs) -> int:
    """How many messages more; the barrier of both cancels out."""
    return sum(one.values()) - sum(other.values())


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
def test_prints_a_table_that_the_measure_reads(mpi: Mpi, collective: str) -> None:
    ended = mpi.run(collective, "-m", "1k:4k", "-r", 5, "-w", 1, ranks=2)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split() for line in ended.stdout.splitlines() if not line.startswith("#")]
    assert [row[0] for row in rows] == ["1024", "2048", "4096"]
    for _, median, shortest, longest in rows:
        assert 0 < float(shortest) <= float(median) <= float(longest)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["scan"], "there is no 'scan'; name allgather"),
        ([], "name one collective"),
        (["bcast", "-m", "64q"], "-m: '64q' is no size"),
        (["bcast", "-m", "4k:1k"], "-m: '1k' is no size from 4k on"),
        (["bcast", "-r", "0"], "-r: '0' is no number of repeats"),
        (["bcast", "-w", "-1"], "-w: '-1' is no number of calls"),
        (["bcast", "-z"], "usage: collbench"),
    ],
)
def test_says_once_what_is_wrong(mpi: Mpi, words: list[str], problem: str) -> None:
    ended = mpi.run(*words, ranks=2)
    assert ended.returncode == 2
    assert ended.stderr.count(f"collbench: {problem}") == 1
    assert ended.stdout == ""


def test_the_algorithms_are_those_of_this_open_mpi(mpi: Mpi) -> None:
    asked = ["ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    for collective, names in ALGORITHMS.items():
        found = re.findall(rf"coll_tuned_{collective}_algorithm:enumerator:value:(\d+):(\S+)", text)
        assert found == [(str(number), name) for number, name in enumerate(names)]


def test_an_algorithm_is_obeyed_only_with_the_switch(mpi: Mpi) -> None:
    default = mpi.messages("allreduce", 1024, {})
    linear, ring = (mpi.messages("allreduce", 1024, on(allreduce_algorithm=name)) for name in ("basic_linear", "ring"))
    assert extra(ring, linear) == 24 - 6  # to the neighbour and on, twice 3 times for 4 ranks; 3 to the root and back
    assert ring != default
    unswitched: dict[str, object] = {f"{PREFIX}allreduce_algorithm": "ring"}
    assert mpi.messages("allreduce", 1024, unswitched) == default
    assert ignored_settings({name: str(value) for name, value in unswitched.items()}) != []


def test_segments_and_fan_out_are_obeyed_from_variables_and_rules(mpi: Mpi, tmp_path: Path) -> None:
    whole = mpi.messages("bcast", 4096, on(bcast_algorithm="pipeline"))
    for segment in (1024, 512):
        config = {f"{PREFIX}bcast_algorithm": "pipeline", f"{PREFIX}bcast_algorithm_segmentsize": segment}
        pieces = mpi.messages("bcast", 4096, {SWITCH: 1, **config})
        assert extra(pieces, whole) == 3 * (4096 // segment - 1)
        assert mpi.messages("bcast", 4096, ruled(tmp_path, rule_of("bcast", 4, 4096, config))) == pieces
    chains = {}
    for fan_out in (1, 2):
        config = {f"{PREFIX}bcast_algorithm": "chain", f"{PREFIX}bcast_algorithm_chain_fanout": fan_out}
        chains[fan_out] = mpi.messages("bcast", 4096, {SWITCH: 1, **config})
        assert mpi.messages("bcast", 4096, ruled(tmp_path, rule_of("bcast", 4, 4096, config))) == chains[fan_out]
    moved = Counter(chains[1])
    moved.subtract(chains[2])
    assert {pair: count for pair, count in moved.items() if count} == {(2, 3): 1, (0, 3): -1}


# What the sizes and the numbers of ranks around it make of a rule for 4 ranks and 1024 bytes.
@pytest.mark.parametrize(("ranks", "size", "obeyed"), [(4, 1024, True), (4, 1020, False), (3, 1024, False)])
@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("allgather", "ring"),
        ("allreduce", "ring"),
        ("alltoall", "linear"),
        ("bcast", "chain"),
        ("gather", "linear_sync"),
        ("reduce", "pipeline"),
        ("reduce_scatter", "non-overlapping"),
    ],
)
def test_a_rule_is_obeyed_where_it_was_measured(
    mpi: Mpi, tmp_path: Path, collective: str, algorithm: str, ranks: int, size: int, *, obeyed: bool
) -> None:
    key = f"{PREFIX}{collective}_algorithm"
    config: dict[str, Value] = {key: algorithm, f"{key}_chain_fanout": 1, f"{key}_segmentsize": 256}
    rules = ruled(tmp_path, rule_of(collective, 4, 1024, config))
    expected = mpi.messages(collective, size, {SWITCH: 1, **config} if obeyed else {}, ranks=ranks)
    other = mpi.messages(collective, size, {} if obeyed else {SWITCH: 1, **config}, ranks=ranks)
    assert mpi.messages(collective, size, rules, ranks=ranks) == expected
    assert other != expected


# Messages between 4 ranks and their barrier. What Open MPI decides itself sends the same as one of the algorithms.
COUNTED = {
    "allgather": {"linear": 12, "bruck": 14, "recursive_doubling": 14, "ring": 18, "neighbor": 14},
    "alltoall": {"linear": 11, "pairwise": 18, "modified_bruck": 14, "linear_sync": 18},
    "reduce_scatter": {"non-overlapping": 12, "recursive_halving": 14, "ring": 18, "butterfly": 16},
}


@pytest.mark.parametrize("collective", COUNTED)
def test_every_algorithm_is_used_and_segments_and_fan_outs_change_nothing(mpi: Mpi, collective: str) -> None:
    assert tuple(COUNTED[collective]) == algorithms_for(collective, 4)[1:]
    key = f"{collective}_algorithm"
    others = {f"{key}_segmentsize": 256, f"{key}_tree_fanout": 2, f"{key}_chain_fanout": 1}
    seen = {name: mpi.messages(collective, 4096, on(**{key: name})) for name in COUNTED[collective]}
    assert {name: sum(pairs.values()) for name, pairs in seen.items()} == COUNTED[collective]
    for name, pairs in seen.items():
        assert mpi.messages(collective, 4096, on(**{key: name}, **others)) == pairs
    if collective == "allgather":
        assert len({str(sorted(pairs.items())) for pairs in seen.values()}) == len(seen)


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_two_proc_works_with_two_ranks_only(mpi: Mpi, collective: str) -> None:
    ended = [
        mpi.run(collective, settings=on(**{f"{collective}_algorithm": "two_proc"}), ranks=ranks) for ranks in (2, 3)
    ]
    assert [one.returncode == 0 for one in ended] == [True, False]
    assert [algorithms_for(collective, ranks)[-1] == "two_proc" for ranks in (2, 3)] == [True, False]


def test_what_the_check_says_of_rules_files_is_so(mpi: Mpi, tmp_path: Path) -> None:
    def warnings(settings: Mapping[str, object]) -> list[str]:
        return ignored_settings({name: str(value) for name, value in settings.items()}, reads_rules=True)

    default = mpi.messages("allreduce", 1024, {})
    beaten = {**ruled(tmp_path, Rule("allreduce", 4, 0, 1)), f"{PREFIX}allreduce_algorithm": "ring"}
    assert mpi.messages("allreduce", 1024, beaten) == mpi.messages("allreduce", 1024, on(allreduce_algorithm=1))
    assert "is ignored where" in warnings(beaten)[0]
    undecided = {**ruled(tmp_path, Rule("allreduce", 4, 0, 0)), f"{PREFIX}allreduce_algorithm": "ring"}
    assert mpi.messages("allreduce", 1024, undecided) == mpi.messages("allreduce", 1024, on(allreduce_algorithm=4))
    assert warnings(undecided) == []
    absent: dict[str, object] = {SWITCH: 1, RULES_FILE: tmp_path / "absent"}
    assert mpi.messages("allreduce", 1024, absent) == default
    assert "No such file" in warnings(absent)[0]
    unknown = on(allreduce_algorithm=17)
    assert mpi.messages("allreduce", 1024, unknown) == default
    assert "unknown algorithm" in warnings(unknown)[0]
    wrong = tmp_path / "wrong"
    wrong.write_text("1\n2\n1\n4\n1\n8 4 0 0\n")
    assert mpi.messages("allreduce", 1024, {SWITCH: 1, RULES_FILE: wrong}) == default
    assert "must be 0" in warnings({SWITCH: 1, RULES_FILE: wrong})[0]
    wrong.write_text("1\n2\n1\n4\n1\n0 17 0 0\n")
    assert mpi.run("allreduce", settings={SWITCH: 1, RULES_FILE: wrong}).returncode != 0
    assert "unknown algorithm 17" in warnings({SWITCH: 1, RULES_FILE: wrong})[0]
