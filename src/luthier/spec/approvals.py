"""Which variables of a component may be set in jobs of other people: only what an administrator approved.

The allowed values of a variable are written with spaces between them: texts (`close spread`, `""` for the empty one),
and ranges of numbers with both ends (`1..64`, `4k..1M`, `0.5..2.0`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luthier.errors import InvalidInputError, SpaceError
from luthier.space import Choice, parse_quantity
from luthier.space.syntax import suggest
from luthier.spec.component import Component, ComponentParameter, version_of
from luthier.spec.environment_rules import problem_of_variable
from luthier.spec.grids import parameter_of
from luthier.store.server_store import Approval

LONGEST_VALUES = 2_000
"""Most characters of the allowed values of one variable."""

_EMPTY = '""'
_THREADS, _BYTES, _SWITCH = "1..4096", "0..1073741824", "true false TRUE FALSE"
_COLLECTIVES = (
    "(allgather|allgatherv|allreduce|alltoall|alltoallv|barrier|bcast|exscan|gather|reduce|reduce_scatter|"
    "reduce_scatter_block|scan|scatter)"
)
_HARMLESS: Mapping[str, str] = {
    "OMP_NUM_THREADS|OMP_THREAD_LIMIT": _THREADS,
    "OMP_DYNAMIC|OMP_NESTED|MKL_DYNAMIC": _SWITCH,
    "OMP_MAX_ACTIVE_LEVELS": "1..64",
    "OMP_PROC_BIND": f"{_SWITCH} primary master close spread",
    "OMP_PLACES": "threads cores sockets",
    "OMP_WAIT_POLICY": "active passive ACTIVE PASSIVE",
    "OMP_SCHEDULE": "static dynamic guided auto",
    "(MKL|OPENBLAS|GOTO|BLIS|NUMEXPR)_NUM_THREADS": _THREADS,
    "KMP_BLOCKTIME": "0..2147483647 infinite",
    "GOMP_SPINCOUNT": "0..1000000000000 infinite",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "0..1 true false",
    f"OMPI_MCA_coll_tuned_{_COLLECTIVES}_algorithm": "0..100",
    f"OMPI_MCA_coll_tuned_{_COLLECTIVES}_algorithm_segmentsize": _BYTES,
    f"OMPI_MCA_coll_tuned_{_COLLECTIVES}_algorithm_(tree|chain)_fanout": "0..65536",
    f"OMPI_MCA_coll_tuned_{_COLLECTIVES}_algorithm_max_requests": "0..65536",
    "I_MPI_ADJUST_(ALLGATHER|ALLGATHERV|ALLREDUCE|ALLTOALL|ALLTOALLV|BARRIER|BCAST|GATHER|REDUCE|SCATTER)": "0..100",
}
"""Names and values that can name no program, library, file or host. Add one only if that is certain."""


@dataclass(frozen=True, slots=True)
class ComponentVariable:
    """A variable that a component sets.

    `declared` are the values that the component itself describes, `harmless` those of the table of variables that are
    known to be harmless; None where there are none. With a `problem` it is never set in jobs of others.
    """

    name: str
    declared: str | None
    harmless: str | None
    problem: str | None
    approval: Approval | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can be approved, and is not."""
        return self.problem is None and self.approval is None

    @property
    def proposed(self) -> str | None:
        """The values to approve if no others are given."""
        return self.harmless or self.declared


def variables_of(component: Component, approvals: Sequence[Approval] = ()) -> list[ComponentVariable]:
    """The variables that a component sets, with what is approved."""
    version, approved = version_of(component), {one.variable: one for one in approvals}
    found = []
    for name, parameter in component.parameters.items():
        if not parameter.env_var:
            continue
        approval = approved.get(name)
        if approval is not None and approval.version != version:
            approval = None
        declared, problem = _declared(name, parameter), problem_of_variable(name, "1")
        found.append(ComponentVariable(name, declared, None if problem else harmless(name), problem, approval))
    return found


def harmless(name: str) -> str | None:
    """The values of a variable that are known to be harmless; None if it is not in the table."""
    return next((values for pattern, values in _HARMLESS.items() if re.fullmatch(pattern, name)), None)


def problem_of_values(name: str, allowed: str) -> str | None:
    """Why a variable cannot be approved with these values; None if it can."""
    items = allowed.split()
    if not items or len(allowed) > LONGEST_VALUES:
        what = "no values" if not items else f"more than {LONGEST_VALUES} characters of values"
        return f"{name} has {what}; write texts and ranges, such as: close spread 1..64"
    for item in items:
        ends = _ends(item)
        if ends is not None and ends[0] > ends[1]:
            return f"{name}: the range {item} is empty; swap its ends"
        texts = item.split("..") if ends is not None else ["" if item == _EMPTY else item]
        if problem := next(filter(None, (problem_of_variable(name, text) for text in texts)), None):
            return problem
    return None


def chosen(variables: Sequence[ComponentVariable], texts: Sequence[str], *, only_harmless: bool) -> dict[str, str]:
    """The values to approve, by variable: those of `NAME` or `NAME=VALUES`, by default of all that are not approved."""
    found: dict[str, str] = {}
    known = {one.name: one for one in variables}
    for text in texts or [one.name for one in variables if one.is_open and one.proposed]:
        name, equals, values = text.partition("=")
        if name not in known:
            raise InvalidInputError(f"the component sets no variable {name}; {suggest(name, known)}")
        if only_harmless and (equals or known[name].harmless is None):
            if texts:
                raise InvalidInputError(f"{text} is not known to be harmless; approve it without --harmless")
            continue
        if problem := known[name].problem:
            raise InvalidInputError(f"cannot be approved: {problem}")
        allowed = values if equals else known[name].proposed
        if allowed is None:
            raise InvalidInputError(
                f"{name}: the component declares no values; write them, such as '{name}=1..64 auto'"
            )
        if problem := problem_of_values(name, allowed):
            raise InvalidInputError(f"cannot be approved: {problem}")
        found[name] = " ".join(allowed.split())
    return found


def is_allowed(allowed: str, text: str) -> bool:
    """Whether the text of a variable is one of the allowed values."""
    return any(item == (text or _EMPTY) or _is_within(item, text) for item in allowed.split())


def _ends(item: str) -> tuple[float, float] | None:
    """Both ends of a range of numbers; None for a text."""
    low, dots, high = item.partition("..")
    first, last = _number(low), _number(high)
    return (first, last) if dots and first is not None and last is not None else None


def _is_within(item: str, text: str) -> bool:
    """Whether a text is a number of a range: a whole one if its ends are, and with a unit only if an end has one."""
    ends, number = _ends(item), _number(text)
    if ends is None or number is None or not ends[0] <= number <= ends[1]:
        return False
    return (_is_plain(text) or not _is_plain(item.replace("..", ""))) and (_is_whole(text) or not _is_whole(item))


def _number(text: str) -> int | float | None:
    if not re.fullmatch(r"-?[0-9][0-9.eE+-]*[A-Za-z%]{0,3}", text):
        return None
    try:
        return parse_quantity(text)[0]
    except SpaceError:
        return None


def _is_plain(digits: str) -> bool:
    return re.fullmatch(r"[-+0-9.eE]*", digits) is not None


def _is_whole(text: str) -> bool:
    return re.search(r"[eE]|(?<!\.)\.(?!\.)", text) is None


def _declared(name: str, parameter: ComponentParameter) -> str | None:
    """The values that a component describes for a variable; None if they are none, or cannot be written."""
    texts = [] if parameter.default is None else [_text(parameter.default)]
    if parameter.given:
        try:
            described = parameter_of(name, parameter, parameter)
        except SpaceError:
            return None
        if isinstance(described, Choice):
            texts = [described.format(value) for value in described.values]
        else:
            ends = [f"{described.format(end)}{parameter.suffix}" for end in (described.low, described.high)]
            return "..".join(ends) if _ends("..".join(ends)) is not None else None
    texts = [f"{text}{parameter.suffix}" for text in texts]
    allowed = " ".join(text or _EMPTY for text in texts)
    if not allowed or len(allowed) > LONGEST_VALUES or any(problem_of_variable(name, text) for text in texts):
        return None
    return allowed


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
