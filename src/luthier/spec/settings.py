"""The settings of an experiment, each declared once.

The command line, experiment files, REST, the form on the web page and the report are made from these declarations. To
add a setting, declare it in `Settings`, add its type to `GivenSettings`, and use it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Literal, TypeAlias, TypedDict, get_type_hints

from luthier.spec.objectives import Objective
from luthier.spec.setting_kinds import (
    Configs,
    EarlierNumbers,
    Folder,
    Kind,
    Objectives,
    RuleOrSeconds,
    Seconds,
    Text,
    Texts,
    ValuesByName,
    Whole,
)
from luthier.trial import Config, Value

Topic: TypeAlias = Literal["Objective", "Search", "Noise", "Limits", "Runs"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The name, the explanation and the presentation of a setting.

    `field` is its attribute in `Settings`, `name` its name in files; the command line has `--NAME` and the `flags`.
    `unset` is shown if it has its default. Files and command lines may still use its `former` name.
    """

    kind: Kind
    help: str
    label: str
    topic: Topic
    name: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    unset: str = ""
    former: str = ""
    is_common: bool = False
    field: str = ""
    default: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an experiment measures, searches and stops."""

    budget: Annotated[
        int,
        Setting(
            Whole(1),
            "Number of runs in total, including the default and the verification.",
            "Budget",
            "Search",
            flags=("-n", "--budget"),
            is_common=True,
        ),
    ] = 60
    slots: Annotated[
        int,
        Setting(
            Whole(1),
            "Number of runs at a time.",
            "Slots",
            "Search",
            flags=("-j", "--slots"),
            former="workers",
            is_common=True,
        ),
    ] = 1
    objectives: Annotated[
        tuple[Objective, ...],
        Setting(
            Objectives(),
            "What to measure: wall (default), user, system, cpu, memory (peak of the largest process), time (what the "
            "shell's time printed), osu, osu:SIZE, regex:PATTERN, json:PATH, io:NAME (I/O that was counted), or the "
            "name of a plug-in; prefix with max: to maximize. Two or three give a Pareto front.",
            "Measure",
            "Objective",
            name="measure",
            flags=("-m", "--measure"),
            metavar="[max:]MEASURE",
            is_common=True,
        ),
    ] = (Objective("wall"),)
    optimizer: Annotated[
        str,
        Setting(Text(), "The search algorithm.", "Optimizer", "Search", flags=("-o", "--optimizer")),
    ] = "auto"
    options: Annotated[
        Mapping[str, Value],
        Setting(
            ValuesByName(),
            "Options of the optimizer, e.g. kernel=rbf.",
            "Optimizer options",
            "Search",
            flags=("--set",),
            metavar="NAME=VALUE",
            unset="defaults",
        ),
    ] = field(default_factory=dict)
    impact_first: Annotated[
        str,
        Setting(
            Text(),
            "Tune the parameters with the largest expected gain first, others later: off, auto, statistical (by a "
            "model of their effects), learned (by a trained network), or the name of a plug-in.",
            "Impact first",
            "Search",
            metavar="off|auto|statistical|learned",
        ),
    ] = "off"
    seed: Annotated[
        int,
        Setting(Whole(0), "Seed of the random numbers; the same seed gives the same suggestions.", "Seed", "Search"),
    ] = 0
    first: Annotated[
        tuple[Config, ...],
        Setting(
            Configs(),
            "A configuration to try right after the default; missing parameters have their default.",
            "Tried first",
            "Search",
            unset="none",
            metavar="NAME=VALUE,...",
        ),
    ] = ()
    after: Annotated[
        tuple[int | str, ...],
        Setting(
            EarlierNumbers(),
            "Learn from earlier experiments, given by number, e.g. 3 or 3,7: their three best configurations are tried "
            "right after the default, and the search uses all of their results (see --transfer). auto: find earlier "
            "experiments of the same command or component; none: learn from none.",
            "After experiment",
            "Search",
            unset="none",
            metavar="NUMBER,...|auto|none",
        ),
    ] = ()
    transfer: Annotated[
        str,
        Setting(
            Text(),
            "How to learn from the experiments in --after: auto, model (a model of their values, corrected by the "
            "new ones), density or vae (suggest what resembles the best of them; vae:20% learns from the best 20%), or "
            "best (only try the best configurations first).",
            "Transfer",
            "Search",
            metavar="auto|model|density|vae|best",
        ),
    ] = "auto"
    verify_pairs: Annotated[
        int | None,
        Setting(
            Whole(0, optional=True),
            "Largest number of pairs of runs for the final comparison; 0 disables it.",
            "Verification pairs",
            "Noise",
            name="verify",
            unset="depends on the budget",
        ),
    ] = None
    resample: Annotated[
        str,
        Setting(
            Text(),
            "How often a configuration runs: auto (repeats the best one until it is certain), once, static:RUNS, "
            "sedr:PERCENT% (until the confidence interval of its mean is that narrow) or evadyr; with constants: "
            "evadyr:least=3,most=20%.",
            "Repeated runs",
            "Noise",
            metavar="RULE",
        ),
    ] = "auto"
    estimator: Annotated[
        str,
        Setting(
            Text(),
            "Estimator for repeated runs: auto (depends on the noise), mean, median, minimum, trimmed or "
            "hodges-lehmann.",
            "Estimator",
            "Noise",
        ),
    ] = "auto"
    sentinels: Annotated[
        int,
        Setting(
            Whole(0),
            "Number of runs after which the default runs again; values are then corrected for a machine that became "
            "slower or faster. 0 disables it.",
            "Sentinel runs",
            "Noise",
            metavar="RUNS",
            unset="never",
        ),
    ] = 0
    prune: Annotated[
        str | float | None,
        Setting(
            RuleOrSeconds(),
            "Stop the first run of a configuration when it takes longer than the default, than the median, mean or "
            "quantile of earlier runs, or than TIME; chance: when it is unlikely to be as good as the best.",
            "Pruning",
            "Limits",
            unset="none",
            metavar="default|median|mean|q75|chance|TIME",
        ),
    ] = None
    stop: Annotated[
        tuple[str, ...],
        Setting(
            Texts(),
            "End the search early, e.g. 'improvement < 5% over 15', 'no improvement over 20 and after 30 runs', "
            "'target 3.2', 'target 50% of default', 'gain < cost for 1000 runs', or learned: when further search is "
            "expected to cost more than it saves in --production-runs. Any of several ends it.",
            "Stopping",
            "Limits",
            metavar="CRITERION",
            unset="when the budget is used up",
        ),
    ] = ()
    production_runs: Annotated[
        int | None,
        Setting(
            Whole(1, optional=True),
            "How often the tuned program is expected to run: for the net gain of the tuning, and for --stop learned "
            "(there 1000 by default).",
            "Production runs",
            "Limits",
            metavar="RUNS",
            unset="unknown",
        ),
    ] = None
    timeout_s: Annotated[
        float | None,
        Setting(
            Seconds(),
            "Kill a run after this time, e.g. 90s.",
            "Timeout of a run",
            "Limits",
            metavar="TIME",
            unset="none",
        ),
    ] = None
    time_limit_s: Annotated[
        float | None,
        Setting(
            Seconds(),
            "End the search after this time, e.g. 2h; waiting for a batch system does not count.",
            "Time limit",
            "Limits",
            metavar="TIME",
            unset="none",
        ),
    ] = None
    cwd: Annotated[
        str | None,
        Setting(
            Folder(),
            "The folder in which every run starts; by default the current one; on a server, a folder there.",
            "Working folder",
            "Runs",
            name="folder",
            metavar="FOLDER",
            unset="default",
            is_common=True,
        ),
    ] = None


class GivenSettings(TypedDict, total=False):
    """The settings that a call from Python may give; a test compares them with those of `Settings`."""

    budget: int
    slots: int
    optimizer: str
    options: Mapping[str, Value]
    impact_first: str
    seed: int
    first: Sequence[Mapping[str, Value]]
    after: Sequence[int | str] | int | str
    transfer: str
    verify_pairs: int | None
    resample: str
    estimator: str
    sentinels: int
    prune: str | float | None
    stop: Sequence[str]
    production_runs: int | None
    timeout_s: float | None
    time_limit_s: float | None


@cache
def all_settings() -> tuple[Setting, ...]:
    """Every setting, in the order of its declaration."""
    return tuple(_declared())


def _declared() -> Iterator[Setting]:
    hints = get_type_hints(Settings, include_extras=True)
    usual = Settings()
    for each in fields(Settings):
        setting: Setting = hints[each.name].__metadata__[0]
        name = setting.name or each.name.removesuffix("_s")
        flags = setting.flags or (f"--{name.replace('_', '-')}",)
        yield replace(setting, field=each.name, name=name, flags=flags, default=getattr(usual, each.name))
