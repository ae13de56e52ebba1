"""Functions written in C with arroyo_udf_plugin.h: types, nulls, offsets, errors (F2, F3, F4, R3a)."""

import ctypes
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin._cdef import ffi

OK, INVALID_ARGUMENT, NOT_IMPLEMENTED = 0, 16, 21
SOURCE = Path(__file__).with_name("functions.c")
TYPES = {
    "bool": (pa.bool_(), st.booleans()),
    **{
        f"{sign}int{bits}": (
            pa.type_for_alias(f"{sign}int{bits}"),
            st.integers(0, 2**bits - 1) if sign else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        )
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "utf8": (pa.utf8(), st.text(max_size=12)),
}
LENGTHS = st.one_of(st.integers(0, 20), st.integers(60, 70), st.integers(120, 200))


@pytest.fixture(scope="module")
def functions(c_plugin, open_plugin):
    """Function name -> its plugin."""
    text = SOURCE.read_text()
    halves = [open_plugin(c_plugin(f"#define FIRST_HALF {half}\n{text}", "functions")) for half in (1, 0)]
    return {name: plugin for plugin in halves for name in plugin.numbers}


def batch_of(arrays, names, mask=None):
    fields = pa.struct([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])
    return pa.StructArray.from_arrays(
        arrays, fields=list(fields), mask=None if mask is None else pa.array(mask, pa.bool_())
    )


@st.composite
def columns(draw, values):
    """Cells for an array with an offset, with nulls or without."""
    before, length = draw(st.integers(0, 70)), draw(LENGTHS)
    cells = st.one_of(st.none(), values) if draw(st.booleans()) else values
    # Drawing every cell is slow: a few are drawn, and repeated.
    few = draw(st.lists(cells, min_size=1, max_size=9))
    return [few[i * 7 % len(few)] for i in range(before + length)], before


@pytest.mark.parametrize("word", TYPES)
@pytest.mark.parametrize("kind", ["same", "or_null"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_and_nulls_come_back(functions, word, kind, data):
    """F2, F3: with offsets in the column and in the struct, nulls in both, zero rows, more than a word of rows."""
    arrow_type, values = TYPES[word]
    cells, before = data.draw(columns(values))
    column = pa.array(cells, arrow_type)[before:]
    mask = [i % 3 == 0 for i in range(len(column))] if data.draw(st.booleans()) else None
    batch = batch_of([column], ["x"], mask)
    start = data.draw(st.integers(0, len(batch)))
    batch = batch[start:]
    expected = [None if row is None else row["x"] for row in batch.to_pylist()]
    results = functions[f"{kind}_{word}"].run(f"{kind}_{word}", batch)
    results.validate(full=True)
    assert results.type.names == ["value"]
    assert results.field("value").type == arrow_type
    assert results.field("value").to_pylist() == expected


def test_a_function_sees_only_nulls_that_it_declares(functions):
    """F3: no call for a null in `a` or `c`; `b` is nullable."""
    a, b, c = pa.array([1, None, 3, 4]), pa.array([None, 5, 6, None], pa.int64()), pa.array(["x", "y", None, "é"])
    results = functions["seen"].run("seen", batch_of([a, b, c], "abc"))
    assert results.field("value").to_pylist() == ["1 null x", None, None, "4 null é"]


def test_null_struct_row_is_null_in_all_arguments(functions):
    batch = batch_of([pa.array([1, 2]), pa.array([3, 4]), pa.array(["x", "y"])], "abc", mask=[False, True])
    assert functions["seen"].run("seen", batch).field("value").to_pylist() == ["1 3 x", None]


def test_sixteen_arguments_of_all_numeric_types(functions):
    types = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 bool int64 int64 int64 int64 int64"
    arrays = [pa.array([1, i, None][: 2 + (i == 3)] + [0] * (i != 3)).cast(t) for i, t in enumerate(types.split())]
    results = functions["sum16"].run("sum16", batch_of(arrays, "abcdefghijklmnop"))
    assert results.field("value").to_pylist() == [16.0, sum(range(16)) - 9.0, None]


@pytest.mark.parametrize("rows", [5, 64, 130])
def test_a_failing_row_does_not_affect_others(functions, rows):
    """R2, R3a, F3, F4: outcome and error beside the value."""
    results = functions["fussy"].run("fussy", batch_of([pa.array(range(rows), pa.int64())], ["x"]))
    results.validate(full=True)
    texts = [
        None,
        "{} is fussy é",
        "the function answered null, and its result is not declared nullable",
        "the result is not valid UTF-8",
        "cut at the first wrong byte",
    ]
    assert results.type == pa.struct(
        [
            pa.field("value", pa.utf8()),
            pa.field("outcome", pa.uint8(), nullable=False),
            pa.field("error", pa.utf8()),
        ]
    )
    for i, row in enumerate(results.to_pylist()):
        text = texts[i % 5]
        assert row == {
            "value": "fine" if text is None else None,
            "outcome": 0 if text is None else 1,
            "error": text and f"functions.fussy, row {i}: {text.format(i)}",
        }


def test_errors_and_nulls_in_one_batch(functions):
    results = functions["fussy"].run("fussy", batch_of([pa.array([None, 1, None, 5, 6, None])], ["x"]))
    assert results.field("value").to_pylist() == [None, None, None, "fine", None, None]
    assert results.field("outcome").to_pylist() == [0, 1, 0, 0, 1, 0]
    assert [text is None for text in results.field("error").to_pylist()] == [True, False, True, True, False, True]


def test_texts_beyond_the_offsets_are_an_error_of_their_row(c_plugin, open_plugin):
    """F4: 32-bit offsets end at 2 GiB; no text is cut."""
    source = """
#include "arroyo_udf_plugin.h"
static const char* repeat(int64_t length, arroyo_udf_text* out) {
  arroyo_udf_append(out, "ab", (size_t)length);
  return NULL;
}
ARROYO_UDF_FUNCTION(repeat, utf8, (int64, length));
ARROYO_UDF_PLUGIN(repeat);
"""
    results = open_plugin(c_plugin(source)).run("repeat", batch_of([pa.array([2, 2**31, 1])], ["length"]))
    assert results.field("value").to_pylist() == ["ab", None, "a"]
    assert "2 GiB: send smaller batches" in results.field("error")[1].as_py()


# ---- Calls that are refused ----------------------------------------------------------------------------------------


def refused(plugin, name, change, columns=("int64",)):
    """Calls `run` with a batch of three rows that `change` has made invalid; returns status and text."""
    arrays = [pa.array([1, None, 3]).cast(t) for t in columns]
    arguments = ffi.new("struct ArrowArray *")
    batch_of(arrays, "abcdefgh"[: len(arrays)])._export_to_c(int(ffi.cast("uintptr_t", arguments)))
    whole = ffi.buffer(arguments)[:]
    child = ffi.buffer(arguments.children[0])[:]
    kept = change(arguments)  # what the change made must live through the call
    results = ffi.new("struct ArrowArray *")
    untouched = ffi.buffer(results)[:]
    schema = ffi.new("struct ArrowSchema **")
    answer = plugin.call("run", plugin.numbers[name], arguments, ffi.NULL, results, schema)
    assert ffi.buffer(results)[:] == untouched, "outputs stay untouched"
    assert schema[0] == ffi.NULL
    ffi.buffer(arguments)[:] = whole
    ffi.buffer(arguments.children[0])[:] = child
    arguments.release(arguments)  # still ours
    del kept
    return answer


def no_data(arguments):
    buffers = ffi.new("const void *[3]")
    arguments.children[0].buffers = buffers
    return buffers


def dictionary(arguments):
    other = ffi.new("struct ArrowArray *")
    arguments.children[0].dictionary = other
    return other


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: setattr(a, "n_children", 0), "1 children"),
        (lambda a: setattr(a, "n_buffers", 2), "must be a struct array"),
        (lambda a: setattr(a, "length", -1), "negative length or offset"),
        (lambda a: setattr(a, "offset", -1), "negative length or offset"),
        (lambda a: setattr(a, "offset", 2**63 - 1), "negative length or offset"),
        (lambda a: setattr(a, "null_count", 1), "nulls without a validity buffer"),
        (lambda a: setattr(a, "length", 4), "argument x is shorter than the batch"),
        (lambda a: setattr(a, "offset", 1), "argument x is shorter than the batch"),
        (lambda a: setattr(a.children[0], "length", 2), "argument x is shorter than the batch"),
        (lambda a: setattr(a.children[0], "offset", -1), "argument x has an invalid length or offset"),
        (lambda a: setattr(a.children[0], "offset", 2**63 - 1), "argument x has an invalid length or offset"),
        (lambda a: setattr(a.children[0], "n_buffers", 3), "argument x does not have the buffers of its type"),
        (lambda a: setattr(a.children[0], "buffers", ffi.NULL), "argument x does not have the buffers of its type"),
        (lambda a: setattr(a.children[0], "release", ffi.NULL), "argument x is missing or released"),
        (dictionary, "argument x is dictionary-encoded"),
        (no_data, "argument x has nulls, but no validity buffer"),
    ],
)
def test_invalid_batches_are_refused(functions, change, words):
    status, text = refused(functions["same_int64"], "same_int64", change)
    assert status == INVALID_ARGUMENT
    assert text.startswith("plugin functions, function same_int64: ")
    assert words in text


def test_a_negative_last_offset_is_refused(functions):
    def negative(arguments):
        offsets = ffi.new("int32_t[4]", [3, 3, 3, -1])
        buffers = ffi.new("const void *[3]", list(arguments.children[0].buffers[0:3]))
        buffers[1] = offsets
        arguments.children[0].buffers = buffers
        return buffers, offsets

    status, text = refused(functions["same_utf8"], "same_utf8", negative, ["utf8"])
    assert (status, "argument x has a negative last offset" in text) == (INVALID_ARGUMENT, True)


def test_missing_pointers_and_numbers_are_refused(functions):
    plugin = functions["same_int64"]
    empty, results = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowArray *")
    schema = ffi.new("struct ArrowSchema **")
    assert plugin.call("run", 0, ffi.NULL, ffi.NULL, results, schema)[0] == INVALID_ARGUMENT
    assert plugin.call("run", 0, empty, ffi.NULL, results, schema)[0] == INVALID_ARGUMENT
    status, text = plugin.call("run", 99, empty, ffi.NULL, results, schema)
    assert (status, text) == (INVALID_ARGUMENT, "plugin functions has 12 functions, there is no number 99")
    # A host that wants no text passes no error.
    assert plugin.table.run(99, empty, ffi.NULL, results, schema, ffi.NULL) == INVALID_ARGUMENT


def test_async_slots_return_not_implemented(functions):
    plugin = functions["same_int64"]
    null = ffi.NULL
    handle = ffi.new("arroyo_udf_handle *")
    calls = {
        "start": (0, null, handle),
        "send": (1, 1, null, null),
        "drain_results": (1, 0, null, null),
        "wait": (1, 1, 0),
        "arm": (1, 1, null, null),
        "disarm": (1,),
        "cancel": (1, 1, 1),
        "statistics": (1, null),
        "stop_runtime": (1, 1, 0),
        "release": (1,),
        "set_log": (1, null),
    }
    for slot, arguments in calls.items():
        status, text = plugin.call(slot, *arguments)
        assert status == NOT_IMPLEMENTED, slot
        assert "plugin functions is written in C and has only sync functions" in text


# ---- What a plugin says of itself ----------------------------------------------------------------------------------


def test_description(c_plugin, open_plugin, examples):
    plugin = open_plugin(c_plugin(examples / "flights" / "udf.c", "flights"))
    described = plugin.descriptor
    assert described.size == ffi.sizeof("arroyo_udf_descriptor")
    names = [plugin.text(getattr(described, field)) for field in ("name", "language", "toolkit_version", "hash")]
    assert names == ["flights", "c", "1.2.3", "0123456789abcdef"]
    assert list(plugin.numbers) == ["mph", "tail"]
    mph = plugin.functions[0]
    assert (mph.kind, mph.vectorized, mph.options) == (1, 0, ffi.NULL)
    assert plugin.type(mph.arguments) == pa.struct(
        [pa.field("distance", pa.int64(), nullable=False), pa.field("air_time", pa.int64(), nullable=False)]
    )
    assert plugin.type(mph.returns) == pa.float64()


def test_a_bare_compiler_call_is_enough(plain_cc, open_plugin, examples):
    plugin = open_plugin(plain_cc(examples / "flights" / "udf.c", "-shared", "-fPIC"))
    names = [plugin.text(getattr(plugin.descriptor, field)) for field in ("name", "toolkit_version", "hash")]
    assert names == ["unnamed", "none", "0"]


def test_the_head_of_the_table(c_plugin, examples):
    """EVOLUTION: hosts check the first sixteen bytes before anything else."""
    library = ctypes.CDLL(str(c_plugin(examples / "by_hand" / "udf.c")))
    first = bytes((ctypes.c_char * 16).in_dll(library, "arroyo_udf_plugin"))
    assert struct.unpack("<8sII", first) == (b"ARROYUDF", 1, ffi.sizeof("arroyo_udf_table"))


def test_example_written_by_hand(c_plugin, open_plugin, examples):
    plugin = open_plugin(c_plugin(examples / "by_hand" / "udf.c"))
    batch = batch_of([pa.array([9, 1, None, 3, 4])[1:]], ["miles"], mask=[False, False, False, True])[1:]
    assert plugin.run("kilometres", batch).field("value").to_pylist() == [None, 3 * 1.609344, None]
    assert refused(plugin, "kilometres", lambda a: setattr(a, "length", 4))[0] == INVALID_ARGUMENT
    assert plugin.call("release", 1)[0] == NOT_IMPLEMENTED
