"""Calls a function in a process of its own, on a Dask worker: `python -m luthier.runners.dask_call FOLDER`.

A process of its own can be stopped, and if it crashes the worker goes on.
"""

import json
import os
import pickle
import sys
import time
import traceback
from pathlib import Path

from luthier.runners.dask_folder import CALL, RETURNED
from luthier.runners.function import numbers_of
from luthier.runners.supervisor import MARK, MARK_VARIABLE
from luthier.trial import Config

_LONGEST_WAIT_S = 10.0


def packed(function: bytes, config: Config) -> bytes:
    """A call as bytes: where modules are found here, the argument, and the function as cloudpickle writes it."""
    return pickle.dumps((list(sys.path), dict(config), function))


def main(folder: Path) -> None:
    """Make the call and write its result."""
    os.environ.pop(MARK_VARIABLE, None)
    result: list[float] | str
    try:
        # Written by the worker a moment ago, with what the tuner sent.
        places, config, function = pickle.loads((folder / CALL).read_bytes())  # noqa: S301
        sys.path += [place for place in places if place not in sys.path]
        call = pickle.loads(function)  # noqa: S301
        _begin(folder / MARK)
        numbers = numbers_of(call(Config(config)))
        result = list(numbers) if isinstance(numbers, tuple) else numbers.reason
    except BaseException as error:  # noqa: BLE001  # whatever the user's function raises, also SystemExit, is its failure
        traceback.print_exc()
        result = f"{type(error).__name__}: {error}"
    draft = folder / f"{RETURNED}.new"
    draft.write_text(json.dumps(result), encoding="utf-8")
    draft.rename(folder / RETURNED)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the function has left must not keep the worker waiting


def _begin(mark: Path) -> None:
    """Tell the supervisor that the time begins to count, and wait until it has looked at its clock."""
    pipe = os.open(mark, os.O_RDWR)
    os.write(pipe, b".")
    give_up_at = time.monotonic() + _LONGEST_WAIT_S
    while mark.is_fifo() and time.monotonic() < give_up_at:
        time.sleep(0.0005)
    os.close(pipe)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
