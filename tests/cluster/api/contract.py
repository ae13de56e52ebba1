"""The shapes of Arroyo's answers, written down from its contract alone, and a check of an answer against one.

    check("Pipeline", answer)            raises AssertionError with the path of what differs

In a shape, `?` is a field that may be null or absent; a name in upper case is another shape; micros is a time in whole
microseconds since 1970. An answer has exactly these fields, and those of OURS: generated clients may refuse others.
"""

from __future__ import annotations

import re
from typing import Any

STOP = "none|checkpoint|graceful|immediate|force"
DOMAIN = "user|external|internal"
METRIC = "bytes_recv|bytes_sent|messages_recv|messages_sent|backpressure|tx_queue_size|tx_queue_rem"
FIELD = "int32|int64|uint32|uint64|float32|float64|decimal128|bool|string|bytes|timestamp|json|struct|list"

SHAPES = {
    "Error": "error: str",
    "Pipeline": f"""id: str, name: str, query: str, udfs: [Udf], checkpoint_interval_micros: int, stop: {STOP},
        created_at: micros, action?: {STOP}, action_text: str, action_in_progress: bool, graph: PipelineGraph,
        preview: bool, state_url?: str, tags: texts""",
    "PipelineGraph": "nodes: [PipelineNode], edges: [PipelineEdge]",
    "PipelineNode": "node_id: int, operator: str, description: str, parallelism: int",
    "PipelineEdge": """src_id: int, dest_id: int, key_type: (), value_type: (),
        edge_type: Forward|Shuffle|LeftJoin|RightJoin""",
    "Job": """id: str, pipeline_id: str, running_desired: bool, state: str, run_id: int, start_time?: micros,
        finish_time?: micros, tasks?: int, failure_reason?: FailureReason, created_at: micros, scheduler_config: any,
        env_vars: texts""",
    "FailureReason": f"error: str, domain: {DOMAIN}",
    "JobLogMessage": f"""id: str, created_at: micros, operator_id?: str, task_index?: int, level: info|warn|error,
        message: str, details: str, error_domain?: {DOMAIN}""",
    "Checkpoint": """epoch: int, backend: parquet, checkpoint_type: scheduled|stopping, start_time: micros,
        finish_time?: micros, events: [CheckpointEventSpan]""",
    "CheckpointEventSpan": "event: str, description: str, start_time: micros, finish_time: micros",
    "OperatorCheckpointGroup": """operator_id: str, bytes: int, started_metadata_write?: micros, finish_time?: micros,
        subtasks: [SubtaskCheckpoint]""",
    "SubtaskCheckpoint": "index: int, bytes: int, event_spans: [CheckpointEventSpan]",
    "OperatorMetricGroup": "node_id: int, metric_groups: [MetricGroup]",
    "MetricGroup": f"name: {METRIC}, subtasks: [SubtaskMetrics]",
    "SubtaskMetrics": "index: int, metrics: [Metric]",
    "Metric": "time: micros, value: number",
    "OutputData": "operator_id: str, subtask_idx: int, timestamps: [micros], start_id: int, batch: str",
    "QueryValidationResult": "graph?: PipelineGraph, errors: [SqlDiagnostic]",
    "SqlDiagnostic": "message: str, span?: Span",
    "Span": "start: Location, end: Location",
    "Location": "line: int, column: int",
    "Udf": "definition: str, language: python|rust|c",
    "GlobalUdf": """id: str, prefix: str, name: str, language: python|rust|c, created_at: micros, updated_at: micros,
        definition: str, description?: str, dylib_url?: str""",
    "UdfValidationResult": "udf_name?: str, errors: [str]",
    "Connector": """id: str, name: str, icon: str, description: str, table_config: str, connection_config?: str,
        enabled: bool, source: bool, sink: bool, custom_schemas: bool, testing: bool, hidden: bool""",
    "ConnectionProfile": "id: str, name: str, connector: str, config: any, description: str",
    "Autocomplete": "values: any",
    "ConnectionTable": """id: str, name: str, created_at: micros, connector: str,
        connection_profile?: ConnectionProfile, table_type: source|sink|lookup, config: any,
        schema: ConnectionSchema, consumers: int""",
    "ConnectionSchema": """format?: any, bad_data?: BadData, framing?: any, fields: [SourceField], definition?: any,
        inferred?: bool, primary_keys: [str]""",
    "BadData": "behavior: fail|drop",
    "SourceField": f"""name: str, type: {FIELD}, required: bool, metadata_key?: str, sql_name: str, precision?: int,
        scale?: int, unit?: second|millisecond|microsecond|nanosecond, fields?: [SourceField], items?: SourceField""",
    "TestSourceMessage": "error: bool, done: bool, message: str",
}

OURS = {"Pipeline": "waits_for?: str, scheduler: local|flink", "Job": "waits_for?: str"}
"""Fields that Arroyo's answers do not have; docs/cluster_api.md names them."""

_PART = re.compile(r"\s*(\w+)(\?)?: ([^,]+?)\s*(?:,|$)")
_PLAIN = {"str": str, "bool": bool, "int": int, "number": (int, float), "micros": int, "any": object}


def check(shape: str, value: Any, path: str = "") -> None:
    """shape: a name; [name] is a list of it."""
    where = path or shape
    if shape.startswith("["):
        assert isinstance(value, list), where
        for place, one in enumerate(value):
            check(shape[1:-1], one, f"{where}[{place}]")
    elif shape in SHAPES:
        _check_object(shape, value, where)
    elif shape == "texts":
        assert isinstance(value, dict), where
        assert all(isinstance(one, str) for one in value.values()), where
    elif shape in _PLAIN:
        assert isinstance(value, _PLAIN[shape]), f"{where}: {value!r}"  # type: ignore[arg-type]
        assert shape in ("bool", "any") or not isinstance(value, bool), where
        if shape == "micros":
            assert 1_500_000_000_000_000 < value < 10_000_000_000_000_000, f"{where}: {value}"
    else:
        assert value in shape.split("|"), f"{where}: {value!r}"


def _check_object(shape: str, value: Any, where: str) -> None:
    parts = _PART.findall(", ".join([SHAPES[shape], *([OURS[shape]] if shape in OURS else [])]))
    assert isinstance(value, dict), where
    extra = value.keys() - {name for name, _, _ in parts}
    assert not extra, f"{where} has {sorted(extra)}"
    for name, optional, inner in parts:
        if optional and value.get(name) is None:
            continue
        assert name in value, f"{where} has no {name}"
        check(inner, value[name], f"{where}.{name}")


def check_page(shape: str, value: Any) -> list[Any]:
    """One that says whether there is more. Returns its items."""
    assert value.keys() == {"data", "hasMore"}
    assert isinstance(value["hasMore"], bool)
    check(f"[{shape}]", value["data"])
    items: list[Any] = value["data"]
    return items


def check_list(shape: str, value: Any) -> list[Any]:
    """A whole one. Returns its items."""
    assert value.keys() == {"data"}
    check(f"[{shape}]", value["data"])
    items: list[Any] = value["data"]
    return items
