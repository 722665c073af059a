"""Every registered strategy keeps the promises of the plug point."""

from luthier.online.contract import StrategyContract
from luthier.online.registry import STRATEGIES


class TestStrategies(StrategyContract):
    strategies = tuple(STRATEGIES.built_in)
