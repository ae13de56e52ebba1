"""The program that Flink runs for a pipeline: `PythonDriver -py runner.py --job JSON`.

JSON: see `program.JobArguments`. It is the same file for all jobs, in the Python of Flink's machines, so that a job is
submitted over REST alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from arroyo_udf_plugin.engine.flink.graph import build
from arroyo_udf_plugin.engine.flink.program import JobArguments

_SETTINGS = {
    # Elements that a barrier has to wait for: they are whole batches.
    "python.fn-execution.bundle.size": "16",
    "python.fn-execution.bundle.time": "100",
    "python.state.cache-size": "10000",
    "python.map-state.read-cache-size": "10000",
    "python.map-state.write-cache-size": "10000",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "100 ms",
    "restart-strategy.exponential-delay.max-backoff": "10 s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.tolerable-failed-checkpoints": "100",
}


def settings_of(arguments: JobArguments) -> dict[str, str]:
    """Flink's, for a job."""
    settings = dict(_SETTINGS)
    if arguments.checkpoint_interval is not None:
        settings["execution.checkpointing.interval"] = f"{round(arguments.checkpoint_interval * 1000)} ms"
        settings["execution.checkpointing.min-pause"] = f"{round(arguments.checkpoint_interval * 500)} ms"
    if arguments.place is not None:
        settings["execution.checkpointing.storage"] = "filesystem"
        settings["execution.checkpointing.dir"] = arguments.place
        settings["execution.checkpointing.savepoint-dir"] = arguments.place
    return settings


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A pipeline on Apache Flink.")
    parser.add_argument("--job", required=True, help="JobArguments as JSON")
    text = parser.parse_args(argv).job
    arguments = JobArguments.model_validate_json(text)
    configuration = Configuration()
    for key, value in settings_of(arguments).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(env, text)
    env.execute(str(arguments.pipeline.get("name", "pipeline")))


if __name__ == "__main__":
    main()
