"""Whatever is sent: an answer that the OpenAPI document knows, never a 500, and the error body if it is no success.

Requests are made from the document: right in shape, of another shape, or of bytes. Children are not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from asgi_client import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder, BuiltFunction, InvalidFunction
from arroyo_udf_plugin.cluster.functions.messages import PlanResult
from arroyo_udf_plugin.cluster.functions.trial import Trial
from arroyo_udf_plugin.cluster.records import Records

Schema = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")


class Quick(Builder):
    """Decides by the text alone, in this process: the children have tests of their own."""

    async def function(self, definition: str, language: Any) -> BuiltFunction:
        if len(definition) % 2:
            raise InvalidFunction(["it is odd"])
        return BuiltFunction(f"f{len(definition)}", language, "f() -> int64", __file__, "0" * 64)

    async def plan(self, name: str, query: str, *more: Any, **others: Any) -> PlanResult:
        sinks = [{"type": "preview"}]
        described = {"operators": [], "sinks": sinks}
        graph = {"nodes": [{"node_id": 0, "operator": "preview", "description": "", "parallelism": 1}], "edges": []}
        return PlanResult(description=described, graph=graph)

    async def tried(self, definition: str, *more: Any) -> Trial:
        return Trial(errors=["it is odd"]) if len(definition) % 2 else Trial(name="f", signature="f() -> int64")


class Operation(NamedTuple):
    method: str
    path: str
    told: Schema


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("openapi")
    database = Database.open(f"sqlite:///{folder / 'cluster.sqlite'}")
    database.migrate()
    with Client(create_app(ApiParts(database, Quick(folder / "functions"), Records(folder)))) as client:
        yield client
    database.close()


@pytest.fixture(scope="module")
def document(client: Client) -> Schema:
    told: Schema = client.get("/api/v1/api-docs/openapi.json").json()
    return told


def operations(document: Schema) -> list[Operation]:
    return [
        Operation(method, path, told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
        if method in _METHODS
    ]


def values(document: Schema, schema: Schema) -> st.SearchStrategy[Any]:
    """Values that a schema of the document allows."""
    if "$ref" in schema:
        return st.deferred(
            lambda: values(document, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]])
        )
    if "anyOf" in schema:
        return st.one_of([values(document, one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        needed = schema.get("required", [])
        own = {name: values(document, one) for name, one in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: own[name] for name in needed},
            optional={name: one for name, one in own.items() if name not in needed},
        )
    if kind == "object":
        inner = schema.get("additionalProperties")
        return st.dictionaries(
            st.text(max_size=5), values(document, inner) if isinstance(inner, dict) else anything(), max_size=3
        )
    if kind == "array":
        return st.lists(values(document, schema["items"]), max_size=2)
    if kind == "integer":
        return st.integers(schema.get("minimum", -(2**70)), schema.get("maximum", 2**70))
    if kind == "number":
        return st.floats(allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind == "string" and "pattern" in schema:
        return st.from_regex(schema["pattern"]).filter(lambda text: "\n" not in text) | st.text(max_size=5)
    if kind == "string":
        return st.text(max_size=12)
    return anything()


def anything() -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    )


IDS = st.sampled_from(
    ["pl_0000000000", "x", "0", "-1", "2147483648", "99999999999999999999", "a b", "ä", "%", "..", "'"]
)


@pytest.mark.cluster
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_request_is_answered_with_a_500(client: Client, document: Schema, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(operations(document)))
    path, query = operation.path, {}
    for one in operation.told.get("parameters", ()):
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(data.draw(IDS), safe=""))
        elif one["in"] == "query" and data.draw(st.booleans()):
            query[one["name"]] = data.draw(values(document, one["schema"]) | st.text(max_size=5))
    content = None
    if "requestBody" in operation.told:
        schema = operation.told["requestBody"]["content"]["application/json"]["schema"]
        shape = data.draw(st.sampled_from(["right", "right", "right", "anything", "bytes"]))
        if shape == "bytes":
            content = data.draw(st.binary(max_size=40))
        else:
            value = data.draw(values(document, schema) if shape == "right" else anything())
            content = json.dumps(value).encode()
    elif operation.method in ("post", "put", "patch"):
        content = b"{}"
    answer = client.request(
        operation.method.upper(),
        f"/api{path}",
        params={name: str(value).encode("utf-8", "replace") for name, value in query.items()},
        content=content,
        headers={"content-type": "application/json"} if content is not None else {},
    )
    assert answer.status_code < 500, answer.text
    if answer.status_code != 200:
        assert answer.status_code in (400, 404, 405, 409, 413, 415, 422)
        assert list(answer.json()) == ["error"]
        assert isinstance(answer.json()["error"], str)


def test_the_document_has_every_endpoint_of_the_contract(document: Schema) -> None:
    contract = [
        "GET",
        "/ping",
        "GET",
        "/connectors",
        "GET",
        "/connection_profiles",
        "POST",
        "/connection_profiles",
        "POST",
        "/connection_profiles/test",
        "GET",
        "/connection_profiles/{id}/autocomplete",
        "DELETE",
        "/connection_profiles/{id}",
        "GET",
        "/connection_tables",
        "POST",
        "/connection_tables",
        "POST",
        "/connection_tables/test",
        "POST",
        "/connection_tables/schemas/test",
        "DELETE",
        "/connection_tables/{id}",
        "POST",
        "/pipelines/validate_query",
        "POST",
        "/pipelines",
        "PUT",
        "/pipelines/{id}",
        "POST",
        "/pipelines/preview",
        "GET",
        "/pipelines",
        "GET",
        "/pipelines/{id}",
        "PATCH",
        "/pipelines/{id}",
        "POST",
        "/pipelines/{id}/restart",
        "DELETE",
        "/pipelines/{id}",
        "GET",
        "/jobs",
        "GET",
        "/pipelines/{id}/jobs",
        "GET",
        "/pipelines/{id}/jobs/{job_id}/errors",
        "GET",
        "/pipelines/{id}/jobs/{job_id}/checkpoints",
        "GET",
        "/pipelines/{id}/jobs/{job_id}/checkpoints/{epoch}/operator_checkpoint_groups",
        "GET",
        "/pipelines/{id}/jobs/{job_id}/operator_metric_groups",
        "GET",
        "/pipelines/{id}/jobs/{job_id}/output",
        "GET",
        "/udfs",
        "POST",
        "/udfs",
        "POST",
        "/udfs/validate",
        "DELETE",
        "/udfs/{id}",
    ]
    wanted = {(method.lower(), f"/v1{path}") for method, path in zip(contract[::2], contract[1::2], strict=True)}
    assert wanted <= {(one.method, one.path) for one in operations(document)}
    assert document["servers"] == [{"url": "/api/"}]


def test_each_operation_has_a_name_of_its_own(document: Schema) -> None:
    """Clients are generated from it."""
    names = [one.told["operationId"] for one in operations(document)]
    assert len(names) == len(set(names))


def test_the_api_has_no_page_that_loads_something_from_elsewhere(client: Client) -> None:
    for path in ("/api/docs", "/api/redoc", "/api/v1/swagger-ui"):
        assert client.get(path).status_code == 404
