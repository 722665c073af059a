"""What people write, turned into validated objects: parameter notation, command templates, experiments."""

from luthier.spec.experiment import Experiment, Goal
from luthier.spec.notation import parse_duration, parse_parameter
from luthier.spec.template import Template

__all__ = ["Experiment", "Goal", "Template", "parse_duration", "parse_parameter"]
