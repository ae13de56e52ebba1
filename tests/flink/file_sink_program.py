"""A job of Flink: numbers become files in three ways, and something fails in the middle.

    file_sink_program.py FOLDER COUNT

FOLDER/elements gets a file for each hundredth number, /rows and /full rows of all of them. FOLDER/failed is made when
the job fails, once, after its first checkpoint.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa
from pyflink.common import Configuration, Row, Types, WatermarkStrategy
from pyflink.datastream import MapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from arroyo_udf_plugin.engine.connectors.impulse import SCHEMA
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.flink.file_sink import file_sink, write_parts
from arroyo_udf_plugin.engine.flink.functions import posted_type, program_of
from arroyo_udf_plugin.engine.flink.messages import MessageWriter, RowsCodec
from arroyo_udf_plugin.engine.flink.program import JobArguments
from arroyo_udf_plugin.engine.operators.blocks import Block

SLICES, ROWS = 4, 3


class FailsOnce(MapFunction):  # type: ignore[misc]
    """Goes slowly until it has failed, so that a checkpoint completes before the numbers end."""

    def __init__(self, folder: Path) -> None:
        self._failed, self._checkpoints = folder / "failed", folder / "checkpoints"

    def map(self, number: int) -> int:
        if not self._failed.exists():
            time.sleep(0.001)  # the case itself: it has to last until a checkpoint is there, however long that takes
            if number % 50 == 0 and any(self._checkpoints.glob("*/*/_metadata")):
                self._failed.touch()
                raise RuntimeError("it fails once")
        return number


def message(number: int) -> Row:
    """Rows of an impulse, as a stage posts them."""
    counter = [number * ROWS + row for row in range(ROWS)]
    rows = pa.record_batch(
        [pa.array(counter, pa.uint64()), *(pa.nulls(ROWS, type) for type in SCHEMA.types[1:])], schema=SCHEMA
    )
    writer = MessageWriter(0)
    writer.rows(RowsCodec(SCHEMA).encode(Block(rows, pa.RecordBatch.from_arrays([], names=[]))))
    return Row(0, 0, writer.take())


def main(folder: Path, count: int) -> None:
    settings = {
        "python.fn-execution.bundle.size": "100",
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100",
        "restart-strategy.fixed-delay.delay": "100 ms",
    }
    config = Configuration()
    for name, value in settings.items():
        config.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    bytes_ = Types.PRIMITIVE_ARRAY(Types.BYTE())
    source = NumberSequenceSource(0, count - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers = numbers.map(FailsOnce(folder), Types.LONG())

    hundredth = numbers.filter(lambda number: number % 100 == 0).map(lambda number: b"%d" % number, bytes_)
    hundredth.sink_to(file_sink(env, Parts(path=f"{folder}/elements", format="text")))
    sinks = [{"type": "parts", "path": f"{folder}/rows"}, {"type": "parts", "path": f"{folder}/full", "part_rows": 100}]
    text = JobArguments(pipeline={"name": "sinks", "source": {"type": "impulse"}, "sinks": sinks}).model_dump_json()
    messages = numbers.key_by(lambda number: number % SLICES, Types.INT()).map(message, posted_type())
    for _, model, name, _ in program_of(text).planned.outputs():
        write_parts(env, messages, text, model, name)
    env.execute("file sink")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
