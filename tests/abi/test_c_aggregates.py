"""Aggregates in C with ARROYO_UDF_AGGREGATE (F8): steps as hosts run them, and lists and states that are broken."""

import math
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import RowError, build, load
from arroyo_udf_plugin._cdef import ffi

OK, INVALID_ARGUMENT, NOT_IMPLEMENTED = 0, 16, 21
AGGREGATE, TABLE, STEP = 3, 4, 5
ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("groups.c")
TEXTS, NUMBERS, FLOATS = pa.list_(pa.utf8()), pa.list_(pa.int64()), pa.list_(pa.float64())


@pytest.fixture(scope="module")
def raw(c_plugin, open_plugin):
    return open_plugin(c_plugin(SOURCE))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("groups") / "groups.so")


@pytest.fixture(scope="module")
def groups(library):
    return load(library, validate=True).functions


def joined_in_python(words, numbers):
    given = zip(words, numbers, strict=True)
    return "".join(f"{word}{'-' if n is None else n}" for word, n in given if word is not None)


def test_steps_stand_behind_the_functions_of_the_plugin(raw):
    names = list(raw.numbers)
    steps = [
        f"{name}.{step}" for name in ("geometric_mean", "joined", "all_true") for step in ("update", "merge", "finish")
    ]
    assert names == ["geometric_mean", "words", "half", "joined", "counted", "all_true", *steps]
    assert [function.kind for function in raw.functions] == [
        AGGREGATE,
        TABLE,
        1,
        AGGREGATE,
        TABLE,
        AGGREGATE,
        *[STEP] * 9,
    ]
    firsts = [f.first_step for f in raw.functions if f.kind == AGGREGATE]
    assert [names[first] for first in firsts] == ["geometric_mean.update", "joined.update", "all_true.update"]


def test_types_of_steps(raw):
    update, merge, finish = (raw.functions[raw.numbers[f"joined.{step}"]] for step in ("update", "merge", "finish"))
    state, given = pa.field("state", pa.binary()), [pa.field("word", TEXTS, False), pa.field("number", NUMBERS, False)]
    assert raw.type(update.arguments) == pa.struct([state, *given])
    assert raw.type(merge.arguments) == pa.struct([state.with_nullable(False), pa.field("other", pa.binary(), False)])
    assert raw.type(finish.arguments) == pa.struct([state])
    assert [raw.type(step.returns) for step in (update, merge, finish)] == [pa.binary(), pa.binary(), pa.utf8()]


def test_an_aggregate_itself_is_not_run(raw):
    arguments, results = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowArray *")
    schema = ffi.new("struct ArrowSchema **")
    status, text = raw.call("run", raw.numbers["joined"], arguments, ffi.NULL, results, schema)
    assert status == NOT_IMPLEMENTED
    assert "run the steps of an aggregate" in text


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_many_groups(library, isolation):
    """With nulls, empty groups, new groups beside others; each state in its own bytes."""
    with load(library, isolation=isolation) as plugin:
        mean = plugin.functions["geometric_mean"]
        rows = [[1.0 + i, None, 2.0] if i % 3 else [] for i in range(300)]
        states = mean.update(None, pa.array(rows, FLOATS))
        states = mean.update(states, pa.array(rows[::-1], FLOATS))
        values = mean.finish(mean.merge(states, states)).to_pylist()
        for i, value in enumerate(values):
            seen = [x for x in rows[i] + rows[299 - i] if x is not None]
            assert value == (pytest.approx(math.exp(sum(map(math.log, seen)) / len(seen))) if seen else None)


def test_a_call_takes_all_rows_as_one_group(groups):
    assert groups["geometric_mean"](pa.array([2.0, None, 8.0])).as_py() == pytest.approx(4)
    assert groups["geometric_mean"](pa.array([], pa.float64())).as_py() is None
    assert groups["all_true"](pa.array([True, None])).as_py() is True
    assert groups["all_true"](pa.array([True, False])).as_py() is False
    assert groups["geometric_mean"].documentation == "The n-th root of a product."
    assert groups["geometric_mean"].volatility == "immutable"


CELLS = st.lists(
    st.tuples(st.none() | st.sampled_from(["", "a", "é", "😀"]), st.none() | st.integers(0, 9)), max_size=3
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, max_size=80), st.data())
def test_texts_nulls_and_offsets(raw, cells, data):
    """F3, F8: a null word leaves its row out, a null number does not. Offsets in structs, lists and items."""
    words = pa.array([[word for word, _ in group] for group in cells], TEXTS)
    numbers = pa.array([[number for _, number in group] for group in cells], NUMBERS)
    if data.draw(st.booleans()):  # other offsets of items than those of the first argument
        numbers = pa.concat_arrays([pa.array([[7, None]], NUMBERS), numbers])[1:]
    start = data.draw(st.integers(0, len(cells)))
    states = pa.nulls(len(cells), pa.binary())
    batch = pa.StructArray.from_arrays([states, words, numbers], ["state", "word", "number"])[start:]
    updated = raw.run("joined.update", batch)
    updated.validate(full=True)
    assert updated.type.names == ["value"]
    finish = pa.StructArray.from_arrays([updated.field("value")], ["state"])
    expected = [
        joined_in_python([word for word, _ in group], [number for _, number in group]) for group in cells[start:]
    ]
    assert raw.run("joined.finish", finish).field("value").to_pylist() == expected


def test_a_state_that_is_not_aligned_is_copied(raw):
    """Nineteen bytes each, so seven of eight states are not aligned."""
    words = pa.array([[chr(97 + i)] for i in range(20)], TEXTS)
    numbers = pa.array([[i] for i in range(20)], NUMBERS)
    batch = pa.StructArray.from_arrays([pa.nulls(20, pa.binary()), words, numbers], ["state", "word", "number"])
    states = raw.run("joined.update", batch).field("value")
    assert {len(state.as_py()) for state in states} == {19}
    merged = raw.run("joined.merge", pa.StructArray.from_arrays([states[1:], states[:-1]], ["state", "other"]))
    finished = raw.run("joined.finish", pa.StructArray.from_arrays([merged.field("value")], ["state"]))
    assert finished.field("value").to_pylist()[:2] == ["b1a0", "c2b1"]


def test_errors_of_each_step_are_those_of_their_group(groups):
    joined = groups["joined"]
    numbers = pa.array([[1], [2], [3]], NUMBERS)
    with pytest.raises(RowError) as caught:
        joined.update(None, pa.array([["a"], ["much too long a word"], ["b"]], TEXTS), numbers)
    assert caught.value.errors == {1: "the group is full"}
    assert "groups.joined.update, row 1: the group is full" in str(caught.value)
    states = joined.update(None, pa.array([["long word"], ["x"], ["n"]], TEXTS), numbers)
    with pytest.raises(RowError) as caught:
        joined.merge(states, states)
    assert caught.value.errors == {0: "the group is full"}
    with pytest.raises(RowError) as caught:
        joined.finish(states)
    null = "the function answered null, and its result is not declared nullable"
    assert caught.value.errors == {1: "x cannot stand alone", 2: null}


def test_states_of_another_size_and_null_states(raw):
    states = pa.array([b"short", None, bytes(19)])
    finished = raw.run("joined.finish", pa.StructArray.from_arrays([states], ["state"]))
    size = "argument state: it has the size of another plugin's states, or of another build's"
    assert finished.field("error").to_pylist() == [f"udf.joined.finish, row 0: {size}", None, None]
    assert finished.field("value").to_pylist() == [None, "", ""]
    both = pa.StructArray.from_arrays([states, pa.array([bytes(19)] * 3)], ["state", "other"])
    assert raw.run("joined.merge", both).field("value").to_pylist() == [None, None, bytes(19)]


def test_lists_of_a_group_must_be_of_one_length(raw):
    words, numbers = pa.array([["a"], ["b", "c"]], TEXTS), pa.array([[1], [2]], NUMBERS)
    batch = pa.StructArray.from_arrays([pa.nulls(2, pa.binary()), words, numbers], ["state", "word", "number"])
    results = raw.run("joined.update", batch)
    assert results.field("error").to_pylist() == [
        None,
        "udf.joined.update, row 1: argument number: its list is not as long as that of the argument before it",
    ]


@pytest.mark.parametrize(
    ("offsets", "broken"), [([0, 2, 1, 3], [1]), ([-1, 1, 2, 3], [0]), ([0, 2**31 - 1, 2, 3], [0, 1])]
)
def test_a_group_whose_offsets_do_not_ascend_is_an_error(raw, offsets, broken):
    """VALIDITY: such a row touches no other one, and nothing beyond the last offset is read."""
    memory = bytearray(4 * len(offsets))
    values = pa.array([1.0, 2.0, 4.0, 8.0])
    lists = pa.Array.from_buffers(FLOATS, 3, [None, pa.py_buffer(memory)], children=[values])
    batch = pa.StructArray.from_arrays([pa.nulls(3, pa.binary()), lists], ["state", "value"])
    # Only now, because pyarrow refuses them.
    memory[:] = b"".join(offset.to_bytes(4, "little", signed=True) for offset in offsets)
    errors = raw.run("geometric_mean.update", batch).field("error").to_pylist()
    assert [i for i, text in enumerate(errors) if text] == broken
    assert all("argument value: the list has invalid offsets" in errors[i] for i in broken)


def test_text_that_is_not_utf8_is_the_error_of_its_group(raw):
    words = pa.ListArray.from_arrays([0, 1, 2, 3], pa.array([b"a", b"\xff", b"c"]).view(pa.utf8()))
    numbers = pa.array([[1], [2], [3]], NUMBERS)
    batch = pa.StructArray.from_arrays([pa.nulls(3, pa.binary()), words, numbers], ["state", "word", "number"])
    results = raw.run("joined.update", batch)
    assert results.field("outcome").to_pylist() == [0, 1, 0]
    assert results.field("error")[1].as_py() == "udf.joined.update, row 1: argument word: the text is not UTF-8"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lists, items: setattr(lists, "n_children", 0), "argument value does not have the buffers of its type"),
        (lambda lists, items: setattr(lists, "children", ffi.NULL), "argument value does not have the buffers of its"),
        (lambda lists, items: setattr(lists, "length", 1), "argument value is shorter than the batch"),
        (lambda lists, items: setattr(lists, "dictionary", items), "argument value is dictionary-encoded"),
        (lambda lists, items: setattr(items, "length", 2), "an array of items that ends before the lists do"),
        (lambda lists, items: setattr(items, "offset", -1), "an array of items that has an invalid length or offset"),
        (lambda lists, items: setattr(items, "n_buffers", 3), "an array of items that does not have the buffers"),
        (lambda lists, items: setattr(items, "release", ffi.NULL), "an array of items that is missing or released"),
        (lambda lists, items: lists.children.__setitem__(0, ffi.NULL), "an array of items that is missing or released"),
        (lambda lists, items: items.buffers.__setitem__(1, ffi.NULL), "an array of items that has no data buffer"),
        (lambda lists, items: setattr(items, "null_count", 1), "an array of items that has nulls, but no validity"),
        (lambda lists, items: lists.buffers.__setitem__(1, ffi.NULL), "argument value has no data buffer"),
    ],
)
def test_broken_lists_are_refused(raw, change, words):
    lists = pa.array([[1.0, 2.0], [3.0]], FLOATS)
    batch = pa.StructArray.from_arrays([pa.nulls(2, pa.binary()), lists], ["state", "value"])
    arguments, results = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowArray *")
    schema = ffi.new("struct ArrowSchema **")
    batch._export_to_c(int(ffi.cast("uintptr_t", arguments)))
    lists = arguments.children[1]
    items = lists.children[0]
    structs = [(struct, ffi.buffer(struct)[:]) for struct in (lists, items)]
    pointers = [(where, i, where[i]) for where in (lists.children, lists.buffers, items.buffers) for i in range(1)]
    pointers += [(where, 1, where[1]) for where in (lists.buffers, items.buffers)]
    change(lists, items)
    answer = raw.call("run", raw.numbers["geometric_mean.update"], arguments, ffi.NULL, results, schema)
    for struct, content in structs:
        ffi.buffer(struct)[:] = content
    for where, i, pointer in pointers:
        where[i] = pointer
    arguments.release(arguments)  # still ours
    assert answer[0] == INVALID_ARGUMENT
    assert words in answer[1]


def test_the_examples_of_documents(tmp_path):
    """Of docs/functions.md, as it is; and those of the header."""
    (example,) = re.findall(r"```c\n(#include .*?)```", (ROOT / "docs" / "functions.md").read_text(), re.DOTALL)
    (tmp_path / "means.c").write_text(example)
    functions = load(build(tmp_path / "means.c"), validate=True).functions
    assert functions["geometric_mean"](pa.array([2.0, None, 8.0])).as_py() == pytest.approx(4)
    found = functions["words"](pa.array(["to be  or", "", None])).to_pylist()
    assert found == [[{"word": w, "place": i} for i, w in enumerate(["to", "be", "or"])], [], None]
    header = (ROOT / "native" / "include" / "arroyo_udf_plugin.h").read_text()
    blocks = re.findall(r"^ \*\n((?: \*     .*\n| \*\n)+?) \*\n(?= \* \S)", header, re.MULTILINE)
    lines = [re.sub(r"^ \*", "", line) for block in blocks[1:] for line in block.splitlines()]
    text = re.sub(r"    (once for each row|texts are copied)$", "", "\n".join(lines), flags=re.MULTILINE)
    parts = [
        '#include <math.h>\n#include "arroyo_udf_plugin.h"\n',
        text,
        "ARROYO_UDF_PLUGIN(geometric_mean, letters);\n",
    ]
    (tmp_path / "header.c").write_text("\n".join(parts))
    letters = load(build(tmp_path / "header.c"), validate=True).functions["letters"](pa.array(["ab"]))
    assert letters.to_pylist() == [[{"letter": "a", "place": 0}, {"letter": "b", "place": 1}]]


def test_an_aggregate_beside_an_async_function(tmp_path):
    """The table is that of the runtime, and the steps are run by the author's library."""
    source = """
#include "arroyo_udf_async.h"
static void later(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_ASYNC_FUNCTION(later, (), int64, (int64, x));
typedef struct { int64_t sum; } total_state;
static const char* total_update(total_state* state, int64_t x) { state->sum += x; return NULL; }
static const char* total_merge(total_state* state, const total_state* other) { state->sum += other->sum; return NULL; }
static const char* total_finish(const total_state* state, int64_t* out) { *out = state->sum; return NULL; }
ARROYO_UDF_AGGREGATE(total, int64, (int64, x));
ARROYO_UDF_TABLE_FUNCTION(twice, ((int64, x)), (int64, x));
static const char* twice(int64_t x, twice_rows* out) { twice_emit(out, x); twice_emit(out, x); return NULL; }
ARROYO_UDF_PLUGIN(total, later, twice);
"""
    (tmp_path / "both.c").write_text(source)
    functions = load(build(tmp_path / "both.c"), validate=True).functions
    assert functions["total"](pa.array([1, None, 5])).as_py() == 6
    assert functions["later"](pa.array([7])).to_pylist() == [7]
    assert functions["twice"](pa.array([8])).to_pylist() == [[{"x": 8}, {"x": 8}]]
