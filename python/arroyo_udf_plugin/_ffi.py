"""cffi's side of the package: opening a library, its table and its descriptor.

Guarantees: what comes from a plugin is checked before it is believed, as far as C allows: pointers are not NULL, texts
end and are UTF-8, counts are small. What is not, is an AbiError that names it. Does not import pyarrow.
"""

import math
import os
from typing import Any

from . import _native
from ._cdef import ffi as ffi
from ._errors import AbiError, LoadError

SYMBOL = "arroyo_udf_plugin"
MAGIC = 0x4644555F4F595241
ABI_VERSION = 1

(OK, WOULD_BLOCK, READY, END, STUCK) = range(5)
(INVALID_ARGUMENT, INVALID_STATE, ENVIRONMENT, USER_CODE, INTERNAL, NOT_IMPLEMENTED) = range(16, 22)
VALUE = 0
RESULTS, ROOM = 1, 2
DRAIN, CANCEL = 1, 2
SYNC, ASYNC = 1, 2
ORDERED, UNORDERED = 1, 2
NO_TIMEOUT = 2**64 - 1

_OPEN = ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE
_LONGEST_TEXT = 1 << 20
_MOST_FUNCTIONS = 1 << 16

native = ffi.dlopen(_native.__file__)  # loaded already: this finds its helpers for hosts
wake = ffi.addressof(native, "arroyo_udf_host_wake")


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def nanoseconds(seconds: float) -> int:
    """Seconds as the ABI counts them; infinity is its "none"."""
    return NO_TIMEOUT if math.isinf(seconds) else max(0, round(seconds * 1e9))


def text(pointer: Any, what: str = "text") -> str:
    """A C string. Raises AbiError if it is NULL, has no end in sight, or is not UTF-8."""
    if pointer == ffi.NULL:
        raise AbiError(f"{what} is NULL")
    data: bytes = ffi.string(pointer, _LONGEST_TEXT)
    if len(data) == _LONGEST_TEXT:
        raise AbiError(f"{what} has no end")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AbiError(f"{what} is not UTF-8: {error}") from None


def take_error(error: Any) -> str:
    """Reads the text of an arroyo_udf_error and gives it back; it is empty again afterwards."""
    message = "no text" if error.text == ffi.NULL else ffi.string(error.text).decode(errors="replace")
    if error.release != ffi.NULL:
        error.release(error)
    error.text = error.private_data = ffi.NULL
    error.release = ffi.NULL
    return str(message)


# ---- Open and check --------------------------------------------------------------------------------------------------


def open_plugin(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Opens a library and checks its table and descriptor. Returns (library, table); raises LoadError or AbiError."""
    file = os.path.abspath(path)
    if not os.path.exists(file):
        raise LoadError(f"{file}: there is no such file")
    try:
        library = ffi.dlopen(file, _OPEN)
    except OSError as error:
        raise LoadError(f"{file}: cannot be opened as a shared library: {error}") from None
    try:
        table = ffi.addressof(getattr(library, SYMBOL))
    except ffi.error:
        raise LoadError(f"{file}: exports no symbol {SYMBOL!r}, so it is not a plugin") from None
    if table.magic != MAGIC:
        raise AbiError(f"{file}: the table begins with {table.magic:#x}, and a plugin's begins with {MAGIC:#x}")
    if table.abi_version != ABI_VERSION:
        raise AbiError(
            f"{file}: has ABI version {table.abi_version}, and this host speaks version {ABI_VERSION}: build the "
            "plugin again with the installed toolkit"
        )
    if table.table_size < ffi.sizeof("arroyo_udf_table"):
        raise AbiError(
            f"{file}: the table has {table.table_size} bytes, and ABI version {ABI_VERSION} has "
            f"{ffi.sizeof('arroyo_udf_table')}: it is truncated"
        )
    for slot, field in ffi.typeof("arroyo_udf_table").fields:
        if field.type.kind == "function" and getattr(table, slot) == ffi.NULL:
            raise AbiError(f"{file}: slot {slot!r} of the table is NULL")
    return library, table


def checked_descriptor(table: Any) -> Any:
    """What `describe` says, with its counts and pointers checked. Raises AbiError."""
    descriptor = table.describe()
    if descriptor == ffi.NULL:
        raise AbiError("describe answers NULL")
    _check_size("the descriptor", descriptor.size, "arroyo_udf_descriptor")
    if descriptor.n_functions > _MOST_FUNCTIONS:
        raise AbiError(f"the descriptor has {descriptor.n_functions} functions, more than {_MOST_FUNCTIONS}")
    if descriptor.n_functions and descriptor.functions == ffi.NULL:
        raise AbiError("the descriptor's functions are NULL")
    for number in range(descriptor.n_functions):
        function = descriptor.functions[number]
        if function == ffi.NULL:
            raise AbiError(f"function number {number} is NULL")
        name = text(function.name, f"the name of function number {number}")
        if function.kind not in (SYNC, ASYNC):
            raise AbiError(f"function {name!r} has the kind {function.kind}, neither sync nor async")
        if (function.options == ffi.NULL) != (function.kind == SYNC):
            raise AbiError(f"function {name!r}: options belong to async functions, and to all of them")
        if function.kind == ASYNC:
            _check_size(f"function {name!r}: the options", function.options.size, "arroyo_udf_options")
    return descriptor


def _check_size(what: str, size: int, struct: str) -> None:
    if size < ffi.sizeof(struct):
        raise AbiError(f"{what}: size is {size}, and {struct} has {ffi.sizeof(struct)}")
