"""Expressions of the subset: names, constants, conditions, comparisons, calls of functions.

What numbers and texts can do is in numbers.py and texts.py. Each expression is evaluated in Python's order, and what
Python would not evaluate is not evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import dates, mathematics, numbers, tables, texts
from .builder import FunctionBuilder
from .code import Code
from .equality import equal
from .facts import DATETIME_CLASSES, MATH_CONSTANTS
from .values import C_TYPES, NONE, NUMBERS, TIMES, ZEROS, Kind, NotNative, Value, Variable


@dataclass
class Condition:
    """Whether something is true. code: in C. when_true, when_false: the variables that are known to be None (True), or
    not to be (False), if it is."""

    code: str
    when_true: dict[str, bool] = field(default_factory=dict)
    when_false: dict[str, bool] = field(default_factory=dict)


class _Result:
    """A value that several ways give, each in a block of its own. What it is shows only behind the last one."""

    def __init__(self, code: Code) -> None:
        self.values: list[Value] = []
        self._code = code
        self._place, self._name, self._is_null = code.reserve(), code.name(), code.name()

    def store(self, value: Value) -> None:
        """Adds the lines with which a way gives this value."""
        self.values.append(value)
        null = "true" if value.kind is Kind.NONE else value.is_null or "false"
        self._code.add(f"{self._is_null} = {null};")
        if value.kind is not Kind.NONE:
            self._code.add(f"{self._name} = {value.code};")

    def value(self, kind: Kind) -> Value:
        """The value, of the one kind of all of them."""
        null = f"bool {self._is_null} = true;"
        if kind is Kind.NONE:
            self._code.fill(self._place, null)
            return NONE
        self._code.fill(self._place, f"{null} {C_TYPES[kind]} {self._name} = {ZEROS[kind]};")
        may_be_null = any(value.kind is Kind.NONE or value.is_null for value in self.values)
        return Value(kind, self._name, self._is_null if may_be_null else None)


class Expressions(FunctionBuilder):
    """The expressions of one function."""

    # ---- Expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Value:
        """The value of an expression."""
        match node:
            case ast.Constant(value=constant):
                return self.constant(constant, node.lineno)
            case ast.Name(id=name):
                return self.name(name, node.lineno)
            case ast.BinOp(left=left, op=op, right=right):
                one = self.expression(left)
                return self.operation(op, one, self.expression(right), node.lineno)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return Value(Kind.BOOL, self.condition(node).code)
            case ast.UnaryOp(op=op, operand=operand):
                return numbers.unary(self, op, self.expression(operand), node.lineno)
            case ast.BoolOp(op=op, values=values):
                return self._first(values, isinstance(op, ast.And), node.lineno)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse, node.lineno)
            case ast.JoinedStr(values=values):
                return texts.formatted(self, values, node.lineno)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if self._is_math(module):
                if name not in MATH_CONSTANTS:
                    raise NotNative(f"`math.{name}`", node.lineno)
                return self.constant(MATH_CONSTANTS[name], node.lineno)
            case ast.Attribute(value=value, attr=name) if not isinstance(value, ast.Name) or value.id in self.local:
                return dates.attribute(self, self.expression(value), name, node.lineno)
            case ast.Subscript(value=value, slice=index):
                return self._item(value, index, node.lineno)
            case _:
                raise NotNative(f"`{_shown(node)}`", node.lineno)

    def several(self, node: ast.expr, count: int) -> list[Value]:
        """The values of an expression that has so many."""
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == count:
            return [self.expression(item) for item in node.elts]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "divmod" and count == 2:
            self.check_builtin("divmod", node.lineno)
            if len(node.args) == 2 and not node.keywords:
                one, other = self.expression(node.args[0]), self.expression(node.args[1])
                quotient = self.operation(ast.FloorDiv(), one, other, node.lineno)
                return [quotient, self.operation(ast.Mod(), one, other, node.lineno)]
        raise NotNative(f"`{_shown(node)}` for {count} variables", node.lineno)

    def operation(self, op: ast.operator, one: Value, other: Value, line: int) -> Value:
        """The value of a binary operation."""
        one, other = self.required(one, line), self.required(other, line)
        if one.kind in NUMBERS and other.kind in NUMBERS:
            return numbers.binary(self, op, one, other, line)
        if one.kind in TIMES or other.kind in TIMES:
            return dates.binary(self, op, one, other, line)
        if one.kind is other.kind is Kind.TEXT and isinstance(op, ast.Add):
            return texts.concatenated(self, [one, other])
        sign = type(op).__name__
        raise NotNative(f"{sign} of {one.kind.value} and {other.kind.value}", line)

    def _chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr, line: int) -> Value:
        condition = self.condition(test)
        entry = dict(self.variables)
        result = _Result(self.code)
        ways = ((f"if ({condition.code})", body, condition.when_true), ("else", orelse, condition.when_false))
        for head, expression, known in ways:
            with self.code.block(head):
                self.narrow(known)
                result.store(self.expression(expression))
            self.variables = dict(entry)
        return result.value(self.same_kind(result.values, line))

    def _first(self, values: Sequence[ast.expr], is_and: bool, line: int) -> Value:
        """`a and b`, `a or b`: the first value that decides, or the last one."""
        if all(self._is_bool(value) for value in values):
            return Value(Kind.BOOL, self._conditions(values, is_and).code)
        result, decided = _Result(self.code), self.code.temporary(Kind.BOOL)
        self.code.add(f"{decided} = false;")
        for expression in values:
            with self.code.block(f"if (!{decided})"):
                value = self.kept(self.expression(expression))
                result.store(value)
                self.code.add(f"{decided} = {'!' if is_and else ''}({self.truth(value, line)});")
        return result.value(self.same_kind(result.values, line))

    # ---- Conditions --------------------------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Condition:
        """Whether an expression is true."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.condition(operand)
                return Condition(f"(!{inner.code})", inner.when_false, inner.when_true)
            case ast.BoolOp(op=op, values=values):
                return self._conditions(values, isinstance(op, ast.And))
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if isinstance(
                op, ast.Is | ast.IsNot
            ):
                return self._is_none(left, isinstance(op, ast.IsNot))
            case ast.Compare():
                return self._comparison(node)
        value = self.expression(node)
        known = {node.id: False} if isinstance(node, ast.Name) and node.id in self.local else {}
        return Condition(self.truth(value, node.lineno), known)

    def _is_none(self, node: ast.expr, is_not: bool) -> Condition:
        value = self.expression(node)
        code = "true" if value.kind is Kind.NONE else value.is_null or "false"
        name = node.id if isinstance(node, ast.Name) and node.id in self.local else None
        yes, no = ({name: True}, {name: False}) if name else ({}, {})
        return Condition(f"(!{code})", no, yes) if is_not else Condition(f"({code})", yes, no)

    def _conditions(self, values: Sequence[ast.expr], is_and: bool) -> Condition:
        """`a and b and c` or `a or b or c`: the later ones are evaluated only if they count."""
        result = self.code.temporary(Kind.BOOL)
        entry = dict(self.variables)
        known: dict[str, bool] = {}
        first = self.condition(values[0])
        self.code.add(f"{result} = {first.code};")
        conditions = [first]
        for value in values[1:]:
            known |= conditions[-1].when_true if is_and else conditions[-1].when_false
            self.narrow(known)
            with self.code.block(f"if ({'' if is_and else '!'}{result})"):
                conditions.append(self.condition(value))
                self.code.add(f"{result} = {conditions[-1].code};")
        known |= conditions[-1].when_true if is_and else conditions[-1].when_false
        self.variables = entry
        return Condition(result, known) if is_and else Condition(result, {}, known)

    def _comparison(self, node: ast.Compare) -> Condition:
        if len(node.ops) == 1:
            return Condition(self._compared(node.left, node.ops[0], node.comparators[0], None)[0])
        result = self.code.temporary(Kind.BOOL)
        self.code.add(f"{result} = true;")
        left: Value | None = None
        operands = [node.left, *node.comparators]
        with self.code.block("do"):
            for number, op in enumerate(node.ops):
                code, left = self._compared(operands[number], op, operands[number + 1], left)
                self.code.add(f"if (!({result} = {code})) break;")
        self.code.lines[-1] = self.code.lines[-1].replace("}", "} while (false);")
        return Condition(result)

    def _compared(
        self, left: ast.expr, op: ast.cmpop, right: ast.expr, known: Value | None
    ) -> tuple[str, Value | None]:
        """C for one comparison, and the value on its right. known: the value on its left, if it was evaluated."""
        line = right.lineno
        one = known or self.kept(self.expression(left))
        if isinstance(op, ast.In | ast.NotIn):
            code = tables.contains(self, right, one, line)
            return f"(!{code})" if isinstance(op, ast.NotIn) else code, None
        other = self.kept(self.expression(right))
        if isinstance(op, ast.Is | ast.IsNot):
            raise NotNative("`is`, other than with None,", line)
        if isinstance(op, ast.Eq | ast.NotEq):
            code = equal(self, one, other, line)
            return f"(!{code})" if isinstance(op, ast.NotEq) else code, other
        one, required = self.required(one, line), self.required(other, line)
        sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(op)]
        if one.kind is required.kind is Kind.TEXT:
            return f"(native_compare({one.code}, {required.code}) {sign} 0)", other
        if one.kind is required.kind and one.kind in TIMES:
            return f"({one.code} {sign} {required.code})", other
        if one.kind in NUMBERS and required.kind in NUMBERS:
            return numbers.compared(self, sign, one, required), other
        raise NotNative(f"`{sign}` of {one.kind.value} and {required.kind.value}", line)

    # ---- Calls and items ---------------------------------------------------------------------------------------------

    def _is_math(self, name: str) -> bool:
        return name not in self.local and self.facts.modules.get(name) == "math"

    def _datetime_class(self, node: ast.expr) -> str | None:
        """Which class of the module datetime this is; None: none."""
        match node:
            case ast.Name(id=name) if name not in self.local:
                return self.facts.datetime_classes.get(name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module not in self.local:
                is_one = self.facts.modules.get(module) == "datetime" and name in DATETIME_CLASSES
                return name if is_one else None
        return None

    def _call(self, node: ast.Call) -> Value:
        line = node.lineno
        if (name := self._datetime_class(node.func)) is not None:
            return dates.made(self, name, node)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise NotNative(f"`{_shown(node)}`, with arguments by name or by `*`,", line)
        match node.func:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if self._is_math(module):
                return mathematics.called(self, name, [self.expression(one) for one in node.args], line)
            case ast.Attribute(value=class_, attr="fromordinal") if self._datetime_class(class_) == "date":
                return dates.from_ordinal(self, node.args, line)
            case ast.Attribute(value=ast.Name(id=name), attr="get") if (table := self.table(name)) is not None:
                return tables.got(self, table, node.args, line)
            case ast.Attribute(value=ast.Name(id=name)) if name not in self.local and name not in self.facts.constants:
                raise NotNative(f"the call of `{_shown(node.func)}`", line)
            case ast.Attribute(value=subject, attr=name) if name in dates.METHODS and not node.args:
                return dates.method(self, self.expression(subject), name, line)
            case ast.Attribute(value=subject, attr=name):
                return texts.method(self, subject, name, node.args, line)
            case ast.Name(id=name) if name not in self.local:
                return self._called(name, node.args, line)
        raise NotNative(f"the call of `{_shown(node.func)}`", line)

    def _called(self, name: str, arguments: Sequence[ast.expr], line: int) -> Value:
        if name in self.facts.functions:
            return self._own(name, [self.kept(self.expression(one)) for one in arguments], line)
        if name in self.facts.math_functions:
            values = [self.expression(one) for one in arguments]
            return mathematics.called(self, self.facts.math_functions[name], values, line)
        if not self.facts.is_builtin(name) or name not in (*numbers.BUILTINS, "len"):
            raise NotNative(f"the call of `{name}`", line)
        if name == "len" and len(arguments) == 1:
            return tables.length(self, arguments[0], line)
        values = [self.kept(self.expression(one)) for one in arguments]
        return numbers.builtin(self, name, values, line)

    def _own(self, name: str, values: Sequence[Value], line: int) -> Value:
        """A call of a function of the module."""
        kinds = [Variable(value.kind, value.is_null is not None) for value in values]
        compiled = self.library.function(name, kinds, line)
        arguments = ["arena"]
        for value in values:
            arguments += [value.code] if value.kind is not Kind.NONE else []
            arguments += [value.is_null] if value.is_null else []
        kind = compiled.returns.kind
        result = self.code.temporary(Kind.BOOL if kind is Kind.NONE else kind)
        self.code.add(f"{result} = {ZEROS.get(kind, 'false')};")
        outcome = f"o{next(self.library.numbers)}"
        self.code.add(f"const native_outcome {outcome} = {compiled.name}({', '.join([*arguments, f'&{result}'])});")
        self.code.defer_if(f"{outcome} == NATIVE_DEFERRED")
        if kind is Kind.NONE:
            return NONE
        return Value(kind, result, f"({outcome} == NATIVE_NULL)" if compiled.returns.may_be_null else None)

    def _item(self, value: ast.expr, index: ast.expr, line: int) -> Value:
        if (table := self.table_of(value)) is not None:
            return tables.item(self, table, self.kept(self.expression(index)), line)
        return texts.item(self, value, index, line)

    def _is_bool(self, node: ast.expr) -> bool:
        """Whether an expression is certainly a BOOL, as it is written."""
        match node:
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Constant(value=bool()):
                return True
            case ast.BoolOp(values=values):
                return all(self._is_bool(value) for value in values)
            case ast.Name(id=name) if (known := self.variables.get(name)) is not None:
                return known.kind is Kind.BOOL and not known.may_be_null and not known.unclear
        return False


def _shown(node: ast.AST) -> str:
    """An expression, for a message."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."
