"""The source of a function that lives in a notebook: its cell, as Python keeps it for tracebacks."""

import builtins
import linecache
import symtable
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..author.udf import Udf
from ..errors import BuildError

_GIVEN = {*vars(builtins), "__name__", "__file__", "__doc__", "__builtins__"}
"""What a module has without defining it."""


@contextmanager
def file_of(function: Callable[..., Any]) -> Iterator[tuple[Path, Path]]:
    """The file to build for a function, and the path that it stands for: the same, unless the function is in a cell.

    Raises BuildError: the function is not decorated, its source is unknown, or the cell uses what it does not define.
    """
    if not isinstance(function, Udf):
        raise BuildError(f"build({getattr(function, '__name__', function)}): decorate it with @udf")
    name = function.__name__
    shown = function.definition.__code__.co_filename
    if Path(shown).is_file():
        yield Path(shown).resolve(), Path(shown).resolve()
        return
    text = "".join(linecache.getlines(shown))
    if not text:
        raise BuildError(f"the source of {name!r} is unknown, because it was made at a prompt or by exec: write a file")
    if missing := sorted(_used_but_not_defined(text, shown)):
        raise BuildError(
            f"the cell of {name!r} uses {', '.join(missing)}, from other cells; a plugin is made of one cell: import "
            "and define them there"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / f"{name}.py"
        file.write_text(text, "utf-8")
        try:
            yield file, Path.cwd() / file.name
        except BuildError as error:
            where = f"the cell of {name}" if error.line is None else f"the cell of {name}, line {error.line}"
            said = str(error).removeprefix(f"{file}:").removeprefix(f"{error.line}:").lstrip()
            raise BuildError(f"{where}: {said}") from None


def _used_but_not_defined(text: str, shown: str) -> set[str]:
    used, defined = set[str](), set[str]()
    left = [symtable.symtable(text, shown, "exec")]
    while left:
        table = left.pop()
        left += table.get_children()
        for symbol in table.get_symbols():
            if table.get_type() != "module" and not symbol.is_global():
                continue
            if symbol.is_assigned() or symbol.is_imported():
                defined.add(symbol.get_name())
            elif symbol.is_referenced():
                used.add(symbol.get_name())
    return used - defined - _GIVEN
