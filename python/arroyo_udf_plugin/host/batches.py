"""Results from across the ABI, and the memory of calls. With arguments.py, the hot path of the host.

Guarantees: results are checked before pyarrow reads them (native/python/src/results.rs says how).
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .._native import check_drained, check_run, layout, raise_interrupts, take_interrupt
from .._native import free_batch as free_batch
from .._native import taken as taken
from ..abi import INVALID_ARGUMENT, YES, address, ffi, new_error, take_error
from ..errors import AbiError, by_status
from .fields import field_of

if TYPE_CHECKING:
    from .._native import Ledger

raise_interrupts(threading.main_thread().ident or 0)

_ARRAY_SIZE = ffi.sizeof("struct ArrowArray")


def _same_layout(type_: pa.DataType, other: pa.DataType) -> bool:
    """Equal except for the names of list items and for inner nullability, which data from elsewhere rarely declares."""
    if type_ == other:
        return True
    if type_.id != other.id or not pa.types.is_nested(type_) or type_.num_fields != other.num_fields:
        return False
    fields = [(type_.field(i), other.field(i)) for i in range(type_.num_fields)]
    named = not pa.types.is_struct(type_) or all(a.name == b.name for a, b in fields)
    return named and all(_same_layout(a.type, b.type) for a, b in fields)


array_pointer = functools.partial(ffi.cast, ffi.typeof("struct ArrowArray *"))
"""Casts the address of an ArrowArray to cffi's pointer."""

_SIZES = (_ARRAY_SIZE, ffi.sizeof("struct ArrowSchema *"), ffi.sizeof("arroyo_udf_error"), 8)
_FRESH = bytes(sum(_SIZES[:2])) + bytes(ffi.buffer(new_error())) + bytes(_SIZES[3])


class Outputs:
    """The out-parameters of one call, side by side in memory, which is made anew before each call; and the status of a
    `run`. native/python/src/host.rs has the same struct."""

    __slots__ = ("address", "array", "error", "memory", "schema", "status")

    def __init__(self) -> None:
        block = ffi.new("uint64_t[]", sum(_SIZES) // 8)
        self.memory = ffi.buffer(block)
        self.address = address(block)
        self.array = array_pointer(self.address)
        self.schema = ffi.cast("const struct ArrowSchema **", self.address + _SIZES[0])
        self.error = ffi.cast("arroyo_udf_error *", self.address + _SIZES[0] + _SIZES[1])
        self.status = ffi.cast("int32_t *", self.address + sum(_SIZES[:3]))
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


class Drained(NamedTuple):
    """Rows that have come out, and what their check has found, so that nobody looks again.

    low, high: of their ids. are_neighbours: ids rise by one from row to row. are_values: no row has failed.
    """

    results: pa.RecordBatch
    low: int
    high: int
    are_neighbours: bool
    are_values: bool

    @property
    def size(self) -> int:
        """The bytes that they hold. `nbytes` takes forty times as long: it looks at each part of a buffer."""
        size: int = self.results.get_total_buffer_size()
        return size


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
        taken = self.take_at(outputs.address, n_rows)
        give_back(outputs)
        return taken

    def take_at(self, array: int, n_rows: int) -> tuple[pa.Array, bool]:
        """The same, for results at an address."""
        try:
            alone = check_run(self._layout, array, n_rows)
        except ValueError as error:
            raise self._broken(error) from None
        try:
            results = pa.Array._import_from_c(array, self._value_type if alone else self.type)
            if self._validate:
                results.validate(full=True)
        except pa.ArrowException as error:
            raise self._broken(f"a broken array: {error}") from None
        return results, alone

    def take_drained(self, outputs: Outputs, most: int, ledger: Ledger, alone: bool) -> Drained:
        """Checks and imports drained rows, and notes them in the ledger. The arguments are those of `check_drained`."""
        try:
            is_even, low, high, are_neighbours, are_values = check_drained(
                self._layout, outputs.address, most, ledger, alone
            )
        except ValueError as error:
            raise self._broken(error) from None
        try:
            if is_even:
                results = pa.RecordBatch._import_from_c(outputs.address, self.schema)
            else:
                results = pa.RecordBatch.from_struct_array(pa.Array._import_from_c(outputs.address, self.type))
            if self._validate:
                results.validate(full=True)
        except pa.ArrowException as error:
            raise self._broken(f"a broken array: {error}") from None
        give_back(outputs)
        return Drained(results, low, high, are_neighbours, are_values)

    def _broken(self, what: object) -> AbiError:
        return contract_broken(self._where, f"{self._slot} answers {what}")


class Shapes(dict[Any, Shape]):
    """The types of a function's results, by the address of their constant schema, or a pointer; each is read once.

    slot: "run" or "drain_results", which returns the results. validate: as in `Shape`.
    """

    def __init__(self, where: str, value: pa.DataType, slot: str, validate: bool) -> None:
        self.value = value
        self._where = where
        self._slot = slot
        self._validate = validate
        self._fields = _RUN if slot == "run" else _DRAIN

    def __missing__(self, pointer: Any) -> Shape:
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
            if not missing and not _same_layout(struct.field(names.index(name)).type, wanted or self.value):
                raise self._broken(f"{struct}, and {name!r} must be {wanted or self.value}")
        if ("outcome" in names) != ("error" in names):
            raise self._broken(f"{struct}; outcome and error must both be there")
        return self.of(struct, self._slot)

    def of(self, struct: pa.StructType, slot: str) -> Shape:
        """The shape of results of this type. slot: that returns them."""
        return Shape(self._where, slot, struct, self.value, self._validate)

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
