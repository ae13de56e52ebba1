"""Tables of HTTP in SQL: their options, and a query from one address to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from http_server import Answer, serving

from arroyo_udf_plugin.engine.connectors.http.webhook_sink import WebhookOutput
from arroyo_udf_plugin.engine.connectors.registry import connectors
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.description import Pipeline, described
from arroyo_udf_plugin.engine.planner.script import Script


def planned(text: str) -> Pipeline:
    return Script("query.sql", text, []).pipeline


def table(columns: str, **options: str) -> str:
    written = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"CREATE TABLE t ({columns}) WITH ({written});"


def source(columns: str, **options: str) -> dict[str, Any]:
    """The description of such a table, without what is as by default."""
    model = planned(table(columns, **options) + "SELECT * FROM t").source
    kept = described(planned(table(columns, **options) + "SELECT * FROM t"))["source"]
    fields: Any = type(model).model_fields
    return {
        name: value
        for name, value in kept.items()
        if value != fields[name].get_default(call_default_factory=True, validated_data={})
    }


def test_polling() -> None:
    found = source(
        "n BIGINT, more JSON",
        **{"connector": "polling_http", "endpoint": "http://a/b", "headers": "A: b,C: d:e", "method": "POST"},
        **{"body": "q", "poll_interval_ms": "250", "emit_behavior": "changed", "source.answers": "3"},
    )
    assert (found["headers"], found["interval"], found["emit"]) == ({"A": "b", "C": "d:e"}, 0.25, "changed")
    assert (found["method"], found["body"], found["answers"]) == ("POST", "q", 3)
    assert (found["types"]["n"], list(found["json_columns"])) == ("int64", ["more"])


def test_events() -> None:
    found = source(
        "value TEXT, id TEXT METADATA FROM 'id'",
        **{"connector": "sse", "endpoint": "http://a/b", "events": "a, b", "format": "raw_string"},
    )
    assert (list(found["events"]), found["format"], found["metadata"]) == (["a", "b"], "raw_string", {"id": "id"})


def test_receiving() -> None:
    found = source(
        "n BIGINT, k TEXT METADATA FROM 'key', at BIGINT METADATA FROM 'received'",
        **{"connector": "webhook", "type": "source", "listen": "127.0.0.1:1", "path": "/a", "token": "s3cret"},
        **{"journal": "j", "source.max_body": "1MiB", "source.remember": "1 minute", "source.bounded": "true"},
    )
    assert (found["path"], found["max_body"], found["remember"], found["bounded"]) == ("/a", 1 << 20, 60.0, True)
    assert found["metadata"] == {"k": "key", "at": "received"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"connector": "polling_http"}, "table t has no endpoint"),
        ({"connector": "polling_http", "endpoint": "b"}, "write an address such as"),
        ({"connector": "polling_http", "endpoint": "http://a", "headers": "b"}, "write headers such as"),
        (
            {"connector": "polling_http", "endpoint": "http://a", "poll_interval_ms": "x"},
            "write a number of milliseconds",
        ),
        ({"connector": "sse", "endpoint": "http://a", "evnts": "b"}, "there is no option evnts here: write 'events'"),
        ({"connector": "webhook", "listen": "127.0.0.1:1", "type": "source"}, "table t has no journal"),
    ],
)
def test_what_is_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(Exception, match=why):
        source("n BIGINT", **options)


def test_a_query_from_an_address_to_another(tmp_path: Path) -> None:
    with (
        serving(lambda request: Answer(200, b'[{"n": 1}, {"n": 2}]')) as prices,
        serving(lambda request: Answer(204)) as alerts,
    ):
        pipeline = planned(f"""
            {table("n BIGINT", connector="polling_http", endpoint=prices.url, format="json", **{"source.answers": "1"})}
            CREATE TABLE alerts (n BIGINT, twice BIGINT) WITH (connector = 'webhook', type = 'sink',
                endpoint = '{alerts.url}', 'sink.rows' = '10', 'sink.secret' = 'a', 'sink.concurrency' = '1');
            INSERT INTO alerts SELECT n, n * 2 AS twice FROM t;
        """)
        checkpoints = {"place": str(tmp_path / "state"), "every": 0.05}
        summary = run_pipeline(
            Pipeline.model_validate({**described(pipeline), "checkpoints": checkpoints}, strict=False)
        )
        assert summary.ended == "finished"
        (request,) = alerts.requests
        assert json.loads(request.body) == [{"n": 1, "twice": 2}, {"n": 2, "twice": 4}]


RECEIVER = {"type": "source", "listen": "127.0.0.1:1", "journal": "j"}
SENDER = {"type": "sink", "endpoint": "http://a"}


def with_profile(name: str, config: dict[str, Any], profile: dict[str, Any]) -> dict[str, str]:
    """The options of a table with these forms."""
    entry = connectors()[name].entry
    assert entry is not None
    assert entry.profile is not None
    assert not entry.needs_profile
    assert set(entry.secrets) >= profile.keys() - {"header"}
    return entry.profile.model_validate(profile).added_to(entry.table.model_validate(config).options())


def test_secrets_of_a_profile_are_added_to_a_table() -> None:
    address = {"endpoint": "http://a"}
    for name in ("polling_http", "sse"):
        assert with_profile(name, address, {"value": "${V}"})["headers"] == "Authorization: ${V}"
        named = with_profile(name, address | {"headers": "A: b"}, {"header": "X-Key", "value": "${V}"})
        assert named["headers"] == "A: b,X-Key: ${V}"
    every = {"value": "${V}", "secret": "${S}", "token": "${T}"}
    sent = with_profile("webhook", {"table_type": SENDER}, every)
    assert sent == SENDER | {"headers": "Authorization: ${V}", "sink.secret": "${S}"}
    assert with_profile("webhook", {"table_type": RECEIVER}, every) == RECEIVER | {"token": "${T}"}
    (sink,) = planned(
        "CREATE TABLE o (counter BIGINT) WITH (connector = 'impulse', event_rate = '1');"
        + table("n BIGINT", connector="webhook", **sent)
        + "INSERT INTO t SELECT counter AS n FROM o"
    ).sinks
    assert isinstance(sink, WebhookOutput)
    assert (sink.headers, sink.secret) == ({"Authorization": "${V}"}, "${S}")


@pytest.mark.parametrize(
    ("name", "config", "profile", "why"),
    [
        ("webhook", {"table_type": RECEIVER}, {"value": "a", "secret": "b"}, "its profile has nothing for a source"),
        ("webhook", {"table_type": SENDER}, {"token": "a"}, "its profile has nothing for a sink"),
        ("webhook", {"table_type": RECEIVER | {"token": "a"}}, {"token": "a"}, "Extra inputs are not permitted"),
        ("sse", {"endpoint": "http://a"}, {}, "or use tables without a profile"),
        ("sse", {"endpoint": "http://a", "headers": "authorization: a"}, {"value": "a"}, "give it to a profile"),
        ("sse", {"endpoint": "http://a", "headers": "A"}, {"value": "a"}, "write Name: value"),
    ],
)
def test_profiles_and_tables_that_do_not_fit(
    name: str, config: dict[str, Any], profile: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        with_profile(name, config, profile)


def test_a_header_may_name_a_variable() -> None:
    table_config = {"endpoint": "http://a", "headers": "Authorization: Bearer ${TOKEN}"}
    assert with_profile("sse", table_config, {"header": "X-Key", "value": "a"})["headers"].endswith("${TOKEN},X-Key: a")


@pytest.mark.parametrize("name", ["polling_http", "redis", "sse", "webhook"])
def test_forms_have_the_options_of_tables(name: str) -> None:
    entry = connectors()[name].entry
    assert entry is not None
    form = entry.table.model_validate(entry.table.example)
    options = {"connector": name, "format": "json"} | form.options()
    if entry.profile is not None:
        options = entry.profile.model_validate(entry.profile.example).added_to(options)
    other = "CREATE TABLE other (counter BIGINT) WITH (connector = 'impulse', event_rate = '1');"
    is_source = form.table_type() == "source"
    query = "SELECT n FROM t" if is_source else "INSERT INTO t SELECT counter AS n FROM other"
    told = described(planned(table("n BIGINT", **options) + ("" if is_source else other) + query))
    assert (told["source"] if is_source else told["sinks"][0])["type"] == name
