"""From one source file to one shared library.

__init__.py                  build(): picks the language by file ending
cache.py                     a library's key (a hash of all that it depends on) and its place
python.py, rust.py, c.py     per language: `inputs`, which it depends on, and `compile`
metadata.py, rust_source.py  the block or comment at the head of a source
requirements.py              the packages of a Python source, and their lock file
templates/                   the C side of a Python plugin; what `arroyo-udf new` writes

Guarantees: a library appears in one step, complete or not at all; a build that is repeated comes from the cache. Uses
plugin/module.py to read Python sources, author/, abi.py and errors.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..errors import BuildError

if TYPE_CHECKING:
    import os
    from pathlib import Path

_LANGUAGES = {".py": "python", ".rs": "rust", ".c": "c"}


def build(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    locked: bool = False,
    offline: bool = False,
    arroyo: str | None = None,
    arroyo_on_error: Literal["fail", "null"] = "fail",
) -> Path:
    """Builds the plugin of a source file (.py, .rs or .c) and returns the path of the shared library.

    out: the library to write; None: beside the source, with the ending .so. It is replaced in one step, which does not
        disturb processes that have loaded the former one.
    locked: take dependencies from the lock file beside the source; refuse if it is missing or stale.
    offline: download nothing.
    arroyo: the function to export for the Arroyo engine, too; None: the source's only function. Not for C.
    arroyo_on_error: what happens to a failed row there: "fail" ends the job with its text on stderr, "null" gives null.
    The same source built with the same tools comes from a cache.
    Raises BuildError, if possible with file, line and what to write instead.
    """
    import importlib
    from pathlib import Path

    from . import cache

    source = Path(source).resolve()
    language = _LANGUAGES.get(source.suffix)
    if language is None:
        raise BuildError(f"a source ends in {', '.join(_LANGUAGES)}, not in {source.suffix!r}", str(source))
    if not source.is_file():
        raise BuildError("there is no such file", str(source))
    out = source.with_suffix(".so") if out is None else Path(out).resolve()
    toolchain: cache.Toolchain = importlib.import_module(f".{language}", __name__)
    how, exports = cache.Resolution(locked, offline), cache.Arroyo(arroyo, arroyo_on_error)
    cache.place(cache.artifact(source, toolchain, how, exports), out)
    return out
