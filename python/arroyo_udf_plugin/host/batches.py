"""Arrays across the ABI: arguments out to a plugin, results back in. The hot path of the host.

Guarantees: arguments that a plugin did not take are released here. Results are checked before pyarrow reads them
(native/python/src/results.rs says how).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .._native import batch as _new_batch
from .._native import check_drained, check_run, layout, raise_interrupts, take_interrupt
from .._native import free_batch as free_batch
from .._native import taken as taken
from ..abi import INVALID_ARGUMENT, YES, address, ffi, new_error, take_error
from ..errors import AbiError, InvalidArgument, by_status
from .fields import field_of

if TYPE_CHECKING:
    from .._native import Ledger

raise_interrupts(threading.main_thread().ident or 0)

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
_FRESH = bytes(sum(_SIZES[:2])) + bytes(ffi.buffer(new_error()))


class Outputs:
    """The out-parameters of one call, side by side in memory, which is made anew before each call."""

    __slots__ = ("address", "array", "error", "memory", "schema")

    def __init__(self) -> None:
        block = ffi.new("uint64_t[]", sum(_SIZES) // 8)
        self.memory = ffi.buffer(block)
        self.address = address(block)
        self.array = array_pointer(self.address)
        self.schema = ffi.cast("const struct ArrowSchema **", self.address + _SIZES[0])
        self.error = ffi.cast("arroyo_udf_error *", self.address + _SIZES[0] + _SIZES[1])
        self.memory[:] = _FRESH


# Unused outputs. Each call takes one and gives it back, so calls may nest and come from any thread.
_free: list[Outputs] = []
give_back = _free.append


def take_outputs() -> Outputs:
    try:
        outputs = _free.pop()
    except IndexError:
        return Outputs()
    outputs.memory[:] = _FRESH
    return outputs


_RUN = {"value": None, "outcome": pa.uint8(), "error": pa.utf8()}
_DRAIN = {"id": pa.uint64(), "value": None, "outcome": pa.uint8(), "attempts": pa.uint16(), "error": pa.utf8()}


class Shape:
    """The struct type of a result, and where in it the fields are. Checks and imports such results.

    validate: also check every value, see `load`.
    """

    def __init__(self, where: str, slot: str, type_: pa.DataType, value: pa.DataType, validate: bool) -> None:
        self.type = type_
        self.schema = pa.schema(list(type_))
        places = {field.name: i for i, field in enumerate(self.schema)}
        self.value = places["value"]
        self.outcome, self.error = map(places.get, ("outcome", "error"))
        self._where = where
        self._slot = slot
        self._value_type = value
        self._validate = validate
        exported = ffi.new("struct ArrowSchema *")
        type_._export_to_c(address(exported))
        self._layout = layout(address(exported))

    def take(self, outputs: Outputs, n_rows: int) -> tuple[pa.Array, bool]:
        """Checks and imports the results of a run. True: nothing else was in them, and this is the array of values."""
        try:
            alone = check_run(self._layout, outputs.address, n_rows)
        except ValueError as error:
            raise self._broken(error) from None
        try:
            results = pa.Array._import_from_c(outputs.address, self._value_type if alone else self.type)
            if self._validate:
                results.validate(full=True)
        except pa.ArrowException as error:
            raise self._broken(f"a broken array: {error}") from None
        give_back(outputs)
        return results, alone

    def take_drained(self, outputs: Outputs, most: int, ledger: Ledger, alone: bool) -> pa.RecordBatch:
        """Checks and imports drained rows, and notes them in the ledger. The arguments are those of `check_drained`."""
        try:
            even = check_drained(self._layout, outputs.address, most, ledger, alone)
        except ValueError as error:
            raise self._broken(error) from None
        try:
            if even:
                results = pa.RecordBatch._import_from_c(outputs.address, self.schema)
            else:
                results = pa.RecordBatch.from_struct_array(pa.Array._import_from_c(outputs.address, self.type))
            if self._validate:
                results.validate(full=True)
        except pa.ArrowException as error:
            raise self._broken(f"a broken array: {error}") from None
        give_back(outputs)
        return results

    def _broken(self, what: object) -> AbiError:
        return contract_broken(self._where, f"{self._slot} answers {what}")


class Shapes(dict[Any, Shape]):
    """The types of a function's results, by the address of their constant schema; each is read once.

    slot: "run" or "drain_results", which returns the results. validate: as in `Shape`.
    """

    def __init__(self, where: str, value: pa.DataType, slot: str, validate: bool) -> None:
        self._where = where
        self._value = value
        self._slot = slot
        self._validate = validate
        self._fields = _RUN if slot == "run" else _DRAIN

    def __missing__(self, pointer: Any) -> Shape:
        self[pointer] = shape = self._read(pointer)
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
        return Shape(self._where, self._slot, struct, self._value, self._validate)

    def _broken(self, what: str) -> AbiError:
        return contract_broken(self._where, f"results of {self._slot} are {what}")


def contract_broken(where: str, what: str) -> AbiError:
    """The exception for a plugin that does what arroyo_udf.h rules out. where: "plugin.function"."""
    return AbiError(f"{where}: the plugin breaks the contract: {what}")


def failure(status: int, error: Any, where: str = "", slot: str = "") -> BaseException:
    """The exception for a call that did not answer what it may. Reads and releases the text of an error.

    It is Ctrl-C if that has ended the call (R2).
    """
    if status < INVALID_ARGUMENT:
        return contract_broken(where, f"{slot} answers the status {status}")
    retryable = error.retryable == YES
    failed = by_status(status, take_error(error), retryable)
    return take_interrupt() or failed
