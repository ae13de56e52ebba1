"""What is known of a value while a function is compiled: its kind, and where C finds it.

Guarantees: `Value.code` is a C expression without effects, of the type `C_TYPES[kind]`, which keeps its value until the
variable that it names is assigned again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class Kind(enum.Enum):
    """The Python types of the subset. A value is exactly of this type, so BOOL is not INT."""

    NONE = "None"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "str"
    DATE = "date"
    DATETIME = "datetime"
    DELTA = "timedelta"


NUMBERS = (Kind.BOOL, Kind.INT, Kind.FLOAT)
TIMES = (Kind.DATE, Kind.DATETIME, Kind.DELTA)
C_TYPES = {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.TEXT: "native_text"}
C_TYPES |= dict.fromkeys(TIMES, "int64_t")
ZEROS = {Kind.BOOL: "false", Kind.INT: "0", Kind.FLOAT: "0.0", Kind.TEXT: "NATIVE_EMPTY", **dict.fromkeys(TIMES, "0")}

Constant = bool | int | float | str | None
"""A value that a source states."""


@dataclass(frozen=True)
class Value:
    """A value of an expression. is_null: a C expression that says whether it is None; None: it never is. constant: what
    it is, if that is known and it has `is_constant`."""

    kind: Kind
    code: str
    is_null: str | None = None
    is_constant: bool = False
    constant: Constant = None

    def required(self) -> Value:
        """The same, where it is not None."""
        return replace(self, is_null=None)


NONE = Value(Kind.NONE, "0", is_constant=True)


@dataclass(frozen=True)
class Variable:
    """A local variable, as far as it is known at one place of the function. may_be_null: it may be None there. unclear:
    why it has no one kind there; None: it has."""

    kind: Kind
    may_be_null: bool = False
    unclear: str | None = None


class NotNative(Exception):
    """Why a function is not compiled, and in which line of its file."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(f"{why} in line {line}")
        self.why = why
        self.line = line


def kind_of(constant: Constant) -> Kind:
    """The kind of a constant."""
    if constant is None:
        return Kind.NONE
    return Kind(type(constant).__name__)


def joined(one: Variable, other: Variable, name: str) -> Variable:
    """What is known of a variable where two ways meet."""
    may_be_null = one.may_be_null or other.may_be_null
    if one.unclear or other.unclear:
        return one if one.unclear else other
    if one.kind is other.kind:
        return Variable(one.kind, may_be_null)
    if Kind.NONE in (one.kind, other.kind):
        return Variable(other.kind if one.kind is Kind.NONE else one.kind, True)
    kinds = f"{one.kind.value} or {other.kind.value}"
    return Variable(one.kind, may_be_null, f"{name!r} is {kinds}, depending on the way there,")


def as_integer(value: Value) -> Value:
    """A BOOL as the INT that arithmetic makes of it."""
    constant = int(value.constant) if isinstance(value.constant, bool) else value.constant
    return Value(Kind.INT, f"(int64_t)({value.code})", value.is_null, value.is_constant, constant)
