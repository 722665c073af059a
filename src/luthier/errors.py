"""The exceptions that luthier raises on purpose.

A message is one line: where the error is, what was given, what was expected, and how to fix it.
"""


class LuthierError(Exception):
    """An error that the user sees as one line; the command line ends with exit code 2."""


class InvalidInputError(LuthierError):
    """The input is invalid and will never work; change it and try again."""


class SpaceError(InvalidInputError):
    """A parameter, a constraint or a configuration that does not fit its space."""


class NotFoundError(InvalidInputError):
    """Something with this name or number does not exist."""


class UnavailableError(LuthierError):
    """The same call may work later: a lock, a full disk, a server that cannot be reached."""


class StoreError(UnavailableError):
    """The store could not be read or written now; no change was made in part."""


class StoreAwayError(StoreError):
    """The store is locked or cannot be reached; retry later."""


class InUseError(UnavailableError):
    """Another process is working on this experiment."""


class ExhaustedError(LuthierError):
    """Every configuration of the space has been tried."""


class RefusedError(LuthierError):
    """A running program did not accept a configuration."""


class KernelRefusedError(LuthierError):
    """No I/O kernel can be made of these sources; tune the program itself instead."""
