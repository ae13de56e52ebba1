"""A Delta table as a sink: types, partitions, tables that are there, and epochs, each of which is in the table once."""

from __future__ import annotations

import datetime
import decimal
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from delta_tables import numbers_of, rows_of

import object_store_server
from arroyo_udf_plugin.engine.connectors.delta import table as delta_table
from arroyo_udf_plugin.engine.connectors.delta.connector import DeltaOutput
from arroyo_udf_plugin.engine.connectors.delta.sink import DeltaSink
from arroyo_udf_plugin.engine.connectors.interface import Discardable, Json
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable, WrongCheckpoints
from arroyo_udf_plugin.testing import Report, Simulation, sink_scenario

pytestmark = pytest.mark.connectors

NUMBERS = pa.schema([("n", pa.int64())])


class History:
    """A stage, of which the sink uses only this."""

    def __init__(self, history: str) -> None:
        self.history = history


class Written:
    """A table, and sinks that write it."""

    def __init__(self, place: str) -> None:
        self.place = place

    def sink(
        self, schema: pa.Schema = NUMBERS, slice: int = 0, history: str | None = "h", name: str = "sink", **keys: Any
    ) -> DeltaSink:
        stage: Any = None if history is None else History(history)
        return DeltaOutput(path=self.place, **keys).sink(schema, slice, stage, "pipeline", name)

    def write(self, values: dict[str, Any], **keys: Any) -> None:
        """Rows, without checkpoints."""
        rows = pa.table(values)
        sink = self.sink(rows.schema, history=None, **keys)
        for batch in rows.to_batches():
            sink.write(batch)
        sink.finish()
        sink.close()

    def now(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.place)


def stored(sink: DeltaSink, epoch: int, *numbers: int) -> Json:
    sink.write(pa.record_batch([pa.array(numbers, pa.int64())], schema=NUMBERS))
    sealed = sink.seal(epoch)
    assert sealed is not None
    return sealed.store()


@pytest.fixture
def table(tmp_path: Path) -> Written:
    return Written(str(tmp_path / "table"))


# ---- Rows ------------------------------------------------------------------------------------------------------------

DAY = datetime.date(2026, 1, 2)
TIME = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
UTC = TIME.replace(tzinfo=datetime.UTC)
VALUES = [
    *[(pa.array([value, None], type_), value) for type_ in (pa.int8(), pa.uint32(), pa.uint8()) for value in (127,)],
    (pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
    (pa.array([1.5, None], pa.float32()), 1.5),
    (pa.array(["ä", None], pa.large_string()), "ä"),
    (pa.array(["ä", "ä"]).dictionary_encode(), "ä"),
    (pa.array([b"\0", None], pa.large_binary()), b"\0"),
    (pa.array([True, None]), True),
    (pa.array([DAY, None], pa.date64()), DAY),
    (pa.array([TIME, None], pa.timestamp("us")), TIME),
    (pa.array([TIME.replace(microsecond=0), None], pa.timestamp("s")), TIME.replace(microsecond=0)),
    (pa.array([TIME, None], pa.timestamp("ns")), TIME),
    (pa.array([UTC, None], pa.timestamp("us", "Europe/Berlin")), UTC),
    (pa.array([decimal.Decimal("1.20"), None], pa.decimal128(10, 2)), decimal.Decimal("1.20")),
    (pa.array([[1, None], None], pa.large_list(pa.uint8())), [1, None]),
    (pa.array([{"a": ["x"]}, None], pa.struct([("a", pa.list_(pa.large_string()))])), {"a": ["x"]}),
    (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())), [("k", 1)]),
]


@pytest.mark.parametrize(("column", "value"), VALUES, ids=lambda value: str(getattr(value, "type", "")))
def test_values_are_read_as_they_were(table: Written, column: pa.Array, value: Any) -> None:
    table.write({"a": column})
    found = [row["a"] for row in rows_of(table.place)]
    assert found[0] == value
    assert found[1:] == column.to_pylist()[1:]


@pytest.mark.parametrize("type_", [pa.uint64(), pa.time64("us"), pa.duration("s"), pa.list_(pa.null())], ids=str)
def test_types_that_no_table_has_are_refused(table: Written, type_: pa.DataType) -> None:
    with pytest.raises(InvalidArgument, match=r"table: column 'a': Delta tables have no .*: cast it to another type"):
        DeltaOutput(path=table.place).check(pa.schema([("a", type_)]))
    assert not Path(table.place).exists()


def test_digits_of_times_are_not_lost(table: Written) -> None:
    with pytest.raises(InvalidArgument, match="column 'at': Casting from timestamp"):
        table.write({"at": pa.array([1], pa.timestamp("ns"))})


@pytest.mark.parametrize(
    ("names", "error"), [(["a b"], "names of columns have no spaces"), (["a", "A"], "differ there by more than")]
)
def test_names_that_no_table_has_are_refused(table: Written, names: list[str], error: str) -> None:
    with pytest.raises(InvalidArgument, match=error):
        DeltaOutput(path=table.place).check(pa.schema([(name, pa.int64()) for name in names]))


def test_columns_in_another_order(table: Written) -> None:
    table.write({"a": [1], "b": ["x"], "c": [2.5]}, columns=("c", "a"))
    assert pa.schema(table.now().schema()).names == ["c", "a"]
    table.write({"a": [2], "c": [3.5]})
    assert rows_of(table.place, "a, c", "a > 1") == [{"a": 2, "c": 3.5}]


def test_files_have_limits(table: Written) -> None:
    table.write({"n": list(range(10))}, part_rows=4)
    actions = pa.table(table.now().get_add_actions())
    assert sorted(actions["num_records"].to_pylist()) == [2, 4, 4]
    sizes = {Path(uri).name: Path(uri).stat().st_size for uri in table.now().file_uris()}
    assert dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True)) == sizes
    assert numbers_of(table.place) == list(range(10))


# ---- Partition columns -----------------------------------------------------------------------------------------------


def test_partition_columns(table: Written) -> None:
    rows = {
        "n": [1, 2, 3, 4],
        "day": [DAY, DAY, None, DAY],
        "kind": ["a/b ü", "x", "x", "a/b ü"],
        "is": [True, False, True, True],
    }
    table.write(rows, partition_by=("day", "kind", "is"))
    assert table.now().metadata().partition_columns == ["day", "kind", "is"]
    assert len(table.now().file_uris()) == 3
    found = sorted(rows_of(table.place, "n, day, kind, is"), key=lambda row: row["n"])
    assert found == pa.table(rows).to_pylist()
    table.write({name: values[:1] for name, values in rows.items()})  # it knows them itself
    assert numbers_of(table.place) == [1, 1, 2, 3, 4]
    with pytest.raises(InvalidArgument, match="the partition columns of the table are day, kind, is: leave out"):
        table.write(rows, partition_by=("kind",))


def test_many_partitions(table: Written) -> None:
    table.write({"n": list(range(300)), "p": [n % 150 for n in range(300)]}, partition_by=("p",))
    assert numbers_of(table.place) == list(range(300))


@pytest.mark.parametrize(
    ("by", "error"),
    [
        ("m", "partition_by: there is no column 'm'"),
        ("f", "column 'f' is double: texts, whole numbers"),
        ("n,f,p", "is double|a table needs a column"),
    ],
)
def test_wrong_partition_columns_are_refused(table: Written, by: str, error: str) -> None:
    schema = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("p", pa.string())])
    with pytest.raises(InvalidArgument, match=error):
        DeltaOutput(path=table.place, partition_by=tuple(by.split(","))).check(schema)


def test_an_empty_text_is_no_partition(table: Written) -> None:
    with pytest.raises(InvalidArgument, match="column 'p' is empty in a row, which Delta takes for null"):
        table.write({"n": [1], "p": [""]}, partition_by=("p",))


# ---- Tables that are there -------------------------------------------------------------------------------------------


def made(table: Written, *fields: pa.Field, **keys: Any) -> None:
    deltalake.DeltaTable.create(table.place, pa.schema(fields), **keys)


def test_a_table_of_others_gets_rows(table: Written) -> None:
    made(table, pa.field("n", pa.int64()), pa.field("more", pa.string()), pa.field("f", pa.float64()))
    table.write({"n": pa.array([1], pa.int16()), "f": pa.array([0.5], pa.float32())})
    assert rows_of(table.place) == [{"n": 1, "more": None, "f": 0.5}]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"m": [1]}, "the table has no column 'm'; its columns are n, must: leave it out"),
        ({"n": ["x"], "must": ["y"]}, "column 'n' is string, and that of the table is int32: cast it"),
        ({"n": [1], "must": ["y"]}, "column 'n' is int64, and that of the table is int32: cast it"),
        ({"n": pa.array([1], pa.int32())}, "column 'must' of the table must have values: write it, too"),
        ({"n": pa.array([1], pa.int32()), "must": pa.array([None], pa.string())}, "'must' is null in a row, and may"),
    ],
)
def test_columns_that_do_not_fit_are_named(table: Written, columns: dict[str, Any], error: str) -> None:
    made(table, pa.field("n", pa.int32()), pa.field("must", pa.string(), nullable=False))
    with pytest.raises(InvalidArgument, match=error):
        table.write(columns)


@pytest.mark.parametrize(
    ("configuration", "what"),
    [
        ({"delta.columnMapping.mode": "name"}, "columnMapping"),
        ({"delta.setTransactionRetentionDuration": "interval 7 days"}, "setTransactionRetentionDuration"),
    ],
)
def test_tables_with_rules_that_are_not_kept_are_refused(
    table: Written, configuration: dict[str, str], what: str
) -> None:
    made(table, *NUMBERS, configuration=configuration, raise_if_key_not_exists=False)
    with pytest.raises(InvalidArgument, match=f"the table has .*{what}.*, which this sink does not keep to"):
        DeltaOutput(path=table.place).check(NUMBERS)


def test_a_table_with_a_constraint_is_refused(table: Written) -> None:
    made(table, *NUMBERS)
    table.now().alter.add_constraint({"small": "n < 10"})
    with pytest.raises(InvalidArgument, match=r"the table has .*delta\.constraints\.small"):
        DeltaOutput(path=table.place).check(NUMBERS)


def test_columns_that_change_meanwhile_end_the_pipeline(table: Written) -> None:
    made(table, *NUMBERS)
    sink = table.sink()
    rows = stored(sink, 1, 1)
    table.now().alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 7 days"})
    with pytest.raises(InvalidArgument, match="setTransactionRetentionDuration"):
        sink.apply(1, rows)


# ---- Epochs ----------------------------------------------------------------------------------------------------------


def test_an_epoch_is_in_the_table_once(table: Written) -> None:
    sink, other = table.sink(), table.sink(slice=1)
    first = stored(sink, 1, 1, 2)
    assert numbers_of(table.place) == []
    second = stored(other, 1, 3)
    for _ in range(2):
        sink.apply(1, first)
        other.apply(1, second)
        table.sink(slice=2).apply(1, first)  # another process, with other slices
    assert numbers_of(table.place) == [1, 2, 3]
    assert len(table.now().history()) == 3  # with its beginning
    sink.apply(2, stored(sink, 2, 4))
    sink.apply(1, first)
    assert numbers_of(table.place) == [1, 2, 3, 4]
    assert sink.seal(3) is None


def test_two_processes_apply_the_same_epoch_at_once(table: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    made(table, *NUMBERS)
    sink = table.sink()
    rows = stored(sink, 1, 1, 2)
    both = threading.Barrier(2, timeout=60)
    now, met = delta_table.DeltaLog.now, threading.local()

    def together(log: delta_table.DeltaLog) -> Any:
        found = now(log)
        if not getattr(met, "once", False):
            met.once = True
            both.wait()  # both have seen the table without the epoch
        return found

    sinks = [table.sink(), table.sink()]
    for each in sinks:
        each._log._lock = threading.Lock()  # as of two processes
    monkeypatch.setattr(delta_table.DeltaLog, "now", together)
    threads = [threading.Thread(target=each.apply, args=(1, rows)) for each in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    monkeypatch.undo()
    assert numbers_of(table.place) == [1, 2]


def test_others_write_optimize_and_vacuum_meanwhile(table: Written) -> None:
    sink = table.sink()
    for epoch in range(1, 6):
        rows = stored(sink, epoch, epoch)
        deltalake.write_deltalake(table.place, pa.table({"n": [100 + epoch]}), mode="append")
        sink.apply(epoch, rows)
        table.now().optimize.compact()
        table.now().vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        table.now().create_checkpoint()
    sink.apply(5, rows)
    assert numbers_of(table.place) == [1, 2, 3, 4, 5, 101, 102, 103, 104, 105]


def test_vacuum_may_have_taken_what_waits(table: Written) -> None:
    sink = table.sink()
    sink.apply(1, stored(sink, 1, 1))
    rows = stored(sink, 2, 2)
    table.sink().check(3, 2, [rows])
    (Path(table.place) / rows["files"][0]["name"]).unlink()
    with pytest.raises(
        InvalidArgument, match="has rows of the last checkpoint, is gone: the table was vacuumed before"
    ):
        table.sink().check(3, 2, [rows])


def test_other_checkpoints_are_refused(table: Written) -> None:
    sink = table.sink()
    sink.check(1, 0, [])
    sink.apply(4, stored(sink, 4, 1))
    with pytest.raises(WrongCheckpoints, match="this pipeline has written here with other checkpoints"):
        table.sink(history="new").check(1, 0, [])
    with pytest.raises(WrongCheckpoints, match=r"the table has epoch 4, and the checkpoints .* end before 4"):
        table.sink().check(4, 3, [])
    table.sink().check(5, 4, [])
    table.sink(history="new", name="another").check(1, 0, [])


def test_rows_of_later_epochs_stay(table: Written) -> None:
    sink = table.sink()
    assert sink.later_rows(0, {}).fate == "none"
    sink.apply(4, stored(sink, 4, 1))
    assert (sink.later_rows(3, {}).fate, sink.later_rows(4, {}).fate) == ("doubled", "none")


def test_what_was_never_committed_is_not_in_the_table(table: Written) -> None:
    sink = table.sink(part_rows=1)
    rows = stored(sink, 1, 1, 2)
    assert len(rows["files"]) == 2
    sink.write(pa.record_batch([pa.array([3])], schema=NUMBERS))
    sealed = sink.seal(2)
    assert sealed is not None
    names = {file["name"] for file in sealed.store()["files"]}
    assert isinstance(sealed, Discardable)
    sealed.discard()
    sink.close()
    assert not names & {path.name for path in Path(table.place).iterdir()}
    sink.apply(1, rows)
    assert numbers_of(table.place) == [1, 2]


def test_without_checkpoints_rows_are_added_when_files_are_complete(table: Written) -> None:
    sink = table.sink(history=None, part_rows=2)
    sink.write(pa.record_batch([pa.array([1, 2, 3])], schema=NUMBERS))
    assert numbers_of(table.place) == [1, 2]
    sink.finish()
    sink.close()
    assert numbers_of(table.place) == [1, 2, 3]


def test_the_kit(tmp_path: Path) -> None:
    """At one step of each line of code that takes some. All of `check_sink`, which passes, takes minutes."""
    folder = tmp_path / "kit"
    model = DeltaOutput(path=str(folder / "out"))
    scenario = sink_scenario(
        folder,
        lambda schema, slice, stage: model.sink(schema, slice, stage, "pipeline", "sink"),
        lambda: numbers_of(folder / "out"),
    )
    report = Report()
    simulation = Simulation(scenario, report, 2, 1)
    simulation.stop_everywhere(["power"])
    simulation.two_engines()
    simulation.older()
    assert report.faults["crash: power"]
    assert report.faults["two engines"]


# ---- Stores, descriptions and queries --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        object_store_server.server(tmp_path_factory.mktemp("object_store")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server.bucket("delta")


def test_a_table_in_an_object_store(bucket: str) -> None:
    table = Written(f"{bucket}/a/table")
    DeltaOutput(path=table.place).check(NUMBERS)
    sink = table.sink()
    sink.check(1, 0, [])
    rows = stored(sink, 1, 1, 2)
    table.sink().check(2, 1, [rows])
    sink.apply(1, rows)
    table.sink().apply(1, rows)
    assert numbers_of(table.place) == [1, 2]


def test_stores_that_refuse_or_do_not_answer(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="NoSuchBucket: The specified bucket does not exist") as refused:
        DeltaOutput(path="s3://no-such-bucket/table").check(NUMBERS)
    assert not isinstance(refused.value, Unreachable)
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"the store cannot be asked: Kernel error.*Connection refused"):
        DeltaOutput(path=f"{bucket}/table").check(NUMBERS)


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "connectors" / "delta.md").read_text()
    (example,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("flights").mkdir()
    Path("flights/a.csv").write_text("tail,miles\nN1,2500\nN2,100\n")
    run_pipeline(Script("query.sql", example, []).pipeline)
    assert rows_of(tmp_path / "long_flights") == [{"tail": "N1", "miles": 2500}]


def test_a_query_writes_a_table(tmp_path: Path, table: Written) -> None:
    text = f"""
        CREATE TABLE n WITH (connector = 'impulse', event_rate = '1000000', message_count = '1000');
        CREATE TABLE t WITH (
            connector = 'delta', path = '{table.place}', format = 'parquet', partition_fields = 'half',
            'parquet.compression' = 'zstd', 'rolling_policy.file_size' = '1 MiB'
        );
        INSERT INTO t SELECT CAST(counter AS BIGINT) AS n, counter % 2 = 0 AS half FROM n;
    """
    keys = {**Script("query.sql", text, []).pipeline.model_dump(), "parallelism": 2}
    run_pipeline(pipeline_of({**keys, "checkpoints": {"place": str(tmp_path / "state"), "every": 0.05}}))
    assert numbers_of(table.place) == list(range(1000))
    assert len(rows_of(table.place, "n", "half")) == 500


def test_what_sql_refuses(table: Written) -> None:
    for options, error in [
        ("format = 'csv'", "format = 'csv': files of Delta tables are parquet"),
        ("partition_fields = 'a,,b'", "write names of columns"),
        ("'sink.commit_mode' = 'x'", r"there is no option sink\.commit_mode here"),
    ]:
        text = f"""
            CREATE TABLE n WITH (connector = 'impulse', event_rate = '1', message_count = '1');
            CREATE TABLE t WITH (connector = 'delta', path = '{table.place}', {options});
            INSERT INTO t SELECT 1 AS n FROM n;
        """
        with pytest.raises(InvalidArgument, match=error):
            _ = Script("query.sql", text, []).pipeline


def test_a_memory_of_ones_own_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="memory://x: each reader of memory:// has a memory of its own"):
        DeltaOutput(path="memory://x").check(NUMBERS)


def test_without_the_package_the_error_says_what_to_install(table: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'arroyo_udf_plugin\[delta\]'"):
        DeltaOutput(path=table.place).check(NUMBERS)
