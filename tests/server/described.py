"""The operations of the API, as the server itself describes them."""

from typing import cast

from tests.server.server_fixtures import Running

API = "/api/v1"


class Operation:
    """One operation of the OpenAPI document, with an example of everything that it takes."""

    def __init__(self, path: str, method: str, described: dict[str, object], schemas: dict[str, object]) -> None:
        self.described = described
        self.method = method.upper()
        self.name = str(described["operationId"])
        self.has_experiment = "{experiment_id}" in path
        self.path = self.template = path
        self.parameters = cast("list[dict[str, object]]", described.get("parameters", []))
        query = []
        for parameter in self.parameters:
            example = cast(
                "list[object]", parameter.get("examples") or part_of(parameter, "schema").get("examples") or []
            )
            if parameter["in"] == "path":
                self.path = self.path.replace(f"{{{parameter['name']}}}", str(example[0]))
            elif parameter.get("required"):
                query.append(f"{parameter['name']}={example[0]}")
        self.path += f"?{'&'.join(query)}" if query else ""
        body = part_of(part_of(part_of(described, "requestBody"), "content"), "application/json")
        self.body = example_of(part_of(body, "schema"), schemas) if body else None

    @property
    def is_stream(self) -> bool:
        """Whether it goes on as long as somebody listens."""
        good = part_of(part_of(self.described, "responses"), "200")
        return "text/event-stream" in part_of(good, "content")

    def ask(self, server: Running, token: str | None, headers: dict[str, str] | None = None) -> int:
        return server.ask(self.method, self.path, self.body, token=token, headers=headers).status


def part_of(described: dict[str, object], name: str) -> dict[str, object]:
    """A part of the document that is itself one; empty if it is missing."""
    return cast("dict[str, object]", described.get(name, {}))


def example_of(schema: dict[str, object], schemas: dict[str, object]) -> object:
    """The first example in a schema, or in what it is made of."""
    if "examples" in schema:
        return cast("list[object]", schema["examples"])[0]
    if "$ref" in schema:
        return example_of(cast("dict[str, object]", schemas[str(schema["$ref"]).rpartition("/")[2]]), schemas)
    parts = [
        *cast("list[object]", schema.get("anyOf", [])),
        schema.get("items"),
        *part_of(schema, "properties").values(),
    ]
    found = [example_of(part, schemas) for part in parts if isinstance(part, dict)]
    return next((example for example in found if example is not None), None)


def operations(server: Running) -> list[Operation]:
    """Every operation of a server."""
    document = cast("dict[str, object]", server.ask("GET", f"{API}/openapi.json", token=None).json)
    schemas = part_of(part_of(document, "components"), "schemas")
    paths = cast("dict[str, dict[str, dict[str, object]]]", document["paths"])
    return [
        Operation(path, method, described, schemas)
        for path, each in paths.items()
        for method, described in each.items()
    ]
