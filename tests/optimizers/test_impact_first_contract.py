"""Every optimizer keeps its promises while only some parameters are tuned at a time."""

from luthier.optimizers.contract import OptimizerContract


class TestStatistical(OptimizerContract):
    optimizers = ("genetic", "auto", "annealing", "nelder-mead", "random", "exhaustive")
    impact_first = "statistical"
