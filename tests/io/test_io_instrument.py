"""The counters of I/O as an instrument: what it reads from the folder of a run."""

import json
from pathlib import Path

from tests.io.recorded_counts import layer, process

from luthier.io.counts import COUNT_FOLDER
from luthier.io.instrument import COUNTERS


def test_the_counters_of_all_processes_are_added(tmp_path: Path) -> None:
    assert COUNTERS.read(tmp_path) == {}
    (tmp_path / COUNT_FOLDER).mkdir()
    for number in (1, 2):
        counted = process(posix=layer(writes=7, write_bytes=70))
        (tmp_path / COUNT_FOLDER / f"{number}.json").write_text(json.dumps(counted))
    found = COUNTERS.read(tmp_path)
    assert (found["posix_writes"], found["posix_write_bytes"]) == (14.0, 140.0)
    assert set(found) == set(COUNTERS.quantities)
