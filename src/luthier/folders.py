"""Where luthier keeps things for a user."""

import os
from pathlib import Path

from luthier.errors import InvalidInputError


def data_directory() -> Path:
    """The data folder of this user; it may not exist yet."""
    configured = Path(os.environ.get("XDG_DATA_HOME", ""))
    if configured.is_absolute():  # relative paths must be ignored (XDG base directory specification)
        return configured / "luthier"
    try:
        return Path.home() / ".local" / "share" / "luthier"
    except RuntimeError as error:
        raise InvalidInputError(
            f"no home folder for this user: {error}; set HOME, XDG_DATA_HOME or LUTHIER_STORE"
        ) from error
