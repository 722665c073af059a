"""The one tree of exceptions luthier raises on purpose.

A message says where, what came, what was expected, and the way out, in one line.
"""


class LuthierError(Exception):
    """Anything luthier tells its user in one line; the command line ends with exit code 2."""


class InvalidInputError(LuthierError):
    """What was given can never work; change it and try again."""


class SpaceError(InvalidInputError):
    """A parameter, a constraint or a configuration that does not fit its space."""


class NotFoundError(InvalidInputError):
    """Something was named that does not exist."""


class UnavailableError(LuthierError):
    """The same call may work later: a lock, a full disk, a server that is away."""


class StoreError(UnavailableError):
    """The store could not be read or written now; nothing was half written."""


class StoreAwayError(StoreError):
    """The store is locked or not reachable; it is worth waiting for."""


class InUseError(UnavailableError):
    """Another process is working on this experiment."""


class ExhaustedError(LuthierError):
    """Every configuration of the space has been tried."""
