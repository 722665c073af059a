"""A damaged store behind a server: 503 in one line, one warning in the log, and no traceback."""

import logging
import sqlite3
from contextlib import closing

import pytest
from tests.server.server_fixtures import Starter

from luthier.trial import Completed

BAD_TEXT = "CAST(x'7bff' AS TEXT)"
PATHS = {
    "runs.config": ["/api/v1/experiments/1", "/api/v1/experiments/1/runs", "/api/v1/experiments/1/export"],
    "experiments.settings": ["/api/v1/experiments", "/api/v1/experiments/1", "/experiments/1"],
    "components.description": ["/api/v1/components/knob"],
}


@pytest.mark.parametrize("column", PATHS)
def test_what_is_damaged_is_told_in_one_line(
    column: str, start_server: Starter, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server()
    number = server.launch()
    server.play(number, [Completed(1.0), Completed(2.0)])
    server.store.components.put({"knob": "a text"}, replace=True)
    table, _, name = column.partition(".")
    with closing(sqlite3.connect(server.store_url.removeprefix("sqlite:///"))) as connection:
        connection.execute(f"UPDATE {table} SET {name} = {BAD_TEXT}")
        connection.commit()
    with caplog.at_level(logging.INFO):
        for path in PATHS[column]:
            reply = server.ask("GET", path)
            assert reply.status == 503, (path, reply)
            assert reply.body.count(b"\n") <= 1
            assert b"damaged" in reply.body
    assert not any(record.exc_info for record in caplog.records)
