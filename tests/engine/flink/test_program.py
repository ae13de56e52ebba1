"""What a job on Flink is given, and what it refuses before Flink has it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pydantic
import pytest

from arroyo_udf_plugin.engine.flink.program import JobArguments, opened
from arroyo_udf_plugin.errors import InvalidArgument, PluginEnvironmentError


def arguments(tmp_path: Path, **others: Any) -> JobArguments:
    """Of a pipeline that copies a file, with other parts."""
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    pipeline = {
        "name": "copy",
        "source": {"type": "files", "paths": [str(tmp_path / "in.csv")]},
        "sinks": [{"type": "parts", "path": str(tmp_path / "out"), "format": "jsonl"}],
    }
    own = {name: others.pop(name) for name in ("source", "sinks") if name in others}
    return JobArguments(pipeline=pipeline | own, **others)


def test_a_pipeline_is_planned_in_slices(tmp_path: Path) -> None:
    with contextlib.closing(opened(arguments(tmp_path, slices=5)).planned) as planned:
        assert (planned.parallelism, planned.resolved.has_checkpoints) == (5, False)


def refusal(given: JobArguments) -> str:
    with pytest.raises(InvalidArgument) as caught:
        opened(given)
    return str(caught.value)


def test_a_file_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = refusal(arguments(tmp_path, source={"type": "files", "paths": ["in.csv"]}))
    assert refused == "in.csv: Flink's processes are in other folders: write the whole path, from / on"


TOPIC = {"type": "kafka", "bootstrap_servers": "localhost:1", "topic": "orders"}


def test_topics_of_kafka_are_planned_without_a_question_to_the_cluster(tmp_path: Path) -> None:
    """Flink's processes may be without the client, and nobody listens there."""
    given = arguments(tmp_path, source=TOPIC | {"types": {"n": "int"}}, sinks=[TOPIC], positions={"source": {"0": {}}})
    program = opened(given)
    with contextlib.closing(program.planned):
        model, schema = program.topic_of("kafka")
        assert (model.topic, schema.names, program.is_exactly_once(model)) == ("orders", ["n"], True)


def test_the_columns_of_a_topic_are_checked(tmp_path: Path) -> None:
    assert "no column 'key'" in refusal(arguments(tmp_path, sinks=[TOPIC | {"key_field": "key"}]))


def test_a_property_that_java_does_not_have_is_refused(tmp_path: Path) -> None:
    topic = TOPIC | {"client_configs": {"socket.nagle.disable": "true"}}
    assert "on Flink, 'socket.nagle.disable' has no meaning" in refusal(arguments(tmp_path, sinks=[topic]))


def test_exactly_once_needs_checkpoints(tmp_path: Path) -> None:
    given = arguments(tmp_path, sinks=[TOPIC | {"commit_mode": "exactly_once"}], checkpoint_interval=None)
    assert refusal(given) == 'kafka: exactly_once needs checkpoints; without, write "at_least_once"'


def test_a_sink_of_one_file_is_refused(tmp_path: Path) -> None:
    refused = refusal(arguments(tmp_path, sinks=[{"type": "file", "path": str(tmp_path / "out.jsonl")}]))
    assert "cannot run on Flink" in refused


def test_positions_are_those_of_sources_that_there_are(tmp_path: Path) -> None:
    refused = refusal(arguments(tmp_path, positions={"others": {}}))
    assert refused == "positions: there is no source 'others': there are source"


@pytest.mark.parametrize(("key", "value"), [("slices", 0), ("slices", 129), ("version", 2), ("checkpoint_interval", 0)])
def test_arguments_are_checked(tmp_path: Path, key: str, value: int) -> None:
    with pytest.raises(pydantic.ValidationError):
        arguments(tmp_path, **{key: value})


def test_a_pyarrow_that_damages_texts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer of messages does it, with texts that begin in the middle of a buffer."""
    monkeypatch.setattr(pa, "__version__", "16.1.0")
    with pytest.raises(PluginEnvironmentError, match=r"^pyarrow 16\.1\.0 damages texts"):
        opened(arguments(tmp_path))
