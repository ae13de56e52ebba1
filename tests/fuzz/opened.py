"""A plugin as the host of the fuzzer sees it: its table, its functions with what c_arrays.py expects, and results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from c_arrays import Exported, Node, Regions, Type, UnreadableError, check_offsets, span, value

from arroyo_udf_plugin._cdef import ffi
from arroyo_udf_plugin._native import check_run, layout

OK, WOULD_BLOCK, READY, END, STUCK, INVALID_ARGUMENT, INVALID_STATE = 0, 1, 2, 3, 4, 16, 17
ERRORS = range(16, 23)
SYNC, ASYNC, AGGREGATE, NULLABLE = 1, 2, 3, 2


class FoundError(Exception):
    """What the plugin did against the contract."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise FoundError(what)


class Function:
    def __init__(self, plugin: Plugin, number: int, described: Any) -> None:
        self.plugin, self.number = plugin, number
        self.name = ffi.string(described.name).decode()
        self.is_sync, self.is_vectorized = described.kind != ASYNC, bool(described.vectorized)
        children = [described.arguments.children[i] for i in range(described.arguments.n_children)]
        self.types = [_type(child) for child in children]
        self.nullable = [bool(child.flags & NULLABLE) for child in children]
        self.handle: int | None = None
        self.next_id = 0

    @property
    def arguments(self) -> Type:
        return Type("+s", tuple(self.types))

    def through_pyarrow(self, argument: int) -> bool:
        nested = self.types[argument].format.startswith("+")
        return self.plugin.language == "python" and (self.is_vectorized or nested)

    def expected(self, batch: Node, row: int) -> tuple[str, Any]:
        """("value", v) or ("error", None)."""
        columns = [column for column in batch.children or [] if column]
        at = batch.offset + row
        nulls = [batch.is_null(row) or column.is_null(at) for column in columns]
        if not self.is_vectorized and any(n and not nullable for n, nullable in zip(nulls, self.nullable, strict=True)):
            return "value", None
        if self.name == "total.update":
            return _updated(columns, self.types, at)
        arguments = []
        for i, (column, type_, null) in enumerate(zip(columns, self.types, nulls, strict=True)):
            try:
                if null and self.is_vectorized:
                    check_offsets(column, type_, at)
                arguments.append(
                    None if null else value(column, type_, at, self.through_pyarrow(i), self.is_vectorized)
                )
            except UnreadableError:
                return "error", None
        if self.name.startswith("total."):
            return _total(arguments, merges=self.name == "total.merge")
        return "value", self.answer(arguments)

    def answer(self, arguments: list[Any]) -> Any:
        if self.name == "rows_of":
            text, flag = arguments
            return [{"text": text, "flag": flag}, {"text": text, "flag": not flag}]
        what = self.name.removeprefix("async_").split("_")[0]
        x = arguments[-1]
        if what == "joined":
            items = x if "texts" in self.name else [item for item in x if item is not None]
            return ",".join("~" if item is None else str(item) for item in items)
        if what == "pair":
            return f"{x[0]} {x[1]}"
        return x


def _type(schema: Any) -> Type:
    children = tuple(_type(schema.children[i]) for i in range(schema.n_children))
    return Type(ffi.string(schema.format).decode(), children)


def _sums(state: bytes | None) -> tuple[int, int]:
    """What a state of `total` has: two numbers of 64 bits; null is that of a new group."""
    state = bytes(16) if state is None else state
    if len(state) != 16:
        raise UnreadableError
    return int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


def _state(total: int, size: int) -> bytes:
    return b"".join((number % 2**64).to_bytes(8, "little") for number in (total, size))


def _total(states: list[Any], merges: bool) -> tuple[str, Any]:
    """What `total.merge` and `total.finish` must answer."""
    try:
        totals, sizes = zip(*map(_sums, states), strict=True)
    except UnreadableError:
        return "error", None
    return "value", _state(sum(totals), sum(sizes)) if merges else totals[0] ^ sizes[0]


def _updated(columns: list[Node], types: list[Type], at: int) -> tuple[str, Any]:
    """What `total.update` must answer. Of a row that is left out, nothing is read."""
    lists = columns[1:]
    try:
        total, size = _sums(value(columns[0], types[0], at, False))
        spans = [span(column, type_, at) for column, type_ in zip(lists, types[1:], strict=True)]
        if len({end - start for start, end in spans}) > 1:
            raise UnreadableError
        x, y = ((column.children or [])[0] for column in lists)
        assert x is not None
        assert y is not None
        for i, j in zip(*(range(*each) for each in spans), strict=True):
            added = value(x, types[1].children[0], i, False)
            if added is not None:
                total += added
                size += len((value(y, types[2].children[0], j, False) or "").encode())
    except UnreadableError:
        return "error", None
    return "value", _state(total, size)


class Plugin:
    def __init__(self, path: str) -> None:
        self.table = ffi.addressof(ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_NODELETE).arroyo_udf_plugin)
        descriptor = self.table.describe()
        self.language = ffi.string(descriptor.language).decode()
        every = [Function(self, i, descriptor.functions[i]) for i in range(descriptor.n_functions)]
        self.functions = [f for f in every if descriptor.functions[f.number].kind != AGGREGATE]
        self.regions = Regions()
        self.types: dict[int, Any] = {}
        self.open: list[Exported] = []  # accepted, not yet released

    def call(self, slot: str, *arguments: Any) -> tuple[int, str]:
        error = ffi.new("arroyo_udf_error *", {"size": ffi.sizeof("arroyo_udf_error")})
        status = getattr(self.table, slot)(*arguments, error)
        text = ffi.string(error.text).decode() if error.text else ""
        if error.release:
            error.release(error)
        demand(bool(text) == (status in ERRORS), f"{slot} answered status {status} with the text {text!r}")
        return status, text

    def rows(self, results: Any, schema: Any) -> list[dict[str, Any]]:
        """Results, checked in full, as rows; they are released."""
        array, constant = (int(ffi.cast("uintptr_t", pointer)) for pointer in (results, schema))
        if constant not in self.types:
            kept: list[Any] = []
            type_ = pa.DataType._import_from_c(int(ffi.cast("uintptr_t", _copy(schema, kept))))
            exported = ffi.new("struct ArrowSchema *")
            type_._export_to_c(int(ffi.cast("uintptr_t", exported)))
            self.types[constant] = type_, layout(int(ffi.cast("uintptr_t", exported)))
        type_, checked = self.types[constant]
        alone = check_run(checked, array, results.length)
        found = pa.Array._import_from_c(array, type_.field("value").type if alone else type_)
        found.validate(full=True)
        return [{"value": value} for value in found.to_pylist()] if alone else found.to_pylist()

    def collect(self) -> None:
        """Gives the memory of released inputs back."""
        still = [exported for exported in self.open if exported.released == 0]
        for exported in self.open:
            demand(exported.released <= 1, f"an input was released {exported.released} times")
            if exported.released:
                exported.free()
        self.open = still

    def end(self) -> None:
        """All inputs have been released once nothing is open."""
        for function in self.functions:
            if function.handle is not None:
                demand(self.call("release", function.handle)[0] in (OK, STUCK), "release failed")
        self.collect()
        demand(not self.open, f"{len(self.open)} inputs were never released")


def _copy(schema: Any, kept: list[Any]) -> Any:
    copy = ffi.new("struct ArrowSchema *", schema[0])
    children = [_copy(schema.children[i], kept) for i in range(copy.n_children)]
    pointers = ffi.new("struct ArrowSchema *[]", [*children, ffi.NULL])
    copy.children, copy.release = pointers, _forget
    kept += [copy, pointers]
    return copy


@ffi.callback("void(struct ArrowSchema *)")
def _forget(schema: Any) -> None:
    schema.release = ffi.NULL
