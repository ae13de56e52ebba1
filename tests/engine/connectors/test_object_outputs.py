"""Outputs in object stores: they appear whole or not at all, and what is wrong is said before a row is called."""

from __future__ import annotations

import time
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import GenericError
from streams import read, rows_of

import object_store_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.object_store import open_object_store
from arroyo_udf_plugin.engine.connectors.options import Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink
from arroyo_udf_plugin.engine.connectors.source import FileSource

TABLE = pa.table({"a": ["x", None, "z"]})


@pytest.fixture(scope="module")
def bucket(object_store: object_store_server.Server) -> str:
    return object_store.bucket("outputs")


def names(bucket: str) -> list[str]:
    return [meta["path"] for chunk in obstore.list(open_object_store(bucket)) for meta in chunk]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet", ".arrow"])
def test_an_object_is_written_and_replaced(bucket: str, ending: str) -> None:
    url = f"{bucket}/written/rows{ending}"
    for table in (TABLE, pa.table({"a": ["new"]})):
        with FileSink(url, table.schema) as sink:
            sink.write(table.to_batches()[0])
            assert f"written/rows{ending}" not in names(bucket) or table is not TABLE
        assert read(url).to_pydict() == table.to_pydict()


def test_a_failure_leaves_the_old_object(bucket: str) -> None:
    url = f"{bucket}/failed/rows.csv"
    obstore.put(open_object_store(bucket), "failed/rows.csv", b"a\nold\n")
    with pytest.raises(KeyboardInterrupt), FileSink(url, TABLE.schema) as sink:  # noqa: PT012 (fails half-way)
        sink.write(TABLE.to_batches()[0])
        raise KeyboardInterrupt
    assert read(url).to_pydict() == {"a": ["old"]}


def test_an_object_that_is_an_input(bucket: str) -> None:
    url = f"{bucket}/input/rows.csv"
    obstore.put(open_object_store(bucket), "input/rows.csv", b"a\nx\n")
    with FileSource([f"{bucket}/input"]) as source:
        with pytest.raises(
            InvalidArgument, match=r"rows\.csv is an input, too: name another output, or replace it with"
        ):
            FileSink(url, TABLE.schema, inputs=source.given)
        with FileSink(url, TABLE.schema, Writing(force=True), source.given) as sink:
            sink.write(TABLE.to_batches()[0])
    assert read(url).num_rows == 3


@pytest.mark.parametrize("spelling", ["{}/input//same.csv", "{}/input/s%61me.csv"])
def test_an_input_by_another_spelling(bucket: str, spelling: str) -> None:
    with pytest.raises(InvalidArgument, match="is an input, too"):
        FileSink(spelling.format(bucket), TABLE.schema, inputs=[Path("in.csv"), f"{bucket}/input/same.csv"])


@pytest.mark.parametrize(
    ("code", "is_taken"), [("AccessDenied", True), ("InvalidAccessKeyId", False), ("SignatureDoesNotMatch", False)]
)
def test_a_writer_need_not_be_allowed_to_list(
    bucket: str, code: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise GenericError(f"Error performing list request: status code: 403 Forbidden: <Code>{code}</Code>")

    url = f"{bucket}/denied/{code}.csv"
    with monkeypatch.context() as patch:
        patch.setattr(obstore, "list", denied)
        if not is_taken:
            with pytest.raises(InvalidArgument, match=code):
                FileSink(url, TABLE.schema)
            return
        with FileSink(url, TABLE.schema) as sink:
            sink.write(TABLE.to_batches()[0])
    assert read(url).num_rows == 3


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://nobucket/rows.csv", r"s3://nobucket/rows\.csv: .*: 404 Not Found: NoSuchBucket: .* does not exist$"),
        ("s3://outputs/", "the file's ending must be"),
        ("nope://x/y.csv", "nope://x cannot be opened: .*recognise URL"),
    ],
)
def test_what_is_wrong_is_said_at_once(bucket: str, url: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(InvalidArgument, match=why):
        FileSink(url, TABLE.schema)


def test_a_store_without_encryption(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ALLOW_HTTP", "aws_allow_http"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.inputs._PATIENCE", 0.0)
    with pytest.raises(InvalidArgument, match=r"address with http://, which needs AWS_ALLOW_HTTP=true in the env"):
        rows_of(f"{bucket}/input/rows.csv")


def test_a_file_url_is_a_local_output(tmp_path: Path) -> None:
    path = tmp_path / "a b.csv"
    with FileSink(path.as_uri(), TABLE.schema) as sink:
        sink.write(TABLE.to_batches()[0])
    assert path.read_text().startswith("a\nx\n")
