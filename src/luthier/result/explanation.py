"""Why the best configuration is better: what it does and what the default does, side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from luthier.measures.instruments import INSTRUMENTS, Quantity
from luthier.result.text import bytes_text, seconds_text, share_text
from luthier.trial import Json, Value

_BLOCK_BYTES = 512
"""The unit in which the kernel counts what a process reads from disks and writes to them."""


def _text(quantity: Quantity, value: float) -> str:
    """A value for people."""
    if quantity.unit == "s":
        return seconds_text(value)
    return bytes_text(value) if quantity.unit == "B" else f"{value:,.0f}"


_QUANTITIES: Mapping[str, Quantity] = {
    "wall_s": Quantity("elapsed time", "takes {}", "s", 0.02),
    "user_s": Quantity("processor time of the program", "uses {} of processor time itself", "s", 0.05),
    "system_s": Quantity("processor time of the kernel", "makes the kernel use {} of processor time", "s", 0.05),
    "peak_memory_bytes": Quantity("peak memory", "needs {} of memory at its peak", "B", 20 << 20),
    "system_calls": Quantity("system calls", "makes {} system calls"),
    "instructions": Quantity("instructions", "executes {} instructions", "", 1e6),
    "cache_misses": Quantity("cache misses", "causes {} cache misses", "", 1e4),
    "minor_page_faults": Quantity("page faults without disk", "causes {} page faults without the disk", "", 1000),
    "major_page_faults": Quantity("page faults with disk", "causes {} page faults that wait for the disk", "", 10),
    "voluntary_switches": Quantity("voluntary context switches", "waits {} times (voluntary context switches)"),
    "involuntary_switches": Quantity(
        "involuntary context switches", "loses the processor {} times (involuntary context switches)"
    ),
    "disk_read_bytes": Quantity("read from disks", "reads {} from disks", "B", 65536),
    "disk_write_bytes": Quantity("written to disks", "writes {} to disks", "B", 65536),
}


def known_quantities() -> Mapping[str, Quantity]:
    """Everything that is compared, by name: also what instruments count."""
    found = dict(_QUANTITIES)
    for name in INSTRUMENTS.own():
        found |= INSTRUMENTS.get(name).quantities
    return found


_SAME = 1.1  # a smaller factor is not a difference that one run each can show
_FEW = 6
NOTE = "One run each: times vary from run to run, counts hardly do."


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run of a configuration did."""

    config: Mapping[str, Value]
    quantities: Mapping[str, float]

    def to_json(self) -> dict[str, Json]:
        """The observation as plain values."""
        return {"config": dict(self.config), "quantities": dict(self.quantities)}


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity of both runs."""

    name: str
    default: float
    best: float

    @property
    def quantity(self) -> Quantity:
        """What it is."""
        return known_quantities()[self.name]

    @property
    def default_text(self) -> str:
        """The value of the default, for people."""
        return _text(self.quantity, self.default)

    @property
    def best_text(self) -> str:
        """The value of the best configuration, for people."""
        return _text(self.quantity, self.best)

    @property
    def factor(self) -> float:
        """How many times larger the larger value is; infinite if only one of them is 0."""
        low, high = sorted((self.default, self.best))
        return 1.0 if high == low else math.inf if low == 0 else high / low

    @property
    def is_large(self) -> bool:
        """Whether it is worth a sentence."""
        return self.factor >= _SAME and max(self.default, self.best) >= self.quantity.matters

    @property
    def change(self) -> str:
        """`64 times fewer`, `12 % more`, or `the same`."""
        if self.default == self.best:
            return "the same"
        less = "less" if self.quantity.unit else "fewer"
        direction = less if self.best < self.default else "more"
        if self.default == 0:
            return "none before"
        if self.best == 0:
            return "none any more"
        if self.factor < 2:
            return f"{share_text(abs(self.best / self.default - 1))} {direction}"
        return f"{self.factor:,.0f} times {direction}" if self.factor >= 10 else f"{self.factor:.2g} times {direction}"

    @property
    def sentence(self) -> str:
        """The difference as a sentence."""
        return f"It {self.quantity.sentence.format(self.best_text)} instead of {self.default_text}: {self.change}."


@dataclass(frozen=True, slots=True)
class Explanation:
    """The default and the best configuration, each run once more under the counters at the time `at`.

    `notes` tell what could not be counted.
    """

    at: float
    default: Observation
    best: Observation
    notes: tuple[str, ...] = ()

    @property
    def differences(self) -> list[Difference]:
        """Everything that both runs have, the largest differences that matter first."""
        shared = [
            name for name in known_quantities() if name in self.default.quantities and name in self.best.quantities
        ]
        pairs = [Difference(name, self.default.quantities[name], self.best.quantities[name]) for name in shared]
        known = [one for one in pairs if one.default or one.best]
        return sorted(known, key=lambda one: (not one.is_large, -one.factor))

    @property
    def sentences(self) -> list[str]:
        """The largest differences in words."""
        large = [one for one in self.differences if one.is_large]
        if not large:
            return ["Nothing that was counted differs by 10 % or more between the two runs."]
        return [one.sentence for one in large[:_FEW]]

    def to_json(self) -> dict[str, Json]:
        """The explanation as it is stored."""
        return {
            "at": self.at,
            "default": self.default.to_json(),
            "best": self.best.to_json(),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Explanation":
        """Rebuild what `to_json` wrote."""
        default, best = (_observation(plain.get(label)) for label in ("default", "best"))
        at, notes = plain.get("at"), plain.get("notes")
        when = float(at) if isinstance(at, int | float) else 0.0
        return cls(when, default, best, tuple(map(str, notes)) if isinstance(notes, list) else ())


def explanation_json(explanation: Explanation) -> dict[str, Json]:
    """The explanation for programs: with differences and sentences."""
    differences: list[Json] = [
        {
            "name": one.name,
            "label": one.quantity.label,
            "default": one.default,
            "best": one.best,
            "default_text": one.default_text,
            "best_text": one.best_text,
            "change": one.change,
            "is_large": one.is_large,
        }
        for one in explanation.differences
    ]
    return {**explanation.to_json(), "differences": differences, "sentences": explanation.sentences, "note": NOTE}


def quantities_of(
    usage: Mapping[str, float], counted: Mapping[str, float], perf: Mapping[str, float]
) -> dict[str, float]:
    """What is known of one run: resources, what instruments `counted`, and the counters of the kernel."""
    known = known_quantities()
    found = {name: value for name, value in {**usage, **perf}.items() if name in known}
    for name, blocks in (("disk_read_bytes", "blocks_read"), ("disk_write_bytes", "blocks_written")):
        if blocks in usage:
            found[name] = usage[blocks] * _BLOCK_BYTES
    return found | dict(counted)


def perf_counts(text: str) -> dict[str, float]:
    """The counters that `perf stat -x,` wrote; those that the machine does not have are left out.

    The elapsed time is that of the command, without the start of perf itself.
    """
    names = {
        "raw_syscalls:sys_enter": "system_calls",
        "instructions": "instructions",
        "cache-misses": "cache_misses",
        "duration_time": "wall_s",
    }
    found = {}
    for line in text.splitlines():
        words = line.split(",")
        event = words[2].partition(":u")[0] if len(words) > 2 else ""
        if event in names and words[0].replace(".", "", 1).isdigit():
            found[names[event]] = float(words[0]) * (1e-9 if event == "duration_time" else 1.0)
    return found


def _observation(plain: Json) -> Observation:
    given = plain if isinstance(plain, Mapping) else {}
    config, quantities = given.get("config"), given.get("quantities")
    values = config.items() if isinstance(config, Mapping) else ()
    numbers = quantities.items() if isinstance(quantities, Mapping) else ()
    return Observation(
        {name: value for name, value in values if isinstance(value, bool | int | float | str)},
        {name: float(value) for name, value in numbers if isinstance(value, int | float)},
    )
