"""Loading plugins: dlopen, the checks of table and descriptor, and the plugin's functions.

    plugin = load("libmine.so")
    plugin.functions["mph"](distance, air_time)              a sync function: arrays in, array out
    with plugin.functions["plane"].start() as runtime: ...   an async function, see runtime.py

Guarantees: data of a plugin is checked before use, as far as C allows: pointers are not NULL, texts end and are UTF-8,
counts are small; otherwise an AbiError names the culprit. Plugins are never unloaded.
"""

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Self

import pyarrow as pa

from .._native import close_instance
from ..abi import (
    ABI_VERSION,
    AGGREGATE,
    ASYNC,
    MAGIC,
    MAGIC_OF_DRAFTS,
    STEP,
    SYMBOL,
    SYNC,
    TABLE,
    TABLE_SIZE_1,
    address,
    ffi,
    known,
    known_table,
    printable,
)
from ..errors import AbiError, InvalidArgument, LoadError, UnsupportedCall
from . import imported, installed, isolation
from .aggregate import STEPS, Aggregate
from .function import Function, Uncallable
from .html import as_html
from .isolation import Isolation, Where
from .native import natives_of

_OPEN = ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE
_MOST_FUNCTIONS = 1 << 16
_CALLED = (SYNC, ASYNC, TABLE, STEP)
_SOURCES = (".py", ".rs", ".c")
_opened_files: dict[str, list[tuple[int, int]]] = {}
"""Device and inode of each file that was at a path. A library stays open, so no other file gets its inode."""


class _Functions(dict[str, Function]):
    """Functions by name. A KeyError says what there is."""

    def __init__(self, plugin: str) -> None:
        super().__init__()
        self._plugin = plugin

    def __missing__(self, name: str) -> Function:
        raise KeyError(f"plugin {self._plugin!r} has no function {name!r}; it has {', '.join(self) or 'none'}")


class Plugin:
    """A loaded plugin.

    path: its file, absolute. functions: by name.
    name, language, hash, toolkit_version, abi_version: from its descriptor and table. `language` is "python", "rust",
        "c", or "arroyo" for a library that was built for that engine; `hash` identifies the source and the build.
    isolation: where its functions run. With workers, close the plugin when it is not needed any more: `with load(...)`.
    """

    path: str
    name: str
    language: str
    hash: str
    toolkit_version: str
    abi_version: int
    functions: Mapping[str, Function]
    isolation: Isolation

    def __init__(
        self,
        path: str | os.PathLike[str],
        arguments: imported.Types | None = None,
        returns: pa.DataType | pa.Field | None = None,
        validate: bool = False,
        where: Where | None = None,
    ) -> None:
        where = where or Where()
        self.path = os.path.abspath(path)
        self.isolation = where.isolation
        first, foreign = 0, None
        self._close: Callable[[], None] | None = None
        if arguments is not None and returns is not None:
            _refuse_plugin(self.path)
            self._table, foreign, first = imported.open_library(self.path, arguments, returns)
        else:
            self._table = self._own_table()
        self.abi_version = self._table.abi_version
        try:
            described = _checked_descriptor(self._table) if foreign is None else foreign
            self.name = printable(described.name, "the plugin's name")
            self.language = printable(described.language, "the plugin's language")
            self.hash = printable(described.hash, "the plugin's hash")
            self.toolkit_version = printable(described.toolkit_version, "the toolkit's version")
            if where.isolation != "thread":
                self._table, first = isolation.open_isolated(self.path, self._table, where)
                self._close = partial(close_instance, first, described.n_functions)
            functions = _Functions(self.name)
            here = address(self._table.describe()) if where.isolation == "thread" and foreign is None else None
            may_be_native = here is not None and self.language == "python"
            told = natives_of(self._table, described.n_functions) if may_be_native else None
            every = []
            for number in range(described.n_functions):
                description = known(described.functions[number], f"function number {number}")
                kind = (
                    Aggregate
                    if description.kind == AGGREGATE
                    else Function
                    if description.kind in _CALLED
                    else Uncallable
                )
                function = kind(self._table, first + number, description, self.name, self.hash, validate, here)
                if told is not None and number < len(told):
                    function.take_native(told[number])
                every.append((function, description.first_step))
            for function, first_step in every:
                if isinstance(function, Aggregate):
                    function.take_steps([step for step, _ in every[first_step : first_step + len(STEPS)]])
                if function.kind == "step":
                    continue
                if function.name in functions:
                    raise AbiError(f"two functions have the name {function.name!r}")
                functions[function.name] = function
        except AbiError as error:
            raise AbiError(f"{self.path}: {error}") from None
        self.functions = MappingProxyType(functions)
        self._opened_as = _name(self.path)
        self._reopening = self.path, self.hash, arguments, returns, validate
        if where.isolation == "thread":
            for function in functions.values():
                function.reopening = _reopened_function, (function.name, *self._reopening)

    def _own_table(self) -> Any:
        try:
            self._library, table = _opened(self.path)
        except AbiError:
            raise
        except LoadError as error:
            if hint := imported.hint(self.path):
                raise LoadError(f"{self.path}: {hint}") from None
            raise error
        return table

    def exports(self, symbol: str) -> bool:
        """Whether its library has this symbol."""
        return hasattr(ctypes.CDLL(self._opened_as), symbol)  # it is loaded already

    def close(self) -> None:
        """Ends the workers of a plugin in isolation; its functions then raise InvalidState. Without isolation it does
        nothing: libraries are never unloaded. A second call does nothing."""
        if self._close is not None:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        if self.isolation != "thread":
            raise UnsupportedCall(f"{self.path}: a plugin with workers stays in its process; load it where it is used")
        return _reopened, self._reopening

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html(f"{self.language} plugin {self.name}", self.functions.values())

    def __repr__(self) -> str:
        return f"<{self.language} plugin {self.name}: {', '.join(self.functions)}>"


def load(
    path: str | os.PathLike[str],
    *,
    arguments: imported.Types | None = None,
    returns: pa.DataType | pa.Field | None = None,
    validate: bool = False,
    isolation: Isolation = "thread",
    workers: int | Literal["auto"] = 1,
    memory_limit: int | None = None,
    cpu_limit: int | None = None,
) -> Plugin:
    """Opens a plugin, checks it and reads its descriptor. Runs no user code and starts no interpreter.

    path: of the library; or the name of an installed plugin (`arroyo-udf install`), if there is no file of this name.

    The host does not trust a plugin: it checks the descriptor here, and each status and result later. An AbiError says
    what breaks the contract. Some mistakes cannot be seen from here and may end the process: a plugin that writes to
    memory that is not its own, pointers that lead nowhere, buffers shorter than the lengths claim, texts without an
    end, a release callback that fails, a slot that does not return.

    arguments, returns: only for a library that was built for the Arroyo engine, which does not describe its types.
        `arguments`: an Arrow schema, or a list of types or fields; `returns`: a type or a field. A type alone means
        not nullable: the function is not called for nulls. The library's one function is named after the file,
        without "lib" and from the first dot on.
    validate: also check every value of every result: that texts are UTF-8, decimals within their precision, and so on.
        Without it the structure is checked, offsets included, and the texts of errors.
    isolation: where the functions run. "thread": in this interpreter. "subinterpreter": in others, with a lock of their
        own each. "process": in worker processes, which may crash: that costs the row in hand. See docs/isolation.md.
    workers: how many interpreters or processes; "auto": one per core.
    memory_limit, cpu_limit: of each worker process: bytes of its own memory, seconds of processor time.
    Raises LoadError if the file is not a plugin, AbiError if it breaks the contract, InvalidArgument if only one of
    `arguments` and `returns` is given, or a value that is not an Arrow type.
    """
    if installed.NAME.fullmatch(os.fspath(path)) and not os.path.exists(path):
        path = installed.find(os.fspath(path)).library
    if (arguments is None) != (returns is None):
        raise InvalidArgument(f"{os.fspath(path)}: give both `arguments` and `returns`, or neither")
    where = Where(isolation=isolation, workers=workers, memory_limit=memory_limit, cpu_limit=cpu_limit)
    if arguments is not None and isolation != "thread":
        raise InvalidArgument(
            f"{os.fspath(path)}: a library that was built for the Arroyo engine runs in threads alone"
        )
    return Plugin(path, arguments, returns, validate, where)


def _reopened(
    path: str, hash: str, arguments: Any = None, returns: pa.DataType | pa.Field | None = None, validate: bool = False
) -> Plugin:
    """A pickled plugin. Raises LoadError if the file is another one now."""
    plugin = Plugin(path, arguments, returns, validate)
    if plugin.hash != hash:
        raise LoadError(f"{path}: is not the plugin that was pickled, but another one; load it anew")
    return plugin


def _reopened_function(name: str, *plugin: Any) -> Function:
    return _reopened(*plugin).functions[name]


# ---- Open and check --------------------------------------------------------------------------------------------------


def _opened(path: str) -> tuple[Any, Any]:
    """Opens a library and checks its table. Returns (library, table); raises LoadError or AbiError."""
    if not os.path.exists(path):
        raise LoadError(f"{path}: there is no such file")
    try:
        library = ffi.dlopen(_name(path), _OPEN)
    except OSError as error:
        if path.endswith(_SOURCES):
            raise LoadError(
                f"{path}: is a source, not a plugin: build it, with `arroyo-udf build {os.path.basename(path)}` or"
                " build(), and take the library"
            ) from None
        reason = str(error).partition("': ")[2] or str(error)
        reason = reason.removeprefix(f"{path}: ")  # said by cffi and by the system
        raise LoadError(f"{path}: cannot be opened as a shared library: {reason}") from None
    try:
        table = ffi.addressof(getattr(library, SYMBOL))
    except ffi.error:
        raise LoadError(f"{path}: exports no symbol {SYMBOL!r}, so it is not a plugin") from None
    if table.magic == MAGIC_OF_DRAFTS:
        raise AbiError(f"{path}: was built before ABI version 1 was final: build the plugin again")
    if table.magic != MAGIC:
        raise AbiError(f"{path}: the table begins with {table.magic:#x}, and a plugin's begins with {MAGIC:#x}")
    if table.abi_version != ABI_VERSION:
        raise AbiError(
            f"{path}: has ABI version {table.abi_version}, and this host speaks version {ABI_VERSION}: build the "
            "plugin again with the installed toolkit"
        )
    if table.table_size < TABLE_SIZE_1:
        raise AbiError(
            f"{path}: the table has {table.table_size} bytes, and ABI version {ABI_VERSION} has {TABLE_SIZE_1}: it is "
            "truncated"
        )
    table = known_table(table)
    for slot, field in ffi.typeof("arroyo_udf_table").fields:
        is_slot = field.type.kind == "function" and field.offset < TABLE_SIZE_1
        if is_slot and getattr(table, slot) == ffi.NULL:
            raise AbiError(f"{path}: slot {slot!r} of the table is NULL")
    return library, table


def _name(path: str) -> str:
    """The path; if another library was there before, under a name that the loader does not know yet, because it would
    answer that one. So a function that was built again is called, as in a notebook."""
    file = os.stat(path)
    files = _opened_files.setdefault(path, [])
    if (file.st_dev, file.st_ino) not in files:
        files.append((file.st_dev, file.st_ino))
    folder, name = os.path.split(path)
    return os.path.join(folder, "./" * files.index((file.st_dev, file.st_ino)) + name)


def _checked_descriptor(table: Any) -> Any:
    """The descriptor, with its counts and pointers checked. Raises AbiError."""
    descriptor = table.describe()
    if descriptor == ffi.NULL:
        raise AbiError("describe answers NULL")
    descriptor = known(descriptor, "the descriptor")
    if descriptor.n_functions > _MOST_FUNCTIONS:
        raise AbiError(f"the descriptor has {descriptor.n_functions} functions, more than {_MOST_FUNCTIONS}")
    if descriptor.n_functions and descriptor.functions == ffi.NULL:
        raise AbiError("the descriptor's functions are NULL")
    for number in range(descriptor.n_functions):
        function = descriptor.functions[number]
        if function == ffi.NULL:
            raise AbiError(f"function number {number} is NULL")
        function = known(function, f"function number {number}")
        called = printable(function.name, f"the name of function number {number}")
        if function.kind not in (*_CALLED, AGGREGATE):
            continue
        if (function.options == ffi.NULL) != (function.kind != ASYNC):
            raise AbiError(f"function {called!r}: options belong to async functions, and to all of them")
        if function.kind == ASYNC:
            known(function.options, f"function {called!r}: the options")
    return descriptor


def _refuse_plugin(path: str) -> None:
    """Raises AbiError if the library is a plugin, which describes its own types."""
    try:
        _opened(path)
    except LoadError:
        return
    raise AbiError(f"{path}: is a plugin, which describes its own types: load it without arguments and returns")
