"""What can be tuned: parameters, the constraints between them, and the space they span."""

from luthier.arrays import BoolArray, FloatArray
from luthier.space.arguments import Scale
from luthier.space.parameters import Choice, Integer, Parameter, Real
from luthier.space.space import Space
from luthier.space.units import format_quantity, parse_quantity

__all__ = [
    "BoolArray",
    "Choice",
    "FloatArray",
    "Integer",
    "Parameter",
    "Real",
    "Scale",
    "Space",
    "format_quantity",
    "parse_quantity",
]
