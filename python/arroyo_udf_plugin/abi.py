"""The C contract as cffi reads it from native/include/arroyo_udf.h: structs, constants, texts.

Guarantees: numbers come from the header, so a new status or condition needs no change here unless Python code names it.
A text of a plugin is checked before it is believed. Does not import pyarrow.
"""

import math
from typing import Any

from ._cdef import ffi as ffi
from .errors import AbiError


def _constant(name: str) -> int:
    return int(ffi.integer_const(f"ARROYO_UDF_{name}"))


SYMBOL = "arroyo_udf_plugin"
MAGIC = int.from_bytes(b"ARROYUDF", "little")  # these two are macros, which cffi does not see
ABI_VERSION = 1
MAGIC_OF_DRAFTS = int.from_bytes(b"ARYO_UDF", "little")  # of version 1 before it was final: has other structs

OK = _constant("OK")
WOULD_BLOCK = _constant("WOULD_BLOCK")
READY = _constant("READY")
END = _constant("END")
STUCK = _constant("STUCK")
INVALID_ARGUMENT = _constant("INVALID_ARGUMENT")  # the first error: all above are errors too
INVALID_STATE = _constant("INVALID_STATE")
ENVIRONMENT = _constant("ENVIRONMENT")
USER_CODE = _constant("USER_CODE")
INTERNAL = _constant("INTERNAL")
OUT_OF_MEMORY = _constant("OUT_OF_MEMORY")

VALUE, ERROR, TIMED_OUT, CANCELLED = map(_constant, ("VALUE", "ERROR", "TIMED_OUT", "CANCELLED"))
RESULTS, ROOM = map(_constant, ("RESULTS", "ROOM"))
DRAIN, CANCEL = map(_constant, ("DRAIN", "CANCEL"))
SYNC, ASYNC, AGGREGATE, TABLE, STEP = map(_constant, ("SYNC", "ASYNC", "AGGREGATE", "TABLE", "STEP"))
YES = _constant("YES")
VOLATILITIES = {_constant(name.upper()): name for name in ("immutable", "stable", "volatile")}
STATISTICS_SIZE_1, TABLE_SIZE_1 = map(_constant, ("STATISTICS_SIZE_1", "TABLE_SIZE_1"))
FOREVER_NS = 2**64 - 1  # no timeout, no deadline

_LONGEST_TEXT = 1 << 20
_LONGEST_ERROR = 1 << 16
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def nanoseconds(seconds: float) -> int:
    """Converts seconds to nanoseconds; infinity to FOREVER_NS."""
    return FOREVER_NS if math.isinf(seconds) else max(0, round(seconds * 1e9))


def known(pointer: Any, what: str) -> Any:
    """A copy of the part of a plugin's struct that this host knows; what the struct lacks is zero.

    For structs that begin with their size: the plugin's may be smaller or larger. Raises AbiError, naming `what`, if it
    is smaller than in version 1.
    """
    kind = ffi.typeof(pointer).item
    name = kind.cname.removeprefix("struct ")
    least = _constant(f"{name.removeprefix('arroyo_udf_').upper()}_SIZE_1")
    if pointer.size < least:
        raise AbiError(f"{what}: size is {pointer.size}, and {name} has {least}")
    return _copied(pointer, kind, pointer.size)


def known_table(pointer: Any) -> Any:
    """As `known`, for a table whose head has been checked. A slot that the plugin's table lacks is NULL."""
    return _copied(pointer, ffi.typeof("arroyo_udf_table"), pointer.table_size)


def _copied(pointer: Any, kind: Any, size: int) -> Any:
    copy = ffi.new(ffi.getctype(kind, "*"))
    ffi.memmove(copy, ffi.cast("const char *", pointer), min(size, ffi.sizeof(kind)))
    return copy


def new_error() -> Any:
    """An arroyo_udf_error without a text, as a call wants it."""
    return ffi.new("arroyo_udf_error *", {"size": ffi.sizeof("arroyo_udf_error")})


def text(pointer: Any, what: str = "text") -> str:
    """Reads a C string. Raises AbiError, naming `what`, if it is NULL, too long, or not UTF-8."""
    if pointer == ffi.NULL:
        raise AbiError(f"{what} is NULL")
    data: bytes = ffi.string(pointer, _LONGEST_TEXT)
    if len(data) == _LONGEST_TEXT:
        raise AbiError(f"{what} has no end within {_LONGEST_TEXT} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AbiError(f"{what} is not UTF-8: {error}") from None


def printable(pointer: Any, what: str) -> str:
    """Reads a text that names something. Also raises AbiError if it is empty or cannot be printed."""
    read = text(pointer, what)
    if not read or not read.isprintable():
        raise AbiError(f"{what} is {read[:100]!r}; it must have characters, and only such as can be printed")
    return read


def take_error(error: Any) -> str:
    """Reads and releases the text of an arroyo_udf_error, which is then empty again.

    Reads 64 KiB at most. Bytes that are not UTF-8, and control characters, are replaced.
    """
    data = b"no text" if error.text == ffi.NULL else ffi.string(error.text, _LONGEST_ERROR)
    message = data.decode(errors="replace").translate(_CONTROLS)
    if error.release != ffi.NULL:
        error.release(error)
    error.text = error.private_data = ffi.NULL
    error.release = ffi.NULL
    error.retryable = 0
    return message + (" ..." if len(data) == _LONGEST_ERROR else "")
