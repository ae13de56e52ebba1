"""Places: parsed once, the same for all who open them, and refused outside of a confinement."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.database import open_database
from arroyo_udf_plugin.engine.connectors.file_source import FilesSource
from arroyo_udf_plugin.engine.connectors.inputs import input_files
from arroyo_udf_plugin.engine.connectors.location import Outside, confined_to, database_of, location_of, pattern_of
from arroyo_udf_plugin.engine.connectors.object_store import open_object_store
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.single import File
from arroyo_udf_plugin.engine.connectors.source import FileSource
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.errors import InvalidArgument

SCHEMA = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/data/a b", "/data/a b"),
        ("data/x", "data/x"),
        ("/data/x://../../secret", "/data/x://../../secret"),
        ("file:///data/a%20b", "/data/a b"),
        ("FILE://localhost/data/a#b?c", "/data/a#b?c"),
        ("C:\\x", "C:\\x"),
        ("s3://bucket/folder", None),
        ("memory://x", None),
    ],
)
def test_a_text_is_a_path_or_a_url_for_everybody(text: str, path: str | None) -> None:
    assert location_of(text).path == (None if path is None else Path(path))
    assert pattern_of(text) == location_of(text)


@pytest.mark.parametrize("text", ["s3://bucket/data?region=eu-west-1", "s3://bucket/data#1", "gs://b/a/b?"])
def test_a_url_that_would_be_cut_off_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="options of an object store, such as its region, come from environment"):
        location_of(text)
    with pytest.raises(InvalidArgument, match="leave out"):
        open_store(text)
    with pytest.raises(InvalidArgument, match="leave out"):
        Parts(path=text).check(SCHEMA)
    assert pattern_of(text).path is None  # a wildcard, or a name


@pytest.mark.parametrize("text", ["file://", "file://host/data", "file://data"])
def test_a_file_of_another_machine_is_none_of_this_one(text: str) -> None:
    with pytest.raises(InvalidArgument, match="write the path of a file on this machine"):
        location_of(text)


def test_a_child_is_below_whatever_the_place_is_called(tmp_path: Path) -> None:
    assert location_of("s3://bucket/data/").child("job_1", "0").text == "s3://bucket/data/job_1/0"
    assert location_of("/data?x#y").child("job_1").path == Path("/data?x#y/job_1")
    store = open_object_store(f"file://{tmp_path}/a#b?c")
    obstore.put(store, "one", b"1")
    assert (tmp_path / "a#b?c" / "one").read_bytes() == b"1"


def test_databases_are_files_or_servers() -> None:
    assert database_of("sqlite:rows.db", "t").path == Path("rows.db")
    assert database_of("sqlite:///rows.db", "t").path == Path("rows.db")
    assert database_of("SQLite:////data/rows.db", "t").path == Path("/data/rows.db")
    assert database_of("postgresql://host/db", "t").path is None
    for wrong in ("sqlite:", "sqlite::memory:", "sqlite://host/x", "mysql://x", "rows.db"):
        with pytest.raises(InvalidArgument, match="t: "):
            database_of(wrong, "t")


def test_what_is_below_is_known_through_links_and_wildcards(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to("/etc")
    (tmp_path / "in").symlink_to(root)
    for inside in (root, root / "new" / "x", tmp_path / "in" / "a", root / "a" / ".." / "b"):
        assert location_of(str(inside)).is_below([root])
    for outside in (tmp_path, root / "out" / "passwd", root / ".." / "x", Path(f"{root}x")):
        assert not location_of(str(outside)).is_below([root])
    assert pattern_of(f"{root}/*/a").is_below([root], is_pattern=True)
    assert not pattern_of("/*").is_below([root], is_pattern=True)
    assert location_of("s3://bucket/x").is_below([root])


OPENINGS: dict[str, Callable[[Path], Any]] = {
    "found": lambda path: input_files([str(path)], None),
    "pattern": lambda path: input_files([f"{path.parent}/*.csv"], None),
    "folder": lambda path: input_files([str(path.parent)], None),
    "url": lambda path: input_files([f"file://{path}"], None),
    "source": lambda path: FilesSource([str(path)], Reading(), None),
    "file": lambda path: File(path=str(path.parent / "out.csv")).check(SCHEMA),
    "file of a slice": lambda path: File(path=f"file://{path.parent}/out.csv").sink(SCHEMA, 0, None, "p", "n"),
    "parts": lambda path: Parts(path=str(path.parent / "out")).check(SCHEMA),
    "database": lambda path: open_database(f"sqlite:{path.parent / 'out.db'}", "t"),
}


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_confined_process_opens_nothing_outside(tmp_path: Path, opening: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.csv").write_text("a\n1\n")
    (root / "link").symlink_to(outside)
    with confined_to([root]):
        OPENINGS[opening](root / "a.csv")
        for path in (outside / "a.csv", root / "link" / "a.csv", root / ".." / "outside" / "a.csv"):
            with pytest.raises(Outside, match="is outside of the folders that pipelines may use"):
                OPENINGS[opening](path)
    assert sorted(path.name for path in outside.iterdir()) == ["a.csv"]
    OPENINGS[opening](outside / "a.csv")


def test_a_file_is_looked_at_again_when_it_is_opened(tmp_path: Path) -> None:
    """Between its finding and its opening, a link takes its place."""
    root, secret = tmp_path / "root", tmp_path / "secret.csv"
    root.mkdir()
    secret.write_text("a\nTOPSECRET\n")
    (root / "a.csv").write_text("a\n1\n")
    with confined_to([root]), contextlib.closing(FileSource([str(root / "a.csv")])) as source:
        (root / "a.csv").unlink()
        (root / "a.csv").symlink_to(secret)
        with pytest.raises(Outside):
            list(source)
