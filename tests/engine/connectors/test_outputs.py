"""Outputs appear whole or not at all, whatever happens, and every trouble is one sentence with the file's name."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streams import copy, read, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.options import Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink

ENDINGS = [".csv", ".csv.gz", ".csv.zst", ".jsonl", ".parquet", ".arrow", ".arrows"]
TABLE = pa.table({"a": [str(i) * 20 for i in range(20_000)]})


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_leaves_the_old_file(tmp_path: Path, ending: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"rows{ending}"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), FileSink(path, TABLE.schema) as sink:  # noqa: PT012 (fails half-way)
        sink.write(TABLE.to_batches()[0])
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert capfd.readouterr() == ("", "")


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("old")
    with FileSink(path, TABLE.schema) as sink:
        sink.write(TABLE.to_batches()[0])
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    assert read(path).equals(TABLE)


def test_a_file_system_that_does_not_link_unnamed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert read(write(tmp_path / "rows.parquet", TABLE)).equals(TABLE)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    for _ in range(2):
        assert read(write(path, TABLE)).equals(TABLE)


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        path = write(tmp_path / "rows.csv", TABLE)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640


def in_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    head = """
        import contextlib, os, resource, signal, sys
        from pathlib import Path
        import pyarrow as pa
        from arroyo_udf_plugin import InvalidArgument
        from arroyo_udf_plugin.engine.connectors.sink import FileSink
        table = pa.table({"a": [str(i) * 20 for i in range(200_000)]})
        path = Path(sys.argv[1])
    """
    text = textwrap.dedent(head) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True)


def test_nothing_remains_after_sigkill(tmp_path: Path) -> None:
    done = in_child(
        """
        with contextlib.ExitStack() as open_:
            for ending in sys.argv[2:]:
                sink = open_.enter_context(FileSink(path / f"rows{ending}", table.schema))
                for batch in table.to_batches(8192):
                    sink.write(batch)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path,
        *ENDINGS,
    )
    assert done.returncode == -9
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["sink.write(table.to_batches()[0])", "raise KeyError"])
def test_a_file_system_without_unnamed_files(tmp_path: Path, end: str) -> None:
    """There the file has a hidden name meanwhile."""
    done = in_child(
        f"""
        real = os.open
        def refuse(path, flags, *rest, **others):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(95, "Operation not supported")
            return real(path, flags, *rest, **others)
        os.open = refuse
        with FileSink(path, table.schema) as sink:
            print([name.endswith(".partial") for name in os.listdir(path.parent)])
            {end}
        """,
        tmp_path / "rows.csv",
    )
    assert done.stdout == "[True]\n"
    assert [path.name for path in tmp_path.iterdir()] == (["rows.csv"] if end.startswith("sink") else [])


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    done = in_child(
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        for ending in sys.argv[2:]:
            try:
                with FileSink(path / f"rows{ending}", table.schema) as sink:
                    for _ in range(3):
                        sink.write(table.to_batches()[0])
            except InvalidArgument as error:
                print(error)
        """,
        tmp_path,
        *ENDINGS,
    )
    assert done.stdout.splitlines() == [f"cannot write {tmp_path}/rows{ending}: File too large" for ending in ENDINGS]
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_a_full_device_is_one_sentence(format: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidArgument, match=r"^cannot write /dev/full: No space left on device$"):
        write(Path("/dev/full"), TABLE, None if format == "csv" else Writing(format=format))
    assert capfd.readouterr() == ("", "")


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidArgument, match=r"folder\.csv is a folder; name a file in it"):
        write(tmp_path / "folder.csv", TABLE)
    with pytest.raises(InvalidArgument, match=r"is a folder; name a file in it"):
        write(tmp_path, TABLE)
    with pytest.raises(InvalidArgument, match=r"x\.csv: the folder .*none does not exist"):
        write(tmp_path / "none" / "x.csv", TABLE)
    with pytest.raises(InvalidArgument, match=r"cannot write .*x\.csv: Not a directory"):
        write(write(tmp_path / "file.csv", TABLE) / "x.csv", TABLE)
    with pytest.raises(InvalidArgument, match=r"rows\.xlsx: the file's ending must be one of .*--out-format must name"):
        write(tmp_path / "rows.xlsx", TABLE)
    with pytest.raises(InvalidArgument, match=r"cannot write .*: File name too long"):
        write(tmp_path / ("x" * 300 + ".csv"), TABLE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.csv", "folder.csv"]


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may write everywhere
    with pytest.raises(InvalidArgument, match=r"^cannot write .*rows\.csv: Permission denied$"):
        write(tmp_path / "rows.csv", TABLE)


@pytest.mark.parametrize("how", ["itself", "symlink", "hardlink", "other name", "by way of no folder"])
def test_an_output_that_is_an_input_is_refused(tmp_path: Path, how: str) -> None:
    source = write(tmp_path / "in.csv", TABLE)
    target = source if how == "itself" else tmp_path / "out.csv"
    if how == "symlink":
        target.symlink_to(source)
    elif how == "hardlink":
        target.hardlink_to(source)
    elif how == "other name":
        (tmp_path / "sub").mkdir()
        target = tmp_path / "sub" / ".." / "in.csv"
    elif how == "by way of no folder":
        target = tmp_path / "nosuch" / ".." / "in.csv"
    before = source.read_bytes()
    with pytest.raises(InvalidArgument, match=r"is .*input.*, too: name another output, or replace it with --force"):
        copy(source, target)
    assert source.read_bytes() == before
    copy(source, target, writing=Writing(force=True))
    assert read(os.path.realpath(target)).equals(TABLE)


def test_selected_columns(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "b": [2], "c": [3]})
    path = write(tmp_path / "out.csv", table, Writing(columns=("c", "a")))
    assert path.read_text() == "c,a\n3,1\n"
    with pytest.raises(InvalidArgument, match=r"out\.csv: there is no column 'd'; the columns are a, b, c"):
        write(path, table, Writing(columns=("d",)))


def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "out.csv").symlink_to(tmp_path / "far" / "real.csv")
    write(tmp_path / "out.csv", TABLE)
    assert (tmp_path / "out.csv").is_symlink()
    assert read(tmp_path / "far" / "real.csv").equals(TABLE)
    assert len(list((tmp_path / "far").iterdir())) == 1


def test_a_reader_that_goes_is_a_broken_pipe() -> None:
    """Not InvalidArgument: `| head` is no mistake."""
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write(Path(f"/proc/self/fd/{writing}"), TABLE, Writing(format="csv"))
    os.close(writing)


def test_rows_of_a_megabyte_do_not_pile_up(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": pa.array(["x" * 2**20])})
    with FileSink(tmp_path / "rows.parquet", batch.schema) as sink:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(100):
            sink.write(pa.record_batch([batch.column(0).take(pa.array([0]))], schema=batch.schema))
        assert sink._waiting_bytes < 64 << 20
    assert read(tmp_path / "rows.parquet").num_rows == 100
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 400


def test_a_file_that_has_appeared_outlasts_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are durable before its name is, and its name before anybody is told."""
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*arguments: Any, _name: str = name, _real: Any = real) -> Any:
            calls.append(_name)
            return _real(*arguments)

        monkeypatch.setattr(os, name, noted)
    with FileSink(tmp_path / "out.csv", pa.schema([("n", pa.int64())])) as sink:
        sink.write(pa.record_batch({"n": [1]}))
    assert calls == ["fsync", "replace", "fsync"]
