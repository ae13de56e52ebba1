"""Arrays that a plugin answered are checked before pyarrow reads them."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from arroyo_udf_plugin._cdef import ffi
from arroyo_udf_plugin._native import check_drained, check_run, layout, ledger

TEXTS = pa.array(["one", None, "", "drei", "vier"])
LISTS = pa.array([["a"], None, [], ["b", "c"], ["d", None]])
VALUES = {
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    "int8": pa.array([1, None], pa.int8()),
    "float16": pa.array([np.float16(1.5), None], pa.float16()),  # newer pyarrows take plain floats
    "decimal128": pa.array([Decimal(1), None], pa.decimal128(5, 2)),
    "decimal256": pa.array([Decimal(1), None], pa.decimal256(50, 2)),
    "fixed_size_binary": pa.array([b"abc", None], pa.binary(3)),
    "utf8": TEXTS,
    "large_utf8": TEXTS.cast(pa.large_utf8()),
    "binary": pa.array([b"\xff", None, b""]),
    "large_binary": pa.array([b"\xff", None, b""], pa.large_binary()),
    "timestamp": pa.array([1, None], pa.timestamp("us", "UTC")),
    "duration": pa.array([1, None], pa.duration("s")),
    "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "list": LISTS,
    "large_list": LISTS.cast(pa.large_list(pa.utf8())),
    "fixed_size_list": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.utf8(), 2)),
    "struct": pa.array([{"a": 1, "b": ["x"]}, None], pa.struct({"a": pa.int64(), "b": pa.list_(pa.utf8())})),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.utf8(), pa.int64())),
    "nested": pa.array([[[["a"], []]], None, [[]]], pa.list_(pa.list_(pa.list_(pa.utf8())))),
}


class Exported:
    """Results with these values, behind C structs that a test can break. What it breaks is mended at the release."""

    def __init__(self, values: pa.Array) -> None:
        others = [pa.array([0] * len(values), pa.uint8()), pa.nulls(len(values), pa.utf8())]
        results = pa.StructArray.from_arrays([values, *others], ["value", "outcome", "error"])
        self.results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema *")
        results._export_to_c(self.address(self.results), self.address(schema))
        self._layout = layout(self.address(schema))
        self.array = self.results.children[0]
        self._changed: list[tuple[Any, Any, Any]] = []
        self._kept: list[Any] = []

    @staticmethod
    def address(pointer: Any) -> int:
        return int(ffi.cast("uintptr_t", pointer))

    def set(self, struct: Any, field: str, value: Any) -> None:
        self._changed.append((struct, field, getattr(struct, field)))
        setattr(struct, field, value)

    def buffer(self, array: Any, i: int, values: Any, type_: str = "int32_t[]") -> None:
        """Gives the array other buffers, of which number `i` has these values; None: NULL."""
        new = ffi.NULL if values is None else ffi.new(type_, values)
        buffers = ffi.new("void const *[]", [new if k == i else array.buffers[k] for k in range(array.n_buffers)])
        self._kept += [new, buffers]
        self.set(array, "buffers", buffers)

    def check(self) -> str:
        """Why the results are refused; empty if they are not."""
        try:
            check_run(self._layout, self.address(self.results), self.results.length)
        except ValueError as error:
            return str(error)
        return ""

    def release(self) -> None:
        for struct, field, value in reversed(self._changed):
            setattr(struct, field, value)
        self.results.release(self.results)


@pytest.fixture
def export() -> Any:
    exported: list[Exported] = []

    def one(array: pa.Array) -> Exported:
        exported.append(Exported(array))
        return exported[-1]

    yield one
    for array in exported:
        array.release()


@pytest.mark.parametrize("name", VALUES)
def test_arrays_of_all_types_pass(export: Callable[[pa.Array], Exported], name: str) -> None:
    whole = VALUES[name]
    in_struct = pa.StructArray.from_arrays([whole, whole], ["value", "again"])
    for array in (whole, whole[1:], whole[:0], whole[1:1], in_struct, in_struct[1:]):
        assert export(array).check() == "", array


BROKEN: dict[str, tuple[pa.Array, Callable[[Exported, Any], None], str]] = {
    "released": (TEXTS, lambda e, a: e.set(a, "release", ffi.NULL), "released"),
    "negative length": (TEXTS, lambda e, a: e.set(a, "length", -1), "invalid length -1 and offset 0"),
    "negative offset": (TEXTS, lambda e, a: e.set(a, "offset", -1), "invalid length 5 and offset -1"),
    "overflow": (TEXTS, lambda e, a: e.set(a, "offset", 2**63 - 1), "invalid length"),
    "no memory holds it": (VALUES["int8"], lambda e, a: e.set(a, "length", 2**63 - 1), "invalid length"),
    "too few rows": (TEXTS, lambda e, a: e.set(a, "length", 4), "4 rows, but 5 are needed"),
    "n_buffers": (TEXTS, lambda e, a: e.set(a, "n_buffers", 2), "2 buffers and 0 children, but its type needs 3 and 0"),
    "n_children": (
        LISTS,
        lambda e, a: e.set(a, "n_children", 0),
        "2 buffers and 0 children, but its type needs 2 and 1",
    ),
    "many children": (LISTS, lambda e, a: e.set(a, "n_children", 2**62), "its type needs 2 and 1"),
    "buffers": (TEXTS, lambda e, a: e.set(a, "buffers", ffi.NULL), "NULL"),
    "children": (LISTS, lambda e, a: e.set(a, "children", ffi.NULL), "NULL"),
    "child": (LISTS, lambda e, a: e.set(a, "children", _no_children(e)), "child item: the array is NULL"),
    "dictionary": (TEXTS, lambda e, a: e.set(a, "dictionary", a), "and a dictionary"),
    "no values": (VALUES["timestamp"], lambda e, a: e.buffer(a, 1, None), "no buffer of values"),
    "no offsets": (TEXTS, lambda e, a: e.buffer(a, 1, None), "no buffer of values"),
    "no texts": (TEXTS, lambda e, a: e.buffer(a, 2, None), "offsets up to 11, but no data"),
    "no validity": (TEXTS, lambda e, a: e.buffer(a, 0, None), "1 nulls, but no validity buffer"),
    "null_count": (TEXTS, lambda e, a: e.set(a, "null_count", 4), "null_count is 4, but 1 rows are null"),
    "unknown null_count": (TEXTS, lambda e, a: e.set(a, "null_count", -2), "null_count is -2"),
    "negative first": (TEXTS, lambda e, a: e.buffer(a, 1, [-4, 3, 3, 7, 11, 11]), "offset 0 is negative"),
    "negative last": (TEXTS, lambda e, a: e.buffer(a, 1, [0, 3, 3, 3, 7, -1]), "the last offset is negative: -1"),
    "decreases": (TEXTS, lambda e, a: e.buffer(a, 1, [0, 3, 3, 2**30, 7, 11]), "offset 4 decreases"),
    "wild": (LISTS, lambda e, a: e.buffer(a, 1, [0, 1, 2**30, 1, 3, 5]), "offset 3 decreases"),
    "beyond the items": (
        LISTS,
        lambda e, a: e.buffer(a, 1, [0, 1, 1, 1, 3, 6]),
        "child item: 5 rows, but 6 are needed",
    ),
    "inner offsets": (
        LISTS,
        lambda e, a: e.buffer(a.children[0], 1, [0, 1, -2, 3, 4, 4]),
        "child item: offset 2 decreases",
    ),
    "wide offsets": (
        VALUES["large_utf8"],
        lambda e, a: e.buffer(a, 1, [0, 3, 3, 2**40, 7, 11], "int64_t[]"),
        "offset 4 decreases",
    ),
    "fixed size": (
        pa.array([["a", "b"], ["c", "d"], ["e", "f"]], pa.list_(pa.utf8(), 2)),
        lambda e, a: e.set(a.children[0], "length", 5),
        "child item: 5 rows, but 6 are needed",
    ),
}


def _no_children(exported: Exported) -> Any:
    children = ffi.new("struct ArrowArray *[]", 1)
    exported._kept.append(children)
    return children


@pytest.mark.parametrize("case", BROKEN)
def test_broken_arrays_are_refused_by_name(export: Callable[[pa.Array], Exported], case: str) -> None:
    array, break_, why = BROKEN[case]
    exported = export(array)
    break_(exported, exported.array)
    found = exported.check()
    assert found.startswith("a broken array: child value")
    assert why in found


def test_types_without_a_check_are_refused_by_name(export: Callable[[pa.Array], Exported]) -> None:
    deep = pa.int64()
    for _ in range(70):
        deep = pa.list_(deep)
    for array, why in [
        (pa.array(["text"], pa.string_view()), "unsupported type vu"),
        (TEXTS.dictionary_encode(), "unsupported type dictionary-encoded i"),
        (pa.nulls(1, deep), "nested too deeply"),
    ]:
        assert why in export(array).check()


def test_a_map_without_a_key_is_refused(export: Callable[[pa.Array], Exported]) -> None:
    """pyarrow ends the process when it gets one."""
    exported = export(VALUES["map"])
    key = exported.array.children[0].children[0]
    exported.buffer(key, 0, [0], "uint64_t[]")
    exported.set(key, "null_count", 1)
    assert exported.check() == "a broken array: child value, child entries: a key of a map is null"


def test_unaligned_offsets_are_read(export: Callable[[pa.Array], Exported]) -> None:
    exported = export(TEXTS)
    moved = ffi.new("char[]", b"\0" + bytes(ffi.buffer(exported.array.buffers[1], 24)))
    exported.buffer(exported.array, 1, None)
    exported.array.buffers[1] = moved + 1
    assert exported.check() == ""


@pytest.mark.parametrize("check", [check_run, check_drained])
def test_wrong_arguments_are_exceptions(export: Callable[[pa.Array], Exported], check: Callable[..., bool]) -> None:
    exported = export(TEXTS)
    rest = (5,) if check is check_run else (0, ledger(True), True)
    right = (exported._layout, exported.address(exported.results), *rest)
    for wrong in ((), right[:-1], (*right, 1), (0, *right[1:]), (right[0], "0", *rest), (*right[:2], "5", *rest[1:])):
        with pytest.raises((TypeError, ValueError)):
            check(*wrong)
