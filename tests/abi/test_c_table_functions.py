"""Table functions in C with ARROYO_UDF_TABLE_FUNCTION (F9): rows, columns, nulls and errors."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import RowError, build, load

SOURCE = Path(__file__).with_name("groups.c")


@pytest.fixture(scope="module")
def raw(c_plugin, open_plugin):
    return open_plugin(c_plugin(SOURCE))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("rows") / "groups.so")


def rows_of(text):
    words = text.split(" ")[:-1]
    return [
        {"word": word, "place": i, "before": words[i - 1] if i else None, "first": i == 0}
        for i, word in enumerate(words)
    ]


def batch_of(text):
    return pa.StructArray.from_arrays([text], ["text"])


def test_the_type_of_rows(raw):
    columns = [
        pa.field("word", pa.utf8(), False),
        pa.field("place", pa.int64(), False),
        pa.field("before", pa.utf8()),
        pa.field("first", pa.bool_(), False),
    ]
    words, counted = (raw.functions[raw.numbers[name]] for name in ("words", "counted"))
    assert raw.type(words.returns) == pa.list_(pa.field("item", pa.struct(columns), False))
    one = pa.struct([pa.field("number", pa.int16())])
    assert raw.type(counted.returns) == pa.list_(pa.field("item", one, False)), "one column still has a name"


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | st.lists(st.sampled_from(["a", "", "é", "long enough"]), max_size=9), max_size=80), st.data()
)
def test_rows_of_each_row(raw, texts, data):
    """None, none at all, or many; texts, bits and nulls that are no multiple of eight."""
    cells = [None if text is None else "".join(f"{word} " for word in text) for text in texts]
    start = data.draw(st.integers(0, len(cells)))
    results = raw.run("words", batch_of(pa.array(cells, pa.utf8()))[start:])
    results.validate(full=True)
    assert results.type.names == ["value"]
    assert results.field("value").to_pylist() == [None if text is None else rows_of(text) for text in cells[start:]]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_many_rows_of_a_nullable_column(library, isolation):
    with load(library, isolation=isolation, validate=True) as plugin:
        counts, odd = pa.array([0, 10_000, 5, 7]), pa.array([None, None, True, False])
        found = plugin.functions["counted"](counts, odd).to_pylist()
    number = [None if i % 3 == 2 else i for i in range(10_000)]
    assert [[row["number"] for row in rows] for rows in found] == [[], number, [1, 3], [0, None, 4, 6]]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_call_that_fails_gives_no_rows(library, isolation):
    """Its rows are taken back, in the middle of a byte of bits; others keep theirs."""
    texts = pa.array(["a b c ", "d stop e ", "f ", "g bad h ", "i j "])
    with load(library, isolation=isolation, validate=True) as plugin:
        words = plugin.functions["words"]
        results = words.outcomes(texts)
        with pytest.raises(RowError) as caught:
            words(texts)
    assert caught.value.errors == {1: "stopped", 3: "column word: the text is not valid UTF-8"}
    found = results.field("value").to_pylist()
    assert [found[i] for i in (0, 2, 4)] == [rows_of(texts[i].as_py()) for i in (0, 2, 4)]
    assert [found[i] for i in (1, 3)] == [None, None]
    assert results.field("error")[1].as_py() == "groups.words, row 1: stopped"


def test_rows_beyond_the_offsets_are_an_error_of_their_row(c_plugin, open_plugin):
    """F4: 32-bit offsets of texts end at 2 GiB."""
    source = """
#include "arroyo_udf_plugin.h"
ARROYO_UDF_TABLE_FUNCTION(repeated, ((utf8, text)), (int64, length));
static const char* repeated(int64_t length, repeated_rows* out) {
  const arroyo_udf_utf8 text = {"ab", (size_t)length};
  repeated_emit(out, text);
  return NULL;
}
ARROYO_UDF_PLUGIN(repeated);
"""
    results = open_plugin(c_plugin(source)).run(
        "repeated", pa.StructArray.from_arrays([pa.array([2, 2**31, 1])], ["length"])
    )
    assert results.field("value").to_pylist() == [[{"text": "ab"}], None, [{"text": "a"}]]
    assert "column text: the results exceed 2 GiB: send smaller batches" in results.field("error")[1].as_py()
