"""The settings of an experiment as texts, for the report and the web page."""

from collections.abc import Sequence

from luthier.result.result import Result
from luthier.result.text import config_text, duration_text
from luthier.spec.settings import Setting, all_settings

Rows = Sequence[tuple[str, str]]


def settings_texts(result: Result) -> list[tuple[str, Rows]]:
    """Every setting with its value, by topic."""
    topics: dict[str, list[tuple[str, str]]] = {}
    for setting in all_settings():
        topics.setdefault(setting.topic, []).extend((setting.label, text) for text in _texts(setting, result))
    return list(topics.items())


def _texts(setting: Setting, result: Result) -> list[str]:
    experiment = result.experiment
    value = getattr(experiment, setting.field)
    if setting.field == "verify_pairs":
        return [f"at most {experiment.reserved_pairs}" if experiment.reserved_pairs else "none"]
    if setting.unset and value == setting.default:
        return [setting.unset]
    if setting.field == "estimator" and value != result.estimator:
        return [f"{value} ({result.estimator})"]
    if setting.field == "objectives":
        return [f"{one.measure} ({'higher' if one.maximizes else 'lower'} is better)" for one in value]
    if setting.field == "after" and experiment.earlier is not None and experiment.earlier.notes:
        return list(experiment.earlier.notes)
    if setting.field == "first":
        return [config_text(config, experiment.space) for config in value]
    if isinstance(value, float):
        return [duration_text(value)]
    return setting.kind.words(value)
