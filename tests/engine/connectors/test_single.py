"""One output file, standard output, and the sink that drops all: what slices share, and what cannot be resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from sinks import SCHEMA, StageIn, batch
from streams import read

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.blackhole import Blackhole
from arroyo_udf_plugin.engine.connectors.interface import TransactionalSink
from arroyo_udf_plugin.engine.connectors.single import File
from arroyo_udf_plugin.engine.connectors.standard_output import StandardOutput
from arroyo_udf_plugin.engine.execution.store import open_store


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "arrow", "arrows"])
def test_the_file_appears_when_all_slices_have_finished(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    slices = [File(path=str(path)).sink(SCHEMA, slice, None, "pipeline", "sink") for slice in range(3)]
    for at, sink in enumerate(slices):
        sink.write(batch(at))
        sink.finish()
        assert path.exists() == (at == 2)
        sink.close()
    assert sorted(int(each) for each in read(path).column("a").to_pylist()) == [0, 1, 2]


def test_the_old_file_stays_if_a_slice_has_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("old")
    one, other = (File(path=str(path)).sink(SCHEMA, slice, None, "pipeline", "sink") for slice in range(2))
    one.write(batch(1))
    one.finish()
    one.close()
    other.close()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    again = File(path=str(path)).sink(SCHEMA, 0, None, "pipeline", "sink")
    again.write(batch(2))
    again.finish()
    again.close()
    assert path.read_text() == "a,b\n2,row 2\n"


def test_without_rows_the_file_has_the_names_of_the_columns(tmp_path: Path) -> None:
    sink = File(path=str(tmp_path / "rows.csv")).sink(SCHEMA, 0, None, "pipeline", "sink")
    sink.finish()
    sink.close()
    assert (tmp_path / "rows.csv").read_text() == "a,b\n"


def test_with_checkpoints_one_file_is_refused_and_parts_are_named(tmp_path: Path) -> None:
    stage = StageIn(open_store(str(tmp_path)), "history")
    with pytest.raises(
        InvalidArgument,
        match=r'rows\.csv: one file cannot go on.*write a folder: type = "parts".* in SQL connector = .filesystem.',
    ):
        File(path=str(tmp_path / "rows.csv")).sink(SCHEMA, 0, stage, "pipeline", "sink")
    for model in (File(path=str(tmp_path / "rows.csv")), Blackhole()):
        sink = model.sink(SCHEMA, 0, None, "pipeline", "sink")
        assert isinstance(sink, TransactionalSink) == isinstance(model, Blackhole) == model.resumable
        sink.close()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("none/rows.csv", r"the folder .*none does not exist"),
        (".", r"is a folder; name a file in it"),
        ("rows.xlsx", r"rows\.xlsx: the file's ending must be one of"),
    ],
)
def test_a_path_that_cannot_be_is_refused_before_any_row(tmp_path: Path, path: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        File(path=str(tmp_path / path)).check(SCHEMA)


def test_a_column_that_csv_cannot_hold_is_refused_before_any_row(tmp_path: Path) -> None:
    schema = pa.schema([("l", pa.list_(pa.int8()))])
    with pytest.raises(InvalidArgument, match=r"rows\.csv: CSV cannot hold column 'l'"):
        File(path=str(tmp_path / "rows.csv")).check(schema)
    with pytest.raises(InvalidArgument, match=r"CSV cannot hold column 'l'"):
        StandardOutput().check(schema)
    Blackhole().check(schema)


def test_a_check_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("old")
    File(path=str(path)).check(SCHEMA)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_check_of_a_fifo_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows")
    File(path=str(tmp_path / "rows")).check(SCHEMA)


def test_text_cells_stay_as_they_are_in_csv() -> None:
    assert not File(path="rows.csv").typed
    assert File(path="rows.jsonl").typed
    assert not File(path="rows.parquet", format="tsv").typed
    assert not StandardOutput().typed
    assert StandardOutput(format="jsonl").typed
    assert Blackhole().typed


def test_blackhole_counts_rows() -> None:
    sink = Blackhole().sink(SCHEMA, 0, None, "pipeline", "sink")
    sink.write(batch(1, 2))
    sink.write(batch(3))
    assert sink.seal(2) is None
    assert sink.rows == 3


# ---- Standard output -------------------------------------------------------------------------------------------------

WRITER = """
import sys
from sinks import SCHEMA, batch
from arroyo_udf_plugin.engine.connectors.standard_output import StandardOutput
slices = [StandardOutput(format=sys.argv[1]).sink(SCHEMA, slice, None, "pipeline", "sink") for slice in range(2)]
print("from a function")
for line in sys.stdin:
    slices[int(line) % 2].write(batch(int(line)))
for sink in slices:
    sink.finish()
    sink.close()
"""


def test_each_batch_is_out_when_it_is_written() -> None:
    """The next program has it before another one follows; what functions print is not in between."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, "csv"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stderr is not None
        for number in range(4):
            writer.stdin.write(f"{number}\n")
            writer.stdin.flush()
            if number == 0:
                assert writer.stdout.readline() == "a,b\n"
            assert writer.stdout.readline() == f"{number},row {number}\n"
        writer.stdin.close()
        assert writer.stdout.read() == ""
        assert writer.stderr.read() == "from a function\n"
    assert writer.returncode == 0


def test_rows_of_other_columns_share_standard_output_as_lines() -> None:
    """Each row is a line, whichever sink writes it, and also after one of the sinks has ended."""
    code = """
import pyarrow as pa
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.standard_output import StandardOutput
model = StandardOutput(format="jsonl")
batches = [pa.record_batch([[at]], [name]) for at, name in enumerate("abb")]
sinks = [model.sink(batch.schema, slice, None, "pipeline", "sink") for slice, batch in enumerate(batches)]
for _ in range(2):
    for sink, batch in zip(sinks, batches):
        sink.write(batch)
    sinks.pop(0).finish()
    batches.pop(0)
try:
    StandardOutput(format="csv").sink(batches[0].schema, 0, None, "pipeline", "sink")
except InvalidArgument as error:
    sinks[0].write(pa.record_batch([[len(str(error))]], ["b"]))
sinks[0].finish()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = "- is being written with other columns, or in another format"
    assert done.stdout.splitlines() == ['{"a":0}', *2 * ['{"b":1}', '{"b":2}'], f'{{"b":{len(text)}}}']
