"""The batch jobs of active runs as the text in which stores keep them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, cast

from luthier.store.json_columns import mapping
from luthier.trial import BatchJob


def jobs_text(jobs: Mapping[int, BatchJob]) -> str | None:
    """The jobs, by the number of the run, as JSON; None without any."""
    return json.dumps({number: asdict(job) for number, job in jobs.items()}, ensure_ascii=False) if jobs else None


def jobs_from(text: str | None) -> Mapping[int, BatchJob]:
    """The jobs in a text that `jobs_text` made; `ValueError` or `TypeError` if it is damaged."""
    listed = {} if text is None else mapping(text)
    return MappingProxyType({int(number): BatchJob(**cast("Any", fields)) for number, fields in listed.items()})
