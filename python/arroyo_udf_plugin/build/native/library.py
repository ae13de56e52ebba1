"""The functions of a file that were compiled, each once for each list of kinds of arguments."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .facts import Facts
from .values import NotNative, Variable

MOST_SPECIALISATIONS = 50
"""Of the functions of a file, by the kinds of their arguments: more is a mistake of the file, or of ours."""

Compiler: TypeAlias = "Callable[[Library, ast.FunctionDef, Sequence[Variable], Variable | None], FunctionInC]"


@dataclass
class FunctionInC:
    """A function in C. name: in C. returns: the kind of its result, and whether it may be None."""

    name: str
    returns: Variable
    code: str


@dataclass
class Library:
    """All functions of a file that have been compiled so far, in an order in which C can read them. compiler: compiles
    one of them."""

    facts: Facts
    compiler: Compiler
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    functions: dict[tuple[str, tuple[Variable, ...], Variable | None], FunctionInC] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    _compiling: list[str] = field(default_factory=list)

    def function(
        self, name: str, arguments: Sequence[Variable], line: int, declared: Variable | None = None
    ) -> FunctionInC:
        """The function for arguments of these kinds. line: of the call. declared: see FunctionCompiler. Raises
        NotNative."""
        key = (name, tuple(arguments), declared)
        if (known := self.functions.get(key)) is not None:
            return known
        if name in self._compiling:
            raise NotNative(f"`{name}` calls itself", line)
        if len(self.functions) >= MOST_SPECIALISATIONS:
            raise NotNative("too many functions with different kinds of arguments are called", line)
        self._compiling.append(name)
        try:
            compiled = self.compiler(self, self.facts.functions[name], arguments, declared)
        finally:
            self._compiling.remove(name)
        self.functions[key] = compiled
        return compiled

    def constant_data(self, lines: str) -> str:
        """Adds constant data to the file: `{name}` in it stands for the name that is answered."""
        name = f"data_{next(self.numbers)}"
        self.data.append(lines.replace("{name}", name))
        return name
