"""Tests that have a longer form: `make torture` runs it."""

import os

IS_TORTURE = bool(os.environ.get("LUTHIER_TORTURE"))


def repeats(short: int, long: int) -> int:
    """How often to repeat: the long form with `make torture`."""
    return long if IS_TORTURE else short
