"""From one source file to one shared library.

__init__.py                  build(), plugin_for(): pick the language by file ending
cache.py                     a library's key (a hash of all that it depends on) and its place
storage.py                   how much the cache holds, and deleting it
python.py, rust.py, c.py     per language: `inputs`, which it depends on, and `compile`
inner.py                     the part of a Python plugin that needs libpython, compiled once for all of them
declared.py                  what a Python source declares, as the functions of a descriptor
engines.py                   the entry points of DuckDB, Polars, Daft and SQLite, in every library
duckdb_file.py               what else makes a library a file that DuckDB loads
tools.py                     running compilers
metadata.py, rust_source.py  the block or comment at the head of a source
siblings.py                  the modules that a Python source imports from its folder
cell.py                      the source of a function that lives in a notebook
requirements.py              the packages of a Python source, and their lock file; packages.py: their versions here
native/                      functions of a Python source, compiled to C
templates/                   the C side of a Python plugin; what `arroyo-udf new` writes

Guarantees: a library appears in one step, complete or not at all; a build that is repeated comes from the cache. Uses
plugin/module.py to read Python sources, author/, abi.py and errors.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ..errors import BuildError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from . import cache

_LANGUAGES = {".py": "python", ".rs": "rust", ".c": "c"}


def build(
    source: str | os.PathLike[str] | Callable[..., Any],
    out: str | os.PathLike[str] | None = None,
    *,
    locked: bool = False,
    offline: bool = False,
    arroyo: str | None = None,
    on_error: Literal["fail", "null"] = "fail",
    no_python: bool = False,
) -> Path:
    """Builds the plugin of a source file (.py, .rs or .c) and returns the path of the shared library.

    source: or a function with @udf. Its plugin is made of the file that defines it; in a notebook, of the function and
        what it uses of the cells (imports, functions, classes, constants), and is named after the function.
    out: the library to write; None: libudf.so beside udf.py, or in the current folder for a cell. It is replaced in one
        step, which does not disturb processes that have loaded the former one. Without `out`, only a library of the
        same source is replaced.
    locked: take dependencies from the lock file beside the source; refuse if it is missing or stale.
    offline: download nothing.
    arroyo: the function to export for the Arroyo engine, too; None: the source's only function. Not for C.
    on_error: what becomes of a row that failed, in Arroyo and in other engines: "fail" ends the job or the query with
        its text, "null" gives null.
    no_python: make a library without Python, of functions that are all native; rows that only Python could run fail.
        Not for Arroyo.
    The same source built with the same tools comes from a cache.
    Raises BuildError, if possible with file, line and what to write instead.
    """
    from pathlib import Path

    from . import cache

    how, exports = cache.Resolution(locked, offline), cache.Exports(arroyo, on_error, no_python)
    if callable(source):
        from . import cell

        with cell.file_of(source) as (file, stands_for):
            folder = Path.cwd() if file != stands_for else None
            return _build(file, stands_for, out, cache.Resolution(locked, offline, folder), exports)
    source = Path(source).resolve()
    return _build(source, source, out, how, exports)


def _build(source: Path, stands_for: Path, out: Any, how: cache.Resolution, exports: cache.Exports) -> Path:
    """stands_for: the path of the source as the user sees it."""
    from pathlib import Path

    from . import cache

    chosen = stands_for.with_name(f"lib{stands_for.stem}.so") if out is None else Path(out).resolve()
    unwritable = f"{chosen} cannot be written; -o names another library"
    if out is None:
        with cache.build_errors(source, unwritable):
            cache.check_source(chosen, stands_for)
    library = _artifact(source, how, exports)
    with cache.build_errors(source, unwritable):
        cache.place(library, stands_for, chosen)
    return chosen


def plugin_for(source: Path) -> Path:
    """The plugin of a source, built if it is new or has changed; any other file is one itself.

    The plugin stays in the cache and does not appear beside the source. Raises BuildError.
    """
    if source.suffix not in _LANGUAGES:
        return source
    from . import cache

    source = source.resolve()
    library = _artifact(source, cache.Resolution(), cache.BY_DEFAULT)
    with cache.build_errors(source, cache.UNUSABLE.format(folder=cache.folder())):
        placed = cache.place_of(source)
        cache.place(library, source, placed)
    return placed


def _artifact(source: Path, how: cache.Resolution, exports: cache.Exports) -> Path:
    import importlib

    from . import cache

    language = _LANGUAGES.get(source.suffix)
    if language is None:
        raise BuildError(f"a source ends in {', '.join(_LANGUAGES)}, not in {source.suffix!r}", str(source))
    if not source.is_file():
        raise BuildError("there is no such file", str(source))
    with cache.build_errors(source, "it cannot be read"):
        source.open("rb").close()
    toolchain: cache.Toolchain = importlib.import_module(f".{language}", __name__)
    with cache.build_errors(source, cache.UNUSABLE.format(folder=cache.folder())):
        return cache.artifact(source, toolchain, how, exports)
