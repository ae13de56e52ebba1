"""What all parts of a compiler of expressions work with: the code so far, what is known of variables, values."""

from __future__ import annotations

import abc
import ast
from collections.abc import Sequence

from .code import Code
from .facts import stated, table_of
from .library import Library
from .literals import float_literal, integer_literal, text_literal
from .names import null_name, variable_name
from .values import C_TYPES, NONE, ZEROS, Kind, NotNative, Value, Variable, as_integer, joined


class FunctionBuilder(abc.ABC):
    """The code of one function while it grows. local: the names that the function binds."""

    def __init__(self, library: Library, code: Code, local: frozenset[str]) -> None:
        self.library = library
        self.facts = library.facts
        self.code = code
        self.local = local
        self.variables: dict[str, Variable] = {}

    @abc.abstractmethod
    def expression(self, node: ast.expr) -> Value:
        """The value of an expression, behind the lines that compute it. Raises NotNative."""

    # ---- Variables ---------------------------------------------------------------------------------------------------

    def set(self, name: str, value: Value) -> None:
        """Assigns a value."""
        is_null = null_name(name)
        self.code.declare(is_null, f"bool {is_null} = false;")
        if value.kind is Kind.NONE:
            self.code.add(f"{is_null} = true;")
            self.variables[name] = Variable(Kind.NONE)
            return
        variable = variable_name(name, value.kind)
        self.code.declare(variable, f"{C_TYPES[value.kind]} {variable} = {ZEROS[value.kind]};")
        self.code.add(f"{is_null} = {value.is_null or 'false'};")
        self.code.add(f"{variable} = {value.code};")
        self.variables[name] = Variable(value.kind, value.is_null is not None)

    def narrow(self, known: dict[str, bool]) -> None:
        """Notes which variables are None, and which are not. One that is never None stays what it is, because C has no
        place for whether it is."""
        for name, is_null in known.items():
            variable = self.variables.get(name)
            if variable is not None and (variable.may_be_null or variable.kind is Kind.NONE):
                self.variables[name] = Variable(Kind.NONE if is_null else variable.kind)

    def name(self, name: str, line: int) -> Value:
        """The value of a name."""
        if name in self.local:
            variable = self.variables.get(name)
            if variable is None:
                raise NotNative(f"{name!r}, which may have no value there,", line)
            if variable.unclear:
                raise NotNative(variable.unclear, line)
            if variable.kind is Kind.NONE:
                return NONE
            return Value(
                variable.kind,
                variable_name(name, variable.kind),
                null_name(name) if variable.may_be_null else None,
            )
        if name in self.facts.constants:
            return self.constant(self.facts.constants[name], line)
        if name in self.facts.tables:
            raise NotNative(f"the whole of {name!r}", line)
        raise NotNative(f"the name {name!r}, which is not a constant of the module,", line)

    def kept(self, value: Value) -> Value:
        """The value, where an assignment to a variable does not change it."""
        if value.is_constant or value.kind is Kind.NONE:
            return value
        copy = self.code.result(value.kind, value.code)
        if value.is_null is None:
            return copy
        is_null = self.code.result(Kind.BOOL, value.is_null)
        return Value(value.kind, copy.code, is_null.code)

    def required(self, value: Value, line: int) -> Value:
        """The value for something that None cannot do: if it is None, Python raises."""
        if value.kind is Kind.NONE:
            raise NotNative("what None cannot do", line)
        if value.is_null:
            self.code.defer_if(value.is_null)
        return value.required()

    def integer(self, value: Value, line: int) -> Value:
        """An INT, of a BOOL too."""
        value = self.required(value, line)
        if value.kind is Kind.BOOL:
            return as_integer(value)
        if value.kind is not Kind.INT:
            raise NotNative(f"{value.kind.value} instead of int", line)
        return value

    def text(self, value: Value, line: int) -> Value:
        """A TEXT."""
        value = self.required(value, line)
        if value.kind is not Kind.TEXT:
            raise NotNative(f"{value.kind.value} instead of str", line)
        return value

    def check_builtin(self, name: str, line: int) -> None:
        """Raises NotNative if the name may mean something else here."""
        if name in self.local or not self.facts.is_builtin(name):
            raise NotNative(f"`{name}`, which is not Python's own here,", line)

    # ---- Values ------------------------------------------------------------------------------------------------------

    def constant(self, constant: object, line: int) -> Value:
        """The value of a constant."""
        match constant:
            case None:
                return NONE
            case bool():
                return Value(Kind.BOOL, "true" if constant else "false", None, True, constant)
            case int():
                return Value(Kind.INT, integer_literal(constant, line), None, True, constant)
            case float():
                return Value(Kind.FLOAT, float_literal(constant), None, True, constant)
            case str():
                return Value(Kind.TEXT, text_literal(constant, line), None, True, constant)
        raise NotNative(f"the constant {constant!r}", line)

    def same_kind(self, values: Sequence[Value], line: int) -> Kind:
        """The one kind of several values, None aside."""
        known = Variable(Kind.NONE)
        for value in values:
            known = joined(known, Variable(value.kind), "the value")
            if known.unclear:
                raise NotNative(known.unclear.removesuffix(","), line)
        return known.kind

    def truth(self, value: Value, line: int) -> str:
        """C for what `bool` makes of a value."""
        match value.kind:
            case Kind.NONE:
                return "false"
            case Kind.BOOL:
                code = value.code
            case Kind.INT | Kind.DELTA:
                code = f"{value.code} != 0"
            case Kind.DATE | Kind.DATETIME:
                code = "true"
            case Kind.FLOAT:
                code = f"{value.code} != 0.0"
            case Kind.TEXT:
                code = f"{value.code}.length != 0"
        return f"(!{value.is_null} && {code})" if value.is_null else f"({code})"

    def table(self, name: str) -> object | None:
        """The table of the module with this name; None: there is none, or the name is local."""
        return None if name in self.local else self.facts.tables.get(name)

    def table_of(self, node: ast.expr) -> object | None:
        """The table of constants that an expression is; None: it is none."""
        if isinstance(node, ast.Name):
            return self.table(node.id)
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            found = stated(node)
            return table_of(tuple(found) if isinstance(found, list) else found)
        return None
