"""The program that Flink runs for a pipeline: `PythonDriver -py runner.py --job JSON`.

JSON: see `program.JobArguments`. It is the same file for all jobs, in the Python of Flink's machines, so that a job is
submitted over REST alone.

What is refused here, such as a topic that is not there, is a job that fails at once and says why: of a program that
ends without a job, REST says nothing but its exit code.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from arroyo_udf_plugin.engine.flink.functions import Refuses
from arroyo_udf_plugin.engine.flink.graph import build
from arroyo_udf_plugin.engine.flink.program import JobArguments
from arroyo_udf_plugin.errors import ArroyoUdfError

_SETTINGS = {
    # Elements that a barrier has to wait for: they are whole batches.
    "python.fn-execution.bundle.size": "16",
    "python.fn-execution.bundle.time": "100",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "100 ms",
    "restart-strategy.exponential-delay.max-backoff": "10 s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.tolerable-failed-checkpoints": "100",
}
_ONCE = {
    "restart-strategy.type": "none",
    "execution.state-recovery.ignore-unclaimed-state": "true",  # of the checkpoint from which it was to go on
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


def _environment(settings: Mapping[str, str]) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A pipeline on Apache Flink.")
    parser.add_argument("--job", required=True, help="JobArguments as JSON")
    text = parser.parse_args(argv).job
    arguments = JobArguments.model_validate_json(text)
    env = _environment(settings_of(arguments))
    try:
        build(env, text)
    except ArroyoUdfError as error:
        env = _environment(_ONCE)
        env.from_collection([0]).map(Refuses(error)).print()
    env.execute(str(arguments.pipeline.get("name", "pipeline")))


if __name__ == "__main__":
    main()
