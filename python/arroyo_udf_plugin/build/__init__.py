"""From one source file to one shared library.

__init__.py   build(): picks the language by file ending
cache.py      what a library is named by (everything it depends on), and where it is kept
python.py, rust.py, c.py   per language: `inputs`, what it depends on, and `compile`
metadata.py, rust_source.py   what stands at the head of a source
requirements.py   the packages of a Python source, and the file that keeps their versions
templates/    the C side of a Python plugin
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

    out: the library to write; beside the source, with the ending .so, if None. It is replaced in one step, so that
    processes that have the former one open are not disturbed.
    locked: take dependencies as the lock file beside the source has them, and refuse where that is missing or stale.
    offline: download nothing.
    arroyo: the function that the library also exports for the Arroyo engine; None: the source's only one. C: none.
    arroyo_on_error: what becomes of a failed row there: "fail" ends the job, with its text on stderr; "null".
    What was built before from the same source, with the same tools, comes from a cache.
    Raises BuildError, where it can with file, line and what to write instead.
    """
    import importlib
    from pathlib import Path

    from . import cache

    source = Path(source).resolve()
    language = _LANGUAGES.get(source.suffix)
    if language is None:
        raise BuildError(f"a source ends in {', '.join(_LANGUAGES)}, and not in {source.suffix!r}", str(source))
    if not source.is_file():
        raise BuildError("there is no such file", str(source))
    out = source.with_suffix(".so") if out is None else Path(out).resolve()
    toolchain: cache.Toolchain = importlib.import_module(f".{language}", __name__)
    how, exports = cache.Resolution(locked, offline), cache.Arroyo(arroyo, arroyo_on_error)
    cache.place(cache.artifact(source, toolchain, how, exports), out)
    return out
