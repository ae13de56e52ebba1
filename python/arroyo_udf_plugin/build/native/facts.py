"""What a source says of its module: constants, functions and imported modules that compiled code may rely upon.

A name counts only if the module binds it once, at its top level, and nothing in the file can bind it again. What other
modules change is not seen (docs/native.md).
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Collection, Mapping

from .values import Constant

_REBINDS = {
    "globals",
    "setattr",
    "delattr",
    "exec",
    "eval",
    "vars",
    "locals",
    "breakpoint",
    "__import__",
    "__builtins__",
}
"""Whoever uses one of these may rebind any name."""
_REBINDING_ATTRIBUTES = {"__dict__", "__globals__", "__builtins__", "modules"}
DATETIME_CLASSES = ("date", "datetime", "timedelta")
MATH_CONSTANTS = {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}

Table = Mapping[Constant, Constant] | frozenset[Constant] | tuple[Constant, ...]


class Facts:
    """Of one file. functions: those that are defined with `def`, by their names. constants: by their names. tables:
    dicts, sets and tuples of constants. modules: name -> the module math or datetime that it is. math_functions and
    datetime_classes: name -> what it is in these modules. rebinds: what in the file may rebind names, and its line;
    None: nothing. catches: whether something in it catches what is raised."""

    def __init__(self, tree: ast.Module, decorated: Collection[str] = ()) -> None:
        """decorated: functions whose only decorator is @udf, which changes no call."""
        self._decorated = decorated
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, Constant] = {}
        self.tables: dict[str, Table] = {}
        self.modules: dict[str, str] = {}
        self.math_functions: dict[str, str] = {}
        self.datetime_classes: dict[str, str] = {}
        self.rebinds: tuple[str, int] | None = None
        self.catches = any(isinstance(node, ast.Try) for node in ast.walk(tree))
        self._bound = _bindings(tree)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        self._imported = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
        self._look_for_rebinding(tree)
        for statement in tree.body:
            self._add(statement)

    def is_builtin(self, name: str) -> bool:
        """Whether the name means what it means in builtins."""
        return name not in self._bound and hasattr(builtins, name)

    def _once(self, name: str) -> bool:
        return self._bound.get(name) == 1

    def _add(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef) and self._once(statement.name):
            if not statement.decorator_list or statement.name in self._decorated:
                self.functions[statement.name] = statement
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name
                if alias.name in ("math", "datetime") and self._once(name):
                    self.modules[name] = alias.name
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            self._import(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._constant(statement.targets[0], statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._constant(statement.target, statement.value)

    def _import(self, statement: ast.ImportFrom) -> None:
        for alias in statement.names:
            name = alias.asname or alias.name
            if not self._once(name):
                continue
            if statement.module == "datetime" and alias.name in DATETIME_CLASSES:
                self.datetime_classes[name] = alias.name
            elif statement.module == "math" and alias.name in MATH_CONSTANTS:
                self.constants[name] = MATH_CONSTANTS[alias.name]
            elif statement.module == "math":
                self.math_functions[name] = alias.name

    def _constant(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name) or not self._once(target.id):
            return
        found = stated(value)
        if isinstance(found, bool | int | float | str):
            self.constants[target.id] = found
        elif (table := table_of(found)) is not None and self._is_only_read(target.id):
            self.tables[target.id] = table

    def _is_only_read(self, name: str) -> bool:
        """Whether the file only looks into this table."""
        return name not in self._handed_out

    def _look_for_rebinding(self, tree: ast.Module) -> None:
        self._handed_out = set[str]()
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                for name in node.names:
                    self._bound[name] = 2
            elif isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                self.rebinds = self.rebinds or (f"`from {node.module} import *`", node.lineno)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in _REBINDS:
                    self.rebinds = self.rebinds or (f"`{node.id}`", node.lineno)
                if not _only_looks(node, parents[node]):
                    self._handed_out.add(node.id)
            elif isinstance(node, ast.Attribute) and self._is_rebinding(node):
                self.rebinds = self.rebinds or (f"`{ast.unparse(node)}`", node.lineno)

    def _is_rebinding(self, node: ast.Attribute) -> bool:
        """Whether an attribute is one through which names change, or is assigned in a module."""
        is_assigned = not isinstance(node.ctx, ast.Load) and self._is_module(node.value)
        return node.attr in _REBINDING_ATTRIBUTES or is_assigned

    def _is_module(self, node: ast.expr) -> bool:
        """Whether an expression may be a module, or something in it."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._imported


def _only_looks(node: ast.expr, parent: ast.AST) -> bool:
    """Whether a use of a table cannot change it, or give it to something that can."""
    if isinstance(parent, ast.Subscript):
        return parent.value is node and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Compare):
        return True
    if isinstance(parent, ast.Attribute):
        return parent.attr == "get"
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id == "len"
    return False


def stated(value: ast.expr) -> object:
    """What an expression of literals means; an object of no use if it is none."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "frozenset":
        value = value.args[0] if len(value.args) == 1 and not value.keywords else value
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return object()


def table_of(found: object) -> Table | None:
    """A table of constants: what it is to compiled code. None: it is none."""
    if isinstance(found, tuple) and all(_is_constant(item) for item in found):
        return found
    if isinstance(found, set) and all(_is_constant(item) for item in found):
        return frozenset(found)
    if isinstance(found, dict) and all(_is_constant(item) for pair in found.items() for item in pair):
        return found
    return None


def _is_constant(found: object) -> bool:
    return found is None or isinstance(found, bool | int | float | str)


def _bindings(tree: ast.Module) -> dict[str, int]:
    """How often the module binds each name of its own."""
    found: dict[str, int] = {}

    def bind(name: str) -> None:
        found[name] = found.get(name, 0) + 1

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bind(node.name)
            for decorator in node.decorator_list:
                visit(decorator)
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bind(node.id)
        elif isinstance(node, ast.alias):
            bind((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bind(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bind(node.rest)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in tree.body:
        visit(statement)
    return found
