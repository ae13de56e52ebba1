"""Runs queries as one job on Flink within this process: queries_program.py FOLDER < queries.

Of queries, JSON has the name, the text and its outputs. FOLDER has what they read, and functions.so for this Python; it
gets a folder of parts for each output of each query.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.data_stream import DataStreamSink

from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.flink.graph import build
from arroyo_udf_plugin.engine.flink.program import JobArguments
from arroyo_udf_plugin.engine.flink.runner import settings_of
from arroyo_udf_plugin.engine.pipeline.description import Pipeline, described
from arroyo_udf_plugin.engine.planner.script import Script


def pipeline_of(folder: Path, name: str, text: str, outputs: list[str]) -> Pipeline:
    """With parts as its sinks."""
    pipeline = Script("query.sql", text, [str(folder / "functions.so")]).pipeline
    sinks = [
        Parts(path=str(folder / name / output), after=sink.after)
        for output, sink in zip(outputs, pipeline.sinks, strict=True)
    ]
    return pipeline.model_copy(update={"sinks": tuple(sinks)})


def apart(name: str) -> None:
    """Operators of several pipelines in one job have uids of their own."""
    for kind in (DataStream, DataStreamSink):
        original = getattr(kind.uid, "original", kind.uid)

        def uid(stream: Any, uid: str, original: Any = original) -> Any:
            return original(stream, f"{name} {uid}")

        uid.original = original  # type: ignore[attr-defined]
        kind.uid = uid


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    configuration = Configuration()
    for key, value in settings_of(JobArguments(pipeline={}, checkpoint_interval=1.0)).items():
        configuration.set_string(key, value)
    for key in ("python.executable", "python.client.executable"):
        configuration.set_string(key, sys.executable)
    configuration.set_string("taskmanager.memory.network.max", "512m")
    configuration.set_string("taskmanager.memory.network.min", "512m")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    for name, text, outputs in json.load(sys.stdin):
        apart(name)
        pipeline = described(pipeline_of(folder, name, text, outputs))
        arguments = JobArguments(pipeline=pipeline, slices=3, checkpoint_interval=1.0)
        build(env, arguments.model_dump_json())
    env.execute("queries")


if __name__ == "__main__":
    main()
