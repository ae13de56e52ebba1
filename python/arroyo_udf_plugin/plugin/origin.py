"""The last line of a built library: the source that it was built from. Loaders do not read that far.

It is no part of the compiled library, so the same source in two folders is compiled once. Python plugins need the whole
path, for `__file__`; of other sources it is the name, so that their libraries name no folder of the machine.
"""

import os

__all__ = ["line", "read", "source_of"]

_BEGINS = b"\narroyo-udf built this from "
_LONGEST = 1 << 13  # more than a path can be


def line(source: str) -> bytes:
    """What to append to the library of a source."""
    return _BEGINS + os.fsencode(source if source.endswith(".py") else os.path.basename(source))


def read(library: str) -> str | None:
    """What the last line of a file says; None if it has no such line. Raises OSError."""
    with open(library, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST))
        _, separator, source = file.read().rpartition(_BEGINS)
    return os.fsdecode(source.partition(b"\0")[0]) if separator else None  # DuckDB's footer follows


def source_of(library: str, name: str) -> str:
    """The path of a Python plugin's source. Without that line, it would be beside the library."""
    try:
        return read(library) or os.path.join(os.path.dirname(library), f"{name}.py")
    except OSError:
        return f"{name}.py"
