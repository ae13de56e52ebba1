"""Columns of what is known about rows: the file, and the number in it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from partitions import read_all

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.standard_input import StandardInput
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.errors import InvalidArgument

BOTH = {"path": "filename", "number": "row"}

LINES = st.lists(st.sampled_from(['{"n": 1}', "", "oh", '{"n": "x"}']), max_size=30)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES, st.integers(1, 8))
def test_numbers_are_those_of_lines(tmp_path: Path, lines: list[str], others: list[str], first: int) -> None:
    """Also of those behind empty lines and lines that cannot be read, and after a restart in the file."""
    expected = []
    for name, each, start in (("a.jsonl", ['{"n": 0}', *lines], first), ("b.jsonl", ['{"n": 0}', *others], 1)):
        (tmp_path / name).write_text("\n".join(each))
        numbered = list(enumerate(each, 1))[start - 1 :]
        expected += [(str(tmp_path / name), number) for number, line in numbered if line]
    with contextlib.closing(Files(paths=[str(tmp_path)], metadata=BOTH).source(1)) as source:
        found = read_all(source, {source.partitions()[0]: {"row": first}})
    assert [(row["path"], row["number"]) for row in found] == expected


def test_a_record_of_several_lines_is_one_row(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('n,text\n1,"two\nlines"\n2,x\n')
    with contextlib.closing(Files(paths=[str(file)], metadata=BOTH).source(1)) as source:
        found = read_all(source)
    assert [(row["n"], row["path"], row["number"]) for row in found] == [("1", str(file), 1), ("2", str(file), 2)]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"k": "key"}, "metadata: files have no 'key': write filename or row"),
        ({"n": "row"}, "metadata: there is a column 'n' already: choose another name"),
    ],
)
def test_what_is_refused(tmp_path: Path, metadata: dict[str, str], error: str) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    with pytest.raises(InvalidArgument, match=error):
        Files(paths=[str(tmp_path / "a.csv")], metadata=metadata).source(1)


@pytest.mark.parametrize("model", [Files(paths=["a"]), StandardInput()])
def test_a_description_without_it_is_as_it_was(model: Files | StandardInput) -> None:
    """So checkpoints fit that were written before there was metadata."""
    assert "metadata" not in described(model)
    asked = model.model_copy(update={"metadata": BOTH})
    assert described(asked) == described(model) | {"metadata": BOTH}
