"""The source of a function that lives in a notebook: its definition, and what it uses of this and other cells.

    a module, or something that a module has       imported
    a function, a class, a type of any cell        its statement, and what that uses
    what this cell assigns                         the same
    a number, a text, or a collection of these     its value now

Nothing else of a cell is taken, so that a build executes neither the cell's calls nor `build` itself.
"""

import ast
import builtins
import linecache
import symtable
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..author.udf import Udf
from ..errors import BuildError

_GIVEN = {*vars(builtins), "__name__", "__file__", "__doc__"}
"""What a module has without defining it."""
_FUTURE_ANNOTATIONS = 0x1000000  # __future__.CO_FUTURE_ANNOTATIONS


@contextmanager
def file_of(function: Callable[..., Any]) -> Iterator[tuple[Path, Path]]:
    """The file to build for a function, and the path that it stands for: the same, unless the function is in a cell.

    Raises BuildError: the function is not decorated, or the source of something that it uses is unknown.
    """
    if not isinstance(function, Udf):
        raise BuildError(f"build({getattr(function, '__name__', function)}): decorate it with @udf")
    code = function.definition.__code__
    if Path(code.co_filename).is_file():
        yield Path(code.co_filename).resolve(), Path(code.co_filename).resolve()
        return
    name = function.__name__
    text = _Gathered(name, code, function.definition.__globals__).text()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / f"{name}.py"
        file.write_text(text, "utf-8")
        try:
            yield file, Path.cwd() / file.name
        except BuildError as error:
            said = str(error).removeprefix(f"{file}:").removeprefix(f"{error.line}:").lstrip()
            raise BuildError(f"build({name}): {said}") from None


class _Gathered:
    """The statements that a function needs, each after those that it uses."""

    def __init__(self, name: str, code: types.CodeType, values: dict[str, Any]) -> None:
        self.name = name
        self.values = values
        self.cell = _cell(code.co_filename)
        self.future = bool(code.co_flags & _FUTURE_ANNOTATIONS)
        self.seen = {name}
        self.statements: list[str] = []
        definition = _definition(self.cell, name, code.co_firstlineno)
        if definition is None:
            unknown = "is unknown, because it was made at a prompt or by exec: write it into a file"
            raise BuildError(f"the source of {name!r} {unknown}")
        self.take(definition)

    def text(self) -> str:
        return "\n\n".join(["from __future__ import annotations"] * self.future + self.statements) + "\n"

    def take(self, statement: str) -> None:
        for name in sorted(_used(statement) - self.seen - _GIVEN):
            self.seen.add(name)
            self.find(name)
        if statement not in self.statements:
            self.statements.append(statement)

    def find(self, name: str) -> None:
        value = self.values.get(name)
        statement = None if value is None else _import(name, value)
        if not statement and name in self.values and _is_plain(value):
            statement = f"{name} = {value!r}"
        if not statement and (here := _assignment(self.cell, name)):
            return self.take(here)
        if not statement and (code := _code(value)) is not None:
            statement = _definition(_cell(code.co_filename), code.co_name, code.co_firstlineno)
        if not statement and (isinstance(value, type) or hasattr(value, "__origin__")):
            statement = _type(name)
        if not statement:
            what = "is not defined" if name not in self.values else f"cannot be taken along: {value!r}"
            raise BuildError(
                f"build({self.name}): {name!r}, which it uses, {what}; define it in the cell of {self.name!r}"
            )
        self.take(statement)


def _cell(file: str) -> ast.Module:
    """The cell that Python keeps for tracebacks; empty if there is none."""
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])
    for node in tree.body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        lines = text.splitlines()[first - 1 : node.end_lineno]
        node.source, node.first = "\n".join(lines), first  # type: ignore[attr-defined]
    return tree


def _definition(cell: ast.Module, name: str, line: int) -> str | None:
    """The `def` of this name that begins in this line. From 3.13 on Python keeps a text for `<string>`, too, which may
    be another's."""
    for node in cell.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.name, node.first) == (name, line):  # type: ignore[union-attr]
            return str(node.source)  # type: ignore[union-attr]
    return None


def _assignment(cell: ast.Module, name: str) -> str | None:
    """The last statement of the cell that gives the name its value."""
    for node in reversed(cell.body):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Expr) and name in _bound(node.source):  # type: ignore[attr-defined]
            return str(node.source)  # type: ignore[attr-defined]
    return None


def _type(name: str) -> str | None:
    """The statement of the latest cell that defines a class, or a name such as Annotated[int, ...]. Unlike functions,
    these do not know their cell."""
    cells = (_cell(file) for file in reversed(list(linecache.cache)) if not Path(file).is_file())
    return next(filter(None, (_assignment(cell, name) for cell in cells)), None)


def _import(name: str, value: Any) -> str | None:
    """The import of a module, or of what a module has under its own name."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}" if value.__name__ in sys.modules else None
    module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(own, str) or module == "__main__":
        return None
    there = getattr(sys.modules.get(module), own, None)
    return f"from {module} import {own} as {name}" if there is value else None


def _code(value: Any) -> types.CodeType | None:
    """The code of a function, which knows its cell."""
    return getattr(value.definition if isinstance(value, Udf) else value, "__code__", None)


def _is_plain(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _used(statement: str) -> set[str]:
    """The global names that a statement uses and does not bind."""
    return _names(statement, lambda symbol: symbol.is_referenced()) - _bound(statement)


def _bound(statement: str) -> set[str]:
    symbols = symtable.symtable(statement, "<cell>", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _names(statement: str, of: Callable[[symtable.Symbol], bool]) -> set[str]:
    names = set[str]()
    left = [symtable.symtable(statement, "<cell>", "exec")]
    while left:
        table = left.pop()
        left += table.get_children()
        for symbol in table.get_symbols():
            if (table.get_type() == "module" or symbol.is_global()) and of(symbol):
                names.add(symbol.get_name())
    return names
