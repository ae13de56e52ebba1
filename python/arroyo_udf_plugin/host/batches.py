"""Arrays across the ABI: arguments out to a plugin, results back in. The hot path of the host.

Guarantees: arguments that a plugin did not take are released here. A result is checked before use: its structure before
pyarrow reads it, then its lengths, outcomes and texts. A result with a broken structure stays allocated, because its
release callback would follow the same pointers.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from .._native import batch as _new_batch
from .._native import free_batch as free_batch
from .._native import take_child
from ..abi import CANCELLED, ERROR, INVALID_ARGUMENT, TIMED_OUT, VALUE, address, ffi, take_error
from ..errors import AbiError, ArroyoUdfError, InvalidArgument, by_status
from .fields import field_of
from .layout import FIELDS, Broken, Checked, Layout, at, pointer_at

_ARRAY_SIZE = ffi.sizeof("struct ArrowArray")


class Arguments:
    """The arguments of one function: checks and exports arrays for it."""

    def __init__(self, where: str, schema: pa.Schema) -> None:
        self._where = where
        self._schema = schema
        self._types: list[pa.DataType] = schema.types
        self._count = len(self._types)

    def export(self, arrays: Sequence[pa.Array]) -> int:
        """Exports arrays as one struct ArrowArray; returns its address. Call free_batch after the call, in any case."""
        if len(arrays) != self._count or not arrays:
            self._check_count(arrays)
        length = len(arrays[0])
        arrays = arrays if self._count else ()
        for array, wanted in zip(arrays, self._types, strict=True):
            if len(array) != length or (array.type is not wanted and array.type != wanted):
                self._check(arrays)
                break
        batch, child = _new_batch(length, self._count)
        try:
            for array in arrays:
                array._export_to_c(child)
                child += _ARRAY_SIZE  # the children lie one behind the other
        except BaseException:
            free_batch(batch)
            raise
        return batch

    def arrays(self, given: Sequence[Any]) -> list[pa.Array | pa.ChunkedArray]:
        """The caller's values as pyarrow arrays: objects with the Arrow PyCapsule protocol, or one RecordBatch."""
        if len(given) == 1 and isinstance(given[0], pa.RecordBatch | pa.Table):
            given = given[0].columns or [pa.nulls(given[0].num_rows)]
        self._check_count(given)
        return [self._array(i, value) for i, value in enumerate(given)]

    def chunks(self, given: Sequence[Any]) -> list[list[pa.Array]]:
        """Converts the caller's values to arrays, cut at the chunks of all chunked arrays."""
        arrays = self.arrays(given)
        if not any(isinstance(array, pa.ChunkedArray) for array in arrays):
            return [arrays]
        self._check(arrays)
        table = pa.table(arrays, names=[str(i) for i in range(self._count)])
        return [batch.columns for batch in table.to_batches()]

    def _array(self, i: int, value: Any) -> pa.Array | pa.ChunkedArray:
        if isinstance(value, pa.Array | pa.ChunkedArray):
            return value
        if hasattr(value, "__arrow_c_array__"):
            return pa.array(value)
        if hasattr(value, "__arrow_c_stream__"):
            return pa.chunked_array(value)
        wanted = self._schema.field(i)
        raise self._wrong(i, f"is a {type(value).__name__}; pass an Arrow array: pa.array(..., pa.{wanted.type}())")

    def _check(self, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        for i, array in enumerate(arrays):
            wanted = self._types[i]
            if not _same_layout(array.type, wanted):
                raise self._wrong(i, f"is {array.type}, not {wanted}; cast it with array.cast")
            if len(array) != len(arrays[0]):
                raise self._wrong(i, f"has {len(array)} rows, but the first has {len(arrays[0])}; pass equal lengths")

    def _wrong(self, i: int, what: str) -> InvalidArgument:
        return InvalidArgument(f"{self._where}: argument {i + 1}, {self._schema.field(i).name!r}, {what}")

    def _check_count(self, given: Sequence[Any]) -> None:
        """A function without arguments gets one array of nulls, one per row."""
        if self._count == 0:
            if len(given) != 1 or not isinstance(given[0], pa.NullArray):
                raise InvalidArgument(f"{self._where}: takes no arguments; pass pa.nulls(n) to call it for n rows")
        elif len(given) != self._count:
            names = ", ".join(self._schema.names)
            wrong = f"{self._where}: takes {self._count} arguments ({names}), but got {len(given)}"
            raise InvalidArgument(wrong)


def _same_layout(one: pa.DataType, other: pa.DataType) -> bool:
    """Equal except for the names of list items and for inner nullability, which data from elsewhere rarely declares."""
    if one == other:
        return True
    if one.id != other.id or not pa.types.is_nested(one) or one.num_fields != other.num_fields:
        return False
    fields = [(one.field(i), other.field(i)) for i in range(one.num_fields)]
    named = not pa.types.is_struct(one) or all(a.name == b.name for a, b in fields)
    return named and all(_same_layout(a.type, b.type) for a, b in fields)


array_pointer = functools.partial(ffi.cast, ffi.typeof("struct ArrowArray *"))
"""Casts the address of an ArrowArray to cffi's pointer."""

_SIZES = (_ARRAY_SIZE, ffi.sizeof("struct ArrowSchema *"), ffi.sizeof("arroyo_udf_error"))
_NOTHING = bytes(sum(_SIZES))
_fields = struct.Struct(FIELDS.format + "Q").unpack_from
_NUMBERS = slice(0, 5)  # of an array's fields: length, null_count, offset, n_buffers, n_children


class Outputs:
    """The out-parameters of one call, side by side in memory, which is zero before each call."""

    __slots__ = ("address", "array", "error", "memory", "schema")

    def __init__(self) -> None:
        block = ffi.new("uint64_t[]", sum(_SIZES) // 8)
        self.memory = ffi.buffer(block)
        self.address = address(block)
        self.array = array_pointer(self.address)
        self.schema = ffi.cast("const struct ArrowSchema **", self.address + _SIZES[0])
        self.error = ffi.cast("arroyo_udf_error *", self.address + _SIZES[0] + _SIZES[1])

    def fields(self) -> tuple[int, ...]:
        """The array's fields, and the address of its schema."""
        return _fields(self.memory)


# Unused outputs. Each call takes one and gives it back, so calls may nest and come from any thread.
_free: list[Outputs] = []
give_back = _free.append


def take_outputs() -> Outputs:
    try:
        outputs = _free.pop()
    except IndexError:
        return Outputs()
    outputs.memory[:] = _NOTHING
    return outputs


_RUN = {"value": None, "outcome": pa.uint8(), "error": pa.utf8()}
_DRAIN = {"id": pa.uint64(), "value": None, "outcome": pa.uint8(), "attempts": pa.uint16(), "error": pa.utf8()}
_REQUIRED = ("id", "outcome", "attempts")
_OUTCOMES = bytes((VALUE, ERROR, TIMED_OUT, CANCELLED))


class Shape:
    """The struct type of a result, where in it the fields are, and the checks of such a result.

    alone: the result is a struct of one field, the value.
    """

    def __init__(self, where: str, slot: str, type_: pa.DataType, value: pa.DataType, full: bool) -> None:
        self.type = type_
        self.schema = pa.schema(list(type_))
        self.where = where
        self._slot = slot
        self._value_type = value
        self._full = full
        places = {field.name: i for i, field in enumerate(self.schema)}
        self.value = places["value"]
        self.id, self.outcome, self.error = map(places.get, ("id", "outcome", "error"))
        self._layout = Layout(type_, f"the struct of {slot}", required=True, deep=False)
        self._layout.children = [
            Layout(field.type, f"field {field.name!r} of {slot}", field.name in _REQUIRED) for field in self.schema
        ]
        self.alone = len(self.schema) == 1
        self._value_layout = self._layout.children[self.value]
        self._checks_value = full or self._value_layout.variable

    def take_values(self, outputs: Outputs, fields: tuple[int, ...], n_rows: int) -> pa.Array | None:
        """Checks and imports values alone, without their struct. None, with nothing done, if there is more to a result:
        other fields, nulls, an offset, or a mistake.

        This is the usual result and the hot path, so it compares all numbers of an array at once.
        """
        _, _, _, _, _, buffers, children, dictionary, release, _, _ = fields
        if not self.alone or fields[_NUMBERS] != (n_rows, 0, 0, 1, 1) or dictionary:
            return None
        if not (buffers and children and release and pointer_at(children) and take_child(outputs.address, 0)):
            return None
        fields = outputs.fields()
        _, _, _, _, _, buffers, _, dictionary, release, _, _ = fields
        layout = self._value_layout
        usual = fields[_NUMBERS] == (n_rows, 0, 0, layout.n_buffers, 0) and buffers and release and not dictionary
        try:
            if not (usual and layout.is_flat and pointer_at(buffers + 8)):
                layout.check(outputs.address, n_rows)
            values = pa.Array._import_from_c(outputs.address, self._value_type)
            if self._checks_value:
                values.validate(full=self._full)
        except (Broken, pa.ArrowException) as error:
            raise self._broken_array(error) from None
        give_back(outputs)
        return values

    def take(self, outputs: Outputs, n_rows: int) -> pa.StructArray:
        """Checks and imports the results of a run."""
        try:
            length, offset, columns = self._check(outputs)
            if length != n_rows:
                raise Broken(f"{length} rows for {n_rows}")
            outcomes = self._outcomes(length, offset, columns)
            results = pa.Array._import_from_c(outputs.address, self.type)
            self._validate(results, columns, results.field)
        except (Broken, pa.ArrowException) as error:
            raise self._broken_array(error) from None
        give_back(outputs)
        self._check_outcomes(outcomes)
        return results

    def take_drained(self, outputs: Outputs) -> tuple[pa.RecordBatch, int]:
        """Checks and imports drained rows. Also the address of the ids, which are there as long as the results."""
        try:
            length, offset, columns = self._check(outputs)
            if not length:
                raise Broken("OK means at least one row, and it has none")
            outcomes = self._outcomes(length, offset, columns)
            _, id_offset, _, ids = columns[self.id or 0]
            # A RecordBatch wants columns of its own length.
            if offset or {column[0] for column in columns} != {length}:
                results = pa.RecordBatch.from_struct_array(pa.Array._import_from_c(outputs.address, self.type))
            else:
                results = pa.RecordBatch._import_from_c(outputs.address, self.schema)
            self._validate(results, columns, results.column)
        except (Broken, pa.ArrowException) as error:
            raise self._broken_array(error) from None
        give_back(outputs)
        self._check_outcomes(outcomes)
        return results, ids + 8 * (offset + id_offset)

    def _check(self, outputs: Outputs) -> tuple[int, int, list[Checked]]:
        """Length and offset of the struct, and its columns."""
        length, offset, _, _ = self._layout.check(outputs.address)
        return length, offset, self._layout.check_children(outputs.fields()[6], length + offset)

    def _validate(self, results: Any, columns: list[Checked], column: Callable[[int], pa.Array]) -> None:
        if self._checks_value:
            results.validate(full=self._full)
        if self.error is not None:
            length, _, nulls, _ = columns[self.error]
            if nulls != length:
                column(self.error).validate(full=True)  # texts are few, so all of them are checked

    def _outcomes(self, length: int, offset: int, columns: list[Checked]) -> bytes:
        """The outcomes, one byte for each row."""
        if self.outcome is None or not length:
            return b""
        _, own_offset, _, data = columns[self.outcome]
        return bytes(at(data + own_offset + offset, length))

    def _check_outcomes(self, outcomes: bytes) -> None:
        if unknown := outcomes.translate(None, _OUTCOMES):
            raise self._broken(f"answers the unknown outcome {unknown[0]}")

    def _broken_array(self, error: Exception) -> AbiError:
        return self._broken(f"answers a broken array: {error}")

    def _broken(self, what: str) -> AbiError:
        return contract_broken(self.where, f"{self._slot} {what}")


class Shapes(dict[int, Shape]):
    """The types of a function's results, by the address of their constant schema; each is read once.

    slot: "run" or "drain_results", which returns the results. full: check every value, see `load`.
    """

    def __init__(self, where: str, value: pa.DataType, slot: str, full: bool) -> None:
        self._where = where
        self._value = value
        self._slot = slot
        self._full = full
        self._fields = _RUN if slot == "run" else _DRAIN

    def __missing__(self, pointer: int) -> Shape:
        self[pointer] = shape = self._read(ffi.cast("const struct ArrowSchema *", pointer))
        return shape

    def _read(self, pointer: Any) -> Shape:
        struct = field_of(pointer, f"{self._where}: the plugin breaks the contract: results of {self._slot}").type
        if not pa.types.is_struct(struct):
            raise self._broken(f"{struct}, not a struct")
        names = [field.name for field in struct]
        for name, wanted in self._fields.items():
            if names.count(name) > 1:
                raise self._broken(f"{struct}, with two fields {name!r}")
            missing = name not in names
            if missing and (self._slot == "drain_results" or name == "value"):
                raise self._broken(f"{struct}, without a field {name!r}")
            if not missing and not _same_layout(struct.field(names.index(name)).type, wanted or self._value):
                raise self._broken(f"{struct}, and {name!r} must be {wanted or self._value}")
        if ("outcome" in names) != ("error" in names):
            raise self._broken(f"{struct}; outcome and error must both be there")
        return Shape(self._where, self._slot, struct, self._value, self._full)

    def _broken(self, what: str) -> AbiError:
        return contract_broken(self._where, f"results of {self._slot} are {what}")


def contract_broken(where: str, what: str) -> AbiError:
    """The exception for a plugin that does what arroyo_udf.h rules out. where: "plugin.function"."""
    return AbiError(f"{where}: the plugin breaks the contract: {what}")


def failure(status: int, error: Any, where: str = "", slot: str = "") -> ArroyoUdfError:
    """The exception for a call that did not answer what it may. Reads and releases the text of an error."""
    if status < INVALID_ARGUMENT:
        return contract_broken(where, f"{slot} answers the status {status}")
    return by_status(status, take_error(error))
