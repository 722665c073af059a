"""Measures made by Python functions: the tuned function itself, or an installed plug-in."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from luthier.trial import Completed, Execution, Failed, Outcome

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Returned:
    """The number that the Python function under test returned, or its `count` numbers, one for each objective."""

    count: int = 1

    def __call__(self, execution: Execution) -> Outcome:
        """Return what it returned, or why that is not a measurement."""
        if execution.problem is not None:
            return execution.problem
        if execution.value is None:
            return Failed("'returned' needs a Python function's result, and this run has none")
        numbers = (execution.value, *execution.others)
        if len(numbers) != self.count:
            return Failed(f"returned {len(numbers)} numbers, expected {self.count}: one for each goal")
        if bad := [number for number in numbers if not math.isfinite(number)]:
            return Failed(f"returned {bad[0]}")
        return Completed(execution.value, execution.others)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed function from an execution to a number; it is called for runs that ended well."""

    name: str
    function: Callable[[Execution], object]

    def __call__(self, execution: Execution) -> Outcome:
        """Return the function's number; if it raises or returns none, the run counts as failed."""
        if execution.problem is not None:
            return execution.problem
        try:
            value: object = self.function(execution)
        except Exception as error:  # a plug-in may fail in any way
            logger.debug("measure %s raised", self.name, exc_info=True)
            return Failed(f"measure {self.name!r} raised {type(error).__name__}: {error}")
        if isinstance(value, bool) or not isinstance(value, Real):
            return Failed(f"measure {self.name!r} returned {value!r:.60}, expected a finite number")
        try:
            number = float(value)
        except OverflowError:  # a whole number has no limit
            number = math.inf
        if not math.isfinite(number):
            return Failed(f"measure {self.name!r} returned {number}, expected a finite number")
        return Completed(number)
