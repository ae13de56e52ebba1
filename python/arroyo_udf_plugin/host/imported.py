"""Libraries that were built for the Arroyo engine, behind our table.

Such a library has one function and does not describe it: the file gives the name, the caller the types. Each result is
checked against these types (native/runtime/src/arroyo), so that a wrong type is an error of rows and not a crash.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from .. import abi
from .._native import import_arroyo, open_arroyo
from ..abi import ffi
from ..errors import InvalidArgument, LoadError

Types: TypeAlias = pa.Schema | Sequence[pa.DataType | pa.Field]

_constants: list[Any] = []  # descriptors: libraries, which are never unloaded, point to them


def open_library(path: str, arguments: Types, returns: pa.DataType | pa.Field) -> tuple[Any, Any, int]:
    """The table, the descriptor and the number of the library's function.

    Raises LoadError if the file is no such library, InvalidArgument for values that are not Arrow types.
    """
    file = path.encode()
    try:
        kind = open_arroyo(file)
    except OSError as error:
        raise LoadError(f"{path}: {error}") from None
    fields = [_field(f"argument_{i}", type_) for i, type_ in enumerate(arguments)]
    if kind == abi.SYNC and not fields:
        raise InvalidArgument(f"{path}: a sync function has at least one argument; give its type in `arguments`")
    name = Path(path).name.split(".")[0].removeprefix("lib")
    descriptor = _descriptor(name, path, kind, pa.schema(fields), _field("", returns))
    try:
        table, number = import_arroyo(file, abi.address(descriptor))
    except ValueError as error:
        raise InvalidArgument(f"{path}: {error}") from None
    return ffi.cast("arroyo_udf_table *", table), descriptor, number


def _field(name: str, given: pa.DataType | pa.Field) -> pa.Field:
    """A type alone means not nullable: the function is not called for nulls (F3)."""
    if isinstance(given, pa.Field):
        return given
    if isinstance(given, pa.DataType):
        return pa.field(name, given, nullable=False)
    raise InvalidArgument(f"{given!r} is not an Arrow type; give types such as pa.int64(), or fields")


def _descriptor(name: str, path: str, kind: int, arguments: pa.Schema, returns: pa.Field) -> Any:
    texts = {key: ffi.new("char[]", value.encode()) for key, value in _about(name, path).items()}
    schemas = [ffi.new("struct ArrowSchema *") for _ in range(2)]
    for what, schema in zip((arguments, returns), schemas, strict=True):
        what._export_to_c(abi.address(schema))
    options = ffi.new("arroyo_udf_options *", {"size": ffi.sizeof("arroyo_udf_options")})
    function = ffi.new("arroyo_udf_function *", {"size": ffi.sizeof("arroyo_udf_function")})
    function.name, function.kind = texts["name"], kind
    function.arguments, function.returns = schemas
    function.options = ffi.NULL if kind == abi.SYNC else options
    functions = ffi.new("arroyo_udf_function *[]", [function])
    descriptor = ffi.new("arroyo_udf_descriptor *", {"size": ffi.sizeof("arroyo_udf_descriptor"), "n_functions": 1})
    for key, value in texts.items():
        setattr(descriptor, key, value)
    descriptor.functions = functions
    _constants.extend([texts, schemas, options, function, functions, descriptor])
    return descriptor


def _about(name: str, path: str) -> dict[str, str]:
    """The descriptor's texts."""
    key = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return {"name": name, "language": "arroyo", "toolkit_version": "unknown", "hash": key}


def hint(path: str) -> str | None:
    """How to load a file that is not a plugin; None if it is not a library for the Arroyo engine either."""
    try:
        open_arroyo(path.encode())
    except OSError:
        return None
    return (
        "has only the Arroyo engine's symbols, which do not describe types: give them, as in "
        "load(path, arguments=[pa.int64()], returns=pa.int64())"
    )
