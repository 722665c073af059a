from luthier.optimizers import optimizer_names
from luthier.optimizers.contract import OptimizerContract


class TestEveryOptimizer(OptimizerContract):
    optimizers = optimizer_names()
