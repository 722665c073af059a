"""Search algorithms behind one small protocol, and the registry that finds them by name."""

from luthier.optimizers.base import Optimizer
from luthier.optimizers.registry import make_optimizer, optimizer_names

__all__ = ["Optimizer", "make_optimizer", "optimizer_names"]
