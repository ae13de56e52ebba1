"""Which functions of a plugin in Python were compiled to C, and how many of their rows Python ran all the same.

From the extension "native/1" of arroyo_udf.h. A plugin without it is in C or Rust, or was built by an older toolkit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..abi import ffi, known, printable


class NativeRows(NamedTuple):
    """Rows of a native function since its library was opened. deferred: those of them that Python ran, because C cannot
    decide their results (docs/native.md)."""

    rows: int
    deferred: int


class Native:
    """What a plugin tells of one function.

    reason: why Python runs all its rows; None: it is native. run_fused: the slot of its library, the same for all
    functions; None: the function is not native, or the library is older.
    """

    def __init__(self, reason: str | None, count: Callable[[], NativeRows], run_fused: Any) -> None:
        self.reason = reason
        self.count = count
        self.run_fused = run_fused


def natives_of(table: Any, n_functions: int) -> list[Native] | None:
    """For each function of a plugin; None: the plugin does not say. Raises AbiError for an extension that breaks its
    contract."""
    if table.extension == ffi.NULL:
        return None
    found = table.extension(ffi.from_buffer(b"native/1\0"))
    if found == ffi.NULL:
        return None
    extension = known(ffi.cast("arroyo_udf_native *", found), "the extension native/1")
    reasons = [
        None if reason == ffi.NULL else printable(reason, "why a function is not native")
        for reason in (extension.reasons[number] for number in range(min(n_functions, extension.n_functions)))
    ]
    run_fused = None if extension.run_fused == ffi.NULL else extension.run_fused
    return [
        Native(reason, _counter(extension, number), run_fused if reason is None else None)
        for number, reason in enumerate(reasons)
    ]


def _counter(extension: Any, number: int) -> Callable[[], NativeRows]:
    def count() -> NativeRows:
        counted = ffi.new("uint64_t[2]")
        extension.count(number, counted, counted + 1)
        return NativeRows(*counted)

    return count
