"""The values that forms offer, taken from the registries."""

import inspect
from functools import cache

from fastapi import APIRouter
from pydantic import ConfigDict, JsonValue

from luthier.measures.base import KINDS
from luthier.measures.registry import MEASURES
from luthier.optimizers.earlier import TRANSFER_KINDS
from luthier.optimizers.registry import OPTIMIZERS, optimizer_names
from luthier.policies import PRUNES, RESAMPLES, STOPS, SUBSET_PICKERS
from luthier.runners.registry import AUTO as AUTO_RUNNER
from luthier.runners.registry import RUNNERS
from luthier.server.api.models import ERRORS, ResponseModel
from luthier.server.context import Viewer
from luthier.spec import setting_kinds
from luthier.spec.experiment_file import Settings
from luthier.spec.setting_kinds import Configs, EarlierNumbers, Folder, RuleOrSeconds, Seconds, Text, Whole
from luthier.spec.settings import Setting, all_settings
from luthier.statistics.estimate import AUTO, ESTIMATORS

router = APIRouter(tags=["drafts"], responses=ERRORS)

_NOT_OPTIONS = ("self", "space", "seed", "budget", "earlier")
_PATTERNS = {"regex": r"regex:time: (\S+)", "json": "json:jobs.0.read.iops", "osu": "osu:1024"}
_RESAMPLES = {
    "static:3": "Every configuration runs three times.",
    "sedr:10%": "Until the 95 % interval of the mean is no wider than 10 % of it.",
    "sedr:0.5": "Until the 95 % interval of the mean is no wider than 0.5.",
    "evadyr:least=3,most=20%": "At least three runs, and at most a fifth of the budget.",
}
_PRUNES = {
    "default:factor=1.5": "A run that takes longer than one and a half times the default.",
    "q75": "A run that takes longer than three quarters of the others.",
    "90s": "A run that takes longer than 90 seconds.",
}
_STOPS = {
    "no improvement over 15": "The last 15 runs brought no improvement.",
    "improvement < 1% over 10": "The last 10 runs improved the value by less than 1 %.",
    "target 80% of default": "The value reached 80 % of the default's.",
    "target 1.5": "The value reached 1.5.",
    "distinct < 3 over 10": "Fewer than 3 configurations were tried in the last 10 runs.",
    "distance < 0.05 over 10": "The last 10 runs were of nearly the same configuration.",
    "gain < cost for 1000 runs": "Another trial costs more time than it is expected to save in 1000 later runs.",
    "after 40 runs": "40 runs were made.",
    "after 2h": "Two hours have passed.",
}


class Notation(ResponseModel):
    """A value that a setting accepts."""

    notation: str
    description: str


class SettingResponse(ResponseModel):
    """A setting of an experiment, for a field of a form."""

    name: str
    label: str
    help: str
    kind: str
    """int, number, text, list or numbers (a list of whole numbers)."""
    default: str
    suggestions: list[str]
    common: bool
    """Whether the form always shows it, not only under "more"."""


class OptimizerResponse(ResponseModel):
    """A search algorithm."""

    name: str
    description: str
    options: dict[str, JsonValue]
    """Its options with their defaults."""


class Options(ResponseModel):
    """The values that forms offer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "optimizers": [{"name": "random", "description": "Points at random.", "options": {}}],
                    "measures": [{"notation": "wall", "description": ""}],
                    "estimators": ["auto", "mean"],
                    "resample": [{"notation": "auto", "description": ""}],
                    "prune": [],
                    "stop": [],
                    "runners": ["auto", "local"],
                    "settings": [
                        {
                            "name": "budget",
                            "label": "Budget",
                            "help": "Number of runs in total.",
                            "kind": "int",
                            "default": "60",
                            "suggestions": [],
                            "common": True,
                        }
                    ],
                    "defaults": {"budget": 60},
                }
            ]
        }
    )

    optimizers: list[OptimizerResponse]
    measures: list[Notation]
    estimators: list[str]
    resample: list[Notation]
    prune: list[Notation]
    stop: list[Notation]
    runners: list[str]
    settings: list[SettingResponse]
    defaults: dict[str, JsonValue]


@router.get("/options", summary="Values that settings accept")
def get_options(_: Viewer) -> Options:
    """Optimizers, measures, rules, settings and their defaults."""
    return _options()


@cache
def _options() -> Options:
    measures = {name: "" for name in MEASURES.names() if name != "returned"}
    resamples = _notations({**dict.fromkeys(RESAMPLES.names(), ""), **_RESAMPLES})
    prunes = _notations({**dict.fromkeys(PRUNES.names(), ""), **_PRUNES})
    offered = (
        {"estimator": [AUTO, *ESTIMATORS], "transfer": ["auto", *TRANSFER_KINDS]}
        | {
            "impact_first": ["off", "auto", *SUBSET_PICKERS.names()],
        }
        | {
            name: [one.notation for one in notations]
            for name, notations in (("resample", resamples), ("prune", prunes))
        }
    )
    return Options(
        optimizers=[_optimizer(name) for name in optimizer_names()],
        measures=_notations({**measures, **{text: "" for word, text in _PATTERNS.items() if word in KINDS.own()}}),
        estimators=[AUTO, *ESTIMATORS],
        resample=resamples,
        prune=prunes,
        stop=_notations({**_STOPS, **dict.fromkeys(STOPS.names(), "")}),
        runners=[AUTO_RUNNER, *RUNNERS.names()],
        settings=[
            _setting(setting, offered.get(setting.name, [])) for setting in all_settings() if _has_field(setting)
        ],
        defaults=Settings().model_dump(mode="json"),
    )


def _has_field(setting: Setting) -> bool:
    """Whether the form has a single field for the setting; the optimizer and its options have their own section."""
    return setting.name != "optimizer" and not isinstance(setting.kind, setting_kinds.ValuesByName | Configs)


def _setting(setting: Setting, suggestions: list[str]) -> SettingResponse:
    kinds = {
        Whole: "int",
        EarlierNumbers: "numbers",
        Seconds: "number",
        RuleOrSeconds: "number",
        Text: "text",
        Folder: "text",
    }
    return SettingResponse(
        name=setting.name,
        label=setting.label,
        help=setting.help,
        kind=kinds.get(type(setting.kind), "list"),
        default=setting.unset or ", ".join(setting.kind.words(setting.default)),
        suggestions=suggestions,
        common=setting.is_common,
    )


def _notations(described: dict[str, str]) -> list[Notation]:
    return [Notation(notation=text, description=meaning) for text, meaning in described.items()]


def _optimizer(name: str) -> OptimizerResponse:
    factory = OPTIMIZERS.get(name)
    options = {
        option: None if parameter.default is inspect.Parameter.empty else parameter.default
        for option, parameter in inspect.signature(factory).parameters.items()
        if option not in _NOT_OPTIONS
    }
    summary = (inspect.getdoc(factory) or "").partition("\n")[0]
    return OptimizerResponse(name=name, description=summary, options=options)
