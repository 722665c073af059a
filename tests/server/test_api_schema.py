"""Requests made up from the OpenAPI document: never a defect of the server, never an answer that is not described."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from tests.online.server.online_samples import a_session
from tests.server.server_fixtures import Running, server_of_its_own

from luthier.trial import Completed, Failed

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
AnyCase: TypeAlias = "Case[Any]"

OPENAPI = "/api/v1/openapi.json"
EXAMPLES = 6
PATIENCE_S = 300.0
FOR_EVERYBODY = {"get_health", "log_in", "accept_invitation"}
STREAMS = {"watch_experiments", "watch_experiment", "watch_online", "watch_online_session"}
"""They do not end as long as somebody listens."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with accounts, so that a new one locks nobody out, and an experiment."""
    with server_of_its_own(tmp_path_factory.mktemp("crowded")) as running:
        yield running


def operations(server: Running) -> dict[str, Operation]:
    schema = schemathesis.openapi.from_url(f"{server.url}{OPENAPI}")
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {operation.definition.raw["operationId"]: operation for operation in found}


@contextmanager
def an_experiment(server: Running, token: str) -> Iterator[Callable[[], int]]:
    """Gives the number of an experiment with runs; of another one after it was deleted."""
    numbers: list[int] = []

    def number() -> int:
        if not numbers or not any(record.id == numbers[-1] for record in server.store.queue.records()):
            numbers.append(server.launch(token=token))
            server.play(numbers[-1], [Completed(5.0), Failed("bad \udcff"), Completed(4.0)], "stopped")
        return numbers[-1]

    yield number


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_of_an_administrator_finds_a_defect(crowded: Running, mode: GenerationMode) -> None:
    token = crowded.add_user("root", "admin")
    with an_experiment(crowded, token) as number:
        existing = {"experiment_id": number, "session_id": lambda: a_session(crowded.store).id}
        for name, operation in operations(crowded).items():
            if name not in STREAMS:
                _try(operation, mode, {"Authorization": f"Bearer {token}"}, existing)


def test_nobody_gets_in_without_a_token(crowded: Running) -> None:
    crowded.add_user("root", "admin")
    for name, operation in operations(crowded).items():
        if name in FOR_EVERYBODY:
            continue

        def refused(case: AnyCase) -> None:
            response = case.call(headers={}, timeout=PATIENCE_S)
            case.validate_response(response, checks=CHECKS)
            assert response.status_code in (400, 401, 422), response.text

        _given(operation, GenerationMode.POSITIVE, refused)


def _try(
    operation: Operation, mode: GenerationMode, headers: dict[str, str], existing: dict[str, Callable[[], int]]
) -> None:
    def holds(case: AnyCase) -> None:
        name = next((name for name in existing if name in (case.path_parameters or {})), None)
        for found in (None, existing[name]()) if name is not None else (None,):
            if name is not None and found is not None:
                case.path_parameters[name] = found
            response = case.call(headers=headers, timeout=PATIENCE_S)
            case.validate_response(response, checks=CHECKS)

    _given(operation, mode, holds)


def _given(operation: Operation, mode: GenerationMode, holds: Callable[[AnyCase], None]) -> None:
    bounded = settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    with suppress(Unsatisfiable):  # nothing can be wrong about a request that takes nothing
        bounded(given(case=operation.as_strategy(generation_mode=mode))(holds))()
