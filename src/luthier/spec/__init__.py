"""What people write, turned into validated objects: parameter notation, command templates, experiments."""

from luthier.spec.experiment import GOALS, Experiment, Goal, Objective
from luthier.spec.notation import names_default, parse_duration, parse_parameter, parse_value
from luthier.spec.rules import prune_from, resample_from, stop_from
from luthier.spec.template import Template

__all__ = [
    "GOALS",
    "Experiment",
    "Goal",
    "Objective",
    "Template",
    "names_default",
    "parse_duration",
    "parse_parameter",
    "parse_value",
    "prune_from",
    "resample_from",
    "stop_from",
]
