"""Open MPI's collectives: rules files for its `tuned` module, and settings that it ignores without a message.

The behaviour described here was observed with Open MPI 4.1, by counting messages
(`tests/testbeds/test_collectives.py`).
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from luthier.errors import InvalidInputError
from luthier.trial import Value

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "allgather": ("ignore", "linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"),
    "allreduce": (
        "ignore",
        "basic_linear",
        "nonoverlapping",
        "recursive_doubling",
        "ring",
        "segmented_ring",
        "rabenseifner",
    ),
    "alltoall": ("ignore", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
    "bcast": (
        "ignore",
        "basic_linear",
        "chain",
        "pipeline",
        "split_binary_tree",
        "binary_tree",
        "binomial",
        "knomial",
        "scatter_allgather",
        "scatter_allgather_ring",
    ),
    "gather": ("ignore", "basic_linear", "binomial", "linear_sync"),
    "reduce": (
        "ignore",
        "linear",
        "chain",
        "pipeline",
        "binary",
        "binomial",
        "in-order_binary",
        "rabenseifner",
    ),
    "reduce_scatter": ("ignore", "non-overlapping", "recursive_halving", "ring", "butterfly"),
}
"""The names of a collective's algorithms, in the order of their numbers; 0 leaves the decision to Open MPI."""

PREFIX = "OMPI_MCA_coll_tuned_"
SWITCH, RULES_FILE = f"{PREFIX}use_dynamic_rules", f"{PREFIX}dynamic_rules_filename"

_NUMBERS = {
    "allgather": 0,
    "allreduce": 2,
    "alltoall": 3,
    "bcast": 7,
    "gather": 9,
    "reduce": 11,
    "reduce_scatter": 12,
}
_COUNTS_ALL_RANKS = ("allgather", "alltoall", "gather")  # their rules are by the data of all ranks together
_FOR_TWO = "two_proc"  # ends the program unless the communicator has two ranks
_COLLECTIVES = 22  # the numbers that a rules file may name are 0 to 21
_LARGEST = 2**31 - 1  # Open MPI reads a C int
_MOST_BYTES = 1_000_000  # of a rules file
_ON = re.compile(r"t|true|enabled|yes|y|0*[1-9]\d*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a rules file for messages of `size_bytes` or more, in communicators of `ranks` or more.

    The size is the one that Open MPI uses: what one rank sends, for allgather, alltoall and gather times the ranks.
    """

    collective: str
    ranks: int
    size_bytes: int
    algorithm: int
    fan_out: int = 0
    segment_bytes: int = 0

    def __post_init__(self) -> None:
        """Reject what Open MPI does not support."""
        names = _names_of(self.collective)
        for name in ("ranks", "size_bytes", "algorithm", "fan_out", "segment_bytes"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _LARGEST:
                raise InvalidInputError(
                    f"{self.collective}: {name} is {number!r}; give a whole number from 0 to {_LARGEST}"
                )
        if self.algorithm >= len(names):
            raise InvalidInputError(
                f"{self.collective}: unknown algorithm {self.algorithm}; give 0 to {len(names) - 1}"
            )
        if names[self.algorithm] == _FOR_TWO and self.ranks != 2:
            raise InvalidInputError(
                f"{self.collective}: {_FOR_TWO} for {self.ranks} ranks; it works with 2 ranks only, give another one"
            )


def algorithms_for(collective: str, ranks: int) -> tuple[str, ...]:
    """The algorithms that work with this number of ranks; with others Open MPI ends the program."""
    return tuple(name for name in _names_of(collective) if name != _FOR_TWO or ranks == 2)


def _names_of(collective: str) -> tuple[str, ...]:
    """The algorithms of a collective, by number."""
    if collective not in ALGORITHMS:
        raise InvalidInputError(f"{collective!r} is not a supported collective; give one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[collective]


def rule_of(collective: str, ranks: int, size_bytes: int, config: Mapping[str, Value]) -> Rule:
    """The rule with the same effect as environment variables have on messages of one size.

    `size_bytes` is the size for one rank, as in the tables of the OSU benchmarks.
    """
    names = _names_of(collective)
    key = f"{PREFIX}{collective}_algorithm"
    algorithm = _algorithm(collective, str(config.get(key, 0)))
    if algorithm is None:
        raise InvalidInputError(f"{key} is {config[key]!r}; give 0 to {len(names) - 1}, or one of {', '.join(names)}")
    fan_out, segment_bytes = (_whole(config, f"{key}_{what}") for what in ("chain_fanout", "segmentsize"))
    counted = size_bytes * ranks if collective in _COUNTS_ALL_RANKS else size_bytes
    return Rule(collective, ranks, counted, algorithm, fan_out, segment_bytes)


def _whole(config: Mapping[str, Value], key: str) -> int:
    value = config.get(key, 0)
    if not isinstance(value, int):
        raise InvalidInputError(f"{key} is {value!r}; a rules file has whole numbers only")
    return value


def rules_text(rules: Iterable[Rule]) -> str:
    """A rules file for Open MPI.

    A rule applies to its size and larger ones up to the next rule, in communicators of exactly its number of ranks. For
    smaller messages and other communicators, Open MPI decides.
    """
    ordered = sorted(rules, key=_place)
    for one, other in pairwise(ordered):
        if _place(one) == _place(other):
            raise InvalidInputError(
                f"{one.collective}: two rules for {one.ranks} ranks and {one.size_bytes} bytes; give one of them"
            )
    if not ordered:
        raise InvalidInputError("a rules file needs at least one rule; none was given")
    if alone := [rule for rule in ordered if rule.ranks < 2]:
        raise InvalidInputError(f"{alone[0].collective}: a rule for {alone[0].ranks} ranks; give 2 or more")
    collectives = [(name, list(group)) for name, group in groupby(ordered, key=lambda rule: rule.collective)]
    lines = [f"{len(collectives)} # collectives"]
    for name, group in collectives:
        lines += _collective_lines(name, group)
    return "\n".join(lines) + "\n"


def _place(rule: Rule) -> tuple[int, int, int]:
    return _NUMBERS[rule.collective], rule.ranks, rule.size_bytes


def _collective_lines(name: str, rules: list[Rule]) -> Iterator[str]:
    """The lines of one collective. Open MPI takes its first rule for smaller communicators and its last for larger."""
    known = {ranks: list(group) for ranks, group in groupby(rules, key=lambda rule: rule.ranks)}
    sizes = sorted({1, *known, *(ranks + 1 for ranks in known)})
    yield f"{_NUMBERS[name]} # {name}"
    yield f"{len(sizes)} # communicator sizes"
    for ranks in sizes:
        own = known.get(ranks, [])
        if not own or own[0].size_bytes > 0:  # without a rule for 0 bytes the whole file is ignored
            own = [Rule(name, ranks, 0, 0), *own]
        yield f"{ranks} # ranks"
        yield f"{len(own)} # message sizes"
        for rule in own:
            what = "Open MPI decides" if rule.algorithm == 0 else ALGORITHMS[name][rule.algorithm]
            yield f"{rule.size_bytes} {rule.algorithm} {rule.fan_out} {rule.segment_bytes} # {what}"


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of a rules file for the supported collectives; those for others are skipped.

    An `InvalidInputError` says why Open MPI would ignore the file or a part of it, or would abort the program.
    """
    reader = _Reader(text)
    rules: list[Rule] = []
    for _ in range(reader.next("the number of collectives", _COLLECTIVES)):
        number = reader.next("the number of a collective", _COLLECTIVES - 1)
        name = next((name for name, known in _NUMBERS.items() if known == number), None)
        for _ in range(reader.next("the number of communicator sizes")):
            ranks = reader.next("a communicator size")
            for position in range(reader.next("the number of message sizes")):
                fields = [reader.next(what) for what in ("a message size", "an algorithm", "a fan-out", "a segment")]
                if position == 0 and fields[0] != 0:
                    raise reader.problem(f"the first message size is {fields[0]}; it must be 0")
                if name is not None:
                    rules.append(reader.rule(name, ranks, fields))
    reader.end()
    return tuple(rules)


class _Reader:
    """Reads the numbers of a rules file, one after the other."""

    def __init__(self, text: str) -> None:
        lines = enumerate(text.split("\n"), start=1)
        self._words = [(number, word) for number, line in lines for word in line.partition("#")[0].split()]
        self._at = 0
        self._line = 1

    def next(self, what: str, most: int = _LARGEST) -> int:
        """The next number, which is expected to be `what`."""
        if self._at == len(self._words):
            raise self.problem(f"it ends where {what} is expected")
        self._line, word = self._words[self._at]
        self._at += 1
        if re.fullmatch(r"[0-9]{1,10}", word) is None or int(word) > most:
            raise self.problem(f"{word!r} is not {what}; give a whole number from 0 to {most}")
        return int(word)

    def rule(self, name: str, ranks: int, fields: list[int]) -> Rule:
        """The rule of a line."""
        try:
            return Rule(name, ranks, *fields)
        except InvalidInputError as error:
            raise self.problem(str(error)) from None

    def end(self) -> None:
        """Raise if anything is left."""
        if self._at < len(self._words):
            self._line, word = self._words[self._at]
            raise self.problem(f"{word!r} comes after the last rule; correct the counts")

    def problem(self, what: str) -> InvalidInputError:
        """An error at the line that was read last."""
        return InvalidInputError(f"rules file, line {self._line}: {what}")


def ignored_settings(environment: Mapping[str, str], *, reads_rules: bool = False) -> list[str]:
    """One line for each of these environment variables that Open MPI's collectives would ignore.

    The rules file that they name is read only with `reads_rules`, which is for variables of users who may read the
    files of this process. The options `--mca` of mpirun and Open MPI's own configuration files are not checked.
    """
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX)}
    path = given.get(RULES_FILE, "")
    forced = {name: given[key] for name in ALGORITHMS if (key := f"{PREFIX}{name}_algorithm") in given}
    found = []
    settings = sorted(name for name in given if name != SWITCH)
    if settings and not _ON.fullmatch(given.get(SWITCH, "")):
        found.append(f"{settings[0]} has no effect without {SWITCH}=1")
    for name, text in forced.items():
        if _algorithm(name, text) is None:
            known = len(ALGORITHMS[name]) - 1
            found.append(f"{PREFIX}{name}_algorithm={text} is ignored: unknown algorithm; give 0 to {known}")
    if path and reads_rules:
        found += _ignored_by_rules(path, forced)
    return found


def _ignored_by_rules(path: str, forced: Mapping[str, str]) -> Iterator[str]:
    try:
        rules = parse_rules(_rules_file(path))
    except InvalidInputError as error:
        yield f"{RULES_FILE}={path} is ignored at least in part: {error}"
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        yield f"{RULES_FILE}={path} is ignored: {getattr(error, 'strerror', None) or error}"
    else:
        ruled = {rule.collective for rule in rules if rule.algorithm != 0}
        for name in sorted(ruled & {name for name, text in forced.items() if _algorithm(name, text)}):
            yield f"{PREFIX}{name}_algorithm={forced[name]} is ignored where {path} has a rule for {name}"


def _rules_file(path: str) -> str:
    """The text of a rules file; devices and pipes are not read, because they may block or never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InvalidInputError("it is not a regular file")
        text = stream.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise InvalidInputError(f"it is longer than {_MOST_BYTES} bytes")
    return text.decode("utf-8", "replace")


def _algorithm(collective: str, text: str) -> int | None:
    """The number of an algorithm that is given by number or name; None if it is unknown."""
    names = ALGORITHMS[collective]
    if text in names:
        return names.index(text)
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) and int(text) < len(names) else None
