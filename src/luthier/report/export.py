"""Export of all runs of an experiment as CSV, JSON or Parquet."""

import csv
import json
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from luthier.errors import InvalidInputError, UnavailableError
from luthier.result.serial import plain, run_json
from luthier.result.text import measure_names
from luthier.spec.experiment import Experiment
from luthier.texts import NUMBER
from luthier.trial import Completed, Run

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(NUMBER)

FORMATS = ("csv", "json", "parquet")


def offered_formats() -> list[str]:
    """The formats that work here: Parquet needs pyarrow."""
    return [form for form in FORMATS if form != "parquet" or find_spec("pyarrow") is not None]


def write_runs(experiment: Experiment, runs: Sequence[Run], form: str, target: TextIO | Path) -> None:
    """Write the runs to a file or a text stream; Parquet needs a file."""
    if form not in FORMATS:
        raise InvalidInputError(f"--format {form}: unknown format; choose one of {', '.join(offered_formats())}")
    try:
        if isinstance(target, Path):
            _write_file(experiment, runs, form, target)
        elif form == "parquet":
            raise InvalidInputError("--format parquet is a binary format; name a file with --output FILE")
        else:
            _write_text(experiment, runs, form, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnavailableError(f"cannot write {target}: {error.strerror or error}; choose another --output") from None


def _write_file(experiment: Experiment, runs: Sequence[Run], form: str, path: Path) -> None:
    """Write to a temporary file first, so that a full disk never leaves an incomplete file."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        if form == "parquet":
            _write_parquet(experiment, runs, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                _write_text(experiment, runs, form, stream)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_text(experiment: Experiment, runs: Sequence[Run], form: str, stream: TextIO) -> None:
    if form == "json":
        json.dump(plain([run_json(run) for run in runs]), stream, indent=1, ensure_ascii=False)
        stream.write("\n")
        return
    rows = [flat(experiment, run) for run in runs]
    plain_rows = csv.DictWriter(stream, fieldnames=columns(rows), lineterminator="\n")
    # Python's csv does not quote a carriage return of its own accord, although it ends a row for those who read it.
    quoted = csv.DictWriter(stream, fieldnames=columns(rows), lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain_rows.writeheader()
    for row in rows:
        cells = {name: _cell(value) for name, value in row.items()}
        (quoted if any("\r" in str(cell) for cell in cells.values()) else plain_rows).writerow(cells)


def _cell(value: object) -> object:
    """A value as a spreadsheet should take it: a text that it would compute as a formula begins with an apostrophe.

    Texts that begin with apostrophes before such a sign get one more, so that removing one gives the text back.
    """
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value


def _write_parquet(experiment: Experiment, runs: Sequence[Run], path: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InvalidInputError(
            "the format parquet needs pyarrow, which is not installed: pip install 'luthier[parquet]'"
        ) from None
    rows = [flat(experiment, run) for run in runs]
    table = pa.table({name: [row.get(name) for row in rows] for name in columns(rows)})
    parquet.write_table(table, path)


def flat(experiment: Experiment, run: Run) -> dict[str, object]:
    """One row: the run, then its parameters as `param.NAME`, then its metrics as `metric.NAME`.

    Further objectives are columns `value.NAME`. Bytes that are not valid UTF-8 are replaced.
    """
    row = run_json(run)
    for nested in ("config", "metrics", "others"):
        row.pop(nested)
    if experiment.has_front:
        others = run.outcome.others if isinstance(run.outcome, Completed) else [None] * len(experiment.objectives[1:])
        row |= zip((f"value.{name}" for name in measure_names(experiment)[1:]), others, strict=True)
    parameters = {f"param.{name}": run.config[name] for name in experiment.space.names}
    row |= parameters | {f"metric.{name}": value for name, value in sorted(run.metrics.items())}
    return {str(plain(name)): plain(value) for name, value in row.items()}


def columns(rows: Sequence[dict[str, object]]) -> list[str]:
    """The columns of all rows, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
