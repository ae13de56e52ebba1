"""What a job on Flink is given, and what it refuses before Flink has it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pydantic
import pytest

from arroyo_udf_plugin.engine.flink.program import JobArguments, opened
from arroyo_udf_plugin.errors import InvalidArgument


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
