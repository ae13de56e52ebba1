"""A sink of a pipeline on Flink: rows become whole part files, and Flink's FileSink stores each as a file of its own.

    write_parts(env, messages, text, model, name)

    messages ──► MarksCheckpoints ──► SinkFunction ──► FileSink
                 a mark before        the rows since
                 each checkpoint      then, as parts

Guarantees: with checkpoints, each row is in one part, once. No row waits in the sink when a checkpoint begins, so the
sink has no state, and a job that goes on elsewhere leaves none behind. A part has its name, `part-….parquet`, when the
checkpoint behind its rows is complete; without checkpoints, at the end of the input. Before that its file is hidden:
the name begins with a dot, or the object is not there. A failure may leave hidden files behind, which nobody reads.

PyFlink's timers would not do: those that are set in the last bundle before a checkpoint are not in it (PyFlink 2.3).

Assumes: PyFlink, in the process that submits the job.
"""

from __future__ import annotations

from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.java_gateway import get_gateway

from ..connectors.location import location_of
from ..connectors.parts import Parts
from .functions import bytes_type, posted_type
from .functions_sink import SinkFunction
from .java_classes import new_java


def write_parts(env: StreamExecutionEnvironment, messages: DataStream, text: str, model: Parts, name: str) -> None:
    """messages: for the sink of this name, as `posted_type` has them. text: `JobArguments`. model: the sink's, with the
    values of its variables; `check_output` has let it pass."""
    marks = new_java(env, "MarksCheckpoints")
    marked = DataStream(messages._j_data_stream.transform("marks", posted_type().get_java_type_info(), marks))
    parts = marked.uid(f"marks-{name}").process(SinkFunction(text, name), bytes_type())
    parts.uid(f"parts-{name}").name(f"parts of {name}").sink_to(file_sink(env, model)).uid(f"sink-{name}").name(name)


def file_sink(env: StreamExecutionEnvironment, model: Parts) -> FileSink:
    """Each element, `bytes`, is a file in the folder of `model`."""
    flink = get_gateway().jvm.org.apache.flink
    files = flink.streaming.api.functions.sink.filesystem
    each = new_java(env, "OneFileEach")
    builder = flink.connector.file.sink.FileSink.forRowFormat(flink.core.fs.Path(_folder(model.path)), each)
    builder.withRollingPolicy(each)
    builder.withBucketAssigner(files.bucketassigners.BasePathBucketAssigner())
    names = files.OutputFileConfig.builder().withPartPrefix("part").withPartSuffix(model.ending)
    builder.withOutputFileConfig(names.build())
    return FileSink(builder.build())


def _folder(path: str) -> str:
    """As Flink has it: in its URLs, paths are not quoted."""
    where = location_of(path)
    return where.text if where.path is None else f"file://{where.path}"
