"""Mutates functions of a source: operators, constants, conditions, names, methods, formats, and types of arguments.

    mutated(random.Random(7), source)

The result is a source whose functions with @udf have native="auto". Most of them can still be compiled to C.
What decides how often a loop turns, exponents and the widths of shifts stay as they are, so that each row ends soon.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Change: TypeAlias = Callable[[], object]
OPERATORS: list[tuple[type[ast.AST], ...]] = [
    (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div),
    (ast.BitAnd, ast.BitOr, ast.BitXor),
    (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.And, ast.Or),
    (ast.USub, ast.UAdd),
]
"""Each may stand for the others of its group."""
NAMES = [
    ("lower", "upper", "strip", "lstrip", "rstrip"),
    ("find", "rfind", "index", "rindex", "count"),
    ("startswith", "endswith", "removeprefix", "removesuffix"),
    ("isdigit", "isdecimal", "isnumeric", "isalpha", "isalnum", "isspace", "isupper", "islower", "isascii"),
    ("year", "month", "day"),
    ("hour", "minute", "second", "microsecond"),
    ("weekday", "isoweekday", "toordinal"),
    ("min", "max"),
    ("int", "float", "round", "abs", "bool", "str"),
    ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    ("cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "fabs", "isnan", "isinf", "isfinite"),
    ("pow", "fmod", "atan2", "copysign"),
]
INTS = [0, 1, -1, 2, 3, 5, 7, 8, 10, 12, 31, 60, 100, 400, 9999, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 1.5, -2.5, 1e-5, 1e15, 1e16, 1e22, 2.0**53, 2.0**63, 5e-324, 1e308]
TEXTS = ["", " ", "a", "A", "-", "::", "aa", "aba", "0", "\u00e9", "\x1f", "ing"]
SPECS = ["", ".2f", ",", "_d", "05", ">8", "^9", "*<7.3", "x", "+.1e", "%", "g", "010,.2f", "=+6", "d", "s"]
TYPES = {
    "int": ["pa.int8()", "pa.int16()", "pa.int32()", "pa.uint8()", "pa.uint16()", "pa.uint32()", "pa.uint64()"],
    "float": ["pa.float32()"],
}
_HEAD = "from typing import Annotated\nimport pyarrow as pa\n"


def mutated(choices: random.Random, source: str) -> str:
    """The source with some changes in each of its functions."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for _ in range(choices.choice([0, 1, 1, 2, 3])):
            choices.choice([*_of_types(choices, function), *_ways(choices, function)])()
        function.decorator_list = [_decorator(one) for one in function.decorator_list]
    text = ast.unparse(ast.fix_missing_locations(tree)).replace("native='auto'", 'native="auto"')
    return f"{_HEAD}{text}\n"


def _decorator(one: ast.expr) -> ast.expr:
    """With native="auto", unless the function is of another kind."""
    is_plain = isinstance(one, ast.Name) or (
        isinstance(one, ast.Call) and [word.arg for word in one.keywords] == ["native"]
    )
    return ast.parse("udf(native='auto')", mode="eval").body if is_plain else one


def _of_types(choices: random.Random, function: ast.FunctionDef) -> Iterator[Change]:
    """Ways to change the types of arguments and of the result."""
    if function.decorator_list:
        for argument in function.args.args:
            yield partial(setattr, argument, "annotation", _type(choices, argument.annotation))
        yield partial(setattr, function, "returns", _type(choices, function.returns))


def _type(choices: random.Random, annotation: ast.expr | None) -> ast.expr | None:
    if not isinstance(annotation, ast.Name):
        return annotation
    text = annotation.id
    if text in TYPES and choices.random() < 0.6:
        text = f"Annotated[{text}, {choices.choice(TYPES[text])}]"
    if choices.random() < 0.4:
        text += " | None"
    return ast.parse(text, mode="eval").body


def _ways(choices: random.Random, function: ast.FunctionDef) -> Iterator[Change]:
    """Ways to change the body."""
    read = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for node in _free(function.body):
        match node:
            case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.AugAssign():
                if (other := _other(choices, OPERATORS, type(node.op))) is not None:
                    yield partial(setattr, node, "op", other())
            case ast.Compare():
                place = choices.randrange(len(node.ops))
                if (other := _other(choices, OPERATORS, type(node.ops[place]))) is not None:
                    yield partial(operator.setitem, node.ops, place, other())
            case ast.Constant():
                yield partial(setattr, node, "value", _constant(choices, node.value))
            case ast.FormattedValue():
                yield partial(setattr, node, "format_spec", ast.JoinedStr([ast.Constant(choices.choice(SPECS))]))
            case ast.Name(ctx=ast.Load()):
                yield partial(setattr, node, "id", _other(choices, NAMES, node.id) or choices.choice(read))
            case ast.Attribute():
                if (name := _other(choices, NAMES, node.attr)) is not None:
                    yield partial(setattr, node, "attr", name)
            case ast.Slice():
                bound = choices.choice([None, ast.Constant(choices.randint(0, 3)), ast.Constant(-2)])
                yield partial(setattr, node, choices.choice(["lower", "upper"]), bound)
            case ast.If() | ast.IfExp():
                yield partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test))


def _free(nodes: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes that may be changed. What formats an f-string is no node of its own."""
    left: list[ast.AST] = list(nodes)
    while left:
        node = left.pop()
        match node:
            case ast.AugAssign(value=ast.Constant(value=1)):  # it may count the turns of a loop
                continue
            case ast.Expr(value=ast.Constant()):  # documentation
                continue
            case ast.BinOp(op=ast.Pow() | ast.LShift()):
                left.append(node.left)
                continue
            case ast.For():
                left += node.body
            case ast.While():
                left += node.body
            case ast.FormattedValue():
                left.append(node.value)
            case _:
                left += [one for one in ast.iter_child_nodes(node) if not _is_text_of(node, one)]
        yield node


def _is_text_of(node: ast.AST, part: ast.AST) -> bool:
    """The plain texts of an f-string stay: a format needs braces that fit."""
    return isinstance(node, ast.JoinedStr) and isinstance(part, ast.Constant)


def _other(choices: random.Random, groups: list[tuple[T, ...]], one: T) -> T | None:
    """Another one of its group."""
    others = next((group for group in groups if one in group), ())
    return choices.choice([other for other in others if other is not one]) if others else None


def _constant(choices: random.Random, value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return choices.choice([value + 1, value - 1, -value, *choices.choices(INTS, k=2)])
    if isinstance(value, float):
        return choices.choice([value + 1, -value, value / 3, *choices.choices(FLOATS, k=2)])
    if isinstance(value, str):
        return choices.choice([value + "a", value[1:], value.swapcase(), *choices.choices(TEXTS, k=2)])
    return value
