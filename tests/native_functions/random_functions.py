"""Random functions of the subset that is compiled to C, and rows that find its limits.

Program(random.Random(7)).source(20)     a file with twenty functions
rows(field, 1000, random.Random(7))      a column of extremes and of ordinary values
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa

HEAD = """\
import math
from datetime import date, timedelta
from arroyo_udf_plugin import udf

LIMIT = 100
RATE = 0.25
WORD = "nine"
CODES = {"AA": 1, "UA": 2, "": 3, "N": -4}
NAMES = {0: "zero", 1: "one", -1: "minus one", 2: "two"}
SMALL = (3, 5, 7)
MANY = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "AA", "N", "n1"}


def half(x):
    return x / 2


def clip(x, low, high):
    return low if x < low else high if x > high else x


def sign(x):
    if x > 0:
        return 1
    if x == 0:
        return 0
    return -1


def known(text):
    return CODES.get(text)


def money(x):
    return f"{x:,.2f}"


def padded(n):
    return f"{n:06d}|{n:x}|{n:>+5}"


def column(text):
    return f"{text:*^9.5}|{text:<4}"

"""
ARGUMENTS = {
    "a": ("int", "int"),
    "b": ("int", "int"),
    "c": ("int | None", "int"),
    "x": ("float", "float"),
    "y": ("float", "float"),
    "z": ("float | None", "float"),
    "s": ("str", "str"),
    "t": ("str", "str"),
    "u": ("str | None", "str"),
    "p": ("bool", "bool"),
    "d": ("date", "date"),
    "e": ("date | None", "date"),
}
KINDS = ("int", "float", "str", "bool", "date")
INTS = [0, 1, -1, 2, -2, 3, 7, 10, 100, -100, 255, 2**31, -(2**31), 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**62]
INTS += [2**63 - 1, -(2**63), 2**63 - 2, 3037000500, 10**18]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 2.675, 1.005, 0.1, 1e-300, 1e300, -1e300, 5e-324, 2.0**53, 2.0**63]
FLOATS += [float("nan"), float("inf"), float("-inf"), -(2.0**63), 1e16, 123456.789, 0.125, 1e22, 0.045, 999.995]
TEXTS = ["", "a", "N", "AA", "N123AA", "n1", " a b ", "a,b,c", ",", "12", "-7", "+3", " 5", "1_0", "9" * 19, "A" * 40]
TEXTS += ["\u00e9", "\u00df", "N\u00e9", "\u4e2d\u6587", "\U0001f600x", "\u00a0a", "\x1f", "\u0130", "\u0660\u0661"]
TEXTS += ["aaa", "abab", "True", "nine"]
TIMES = [-(2**63), 2**63 - 1, 0, -1, -62135596800000000, 253402300799999999, 253402300800000000]
DAYS = [0, -1, 59, 60, 10957, 11016, -719162, -719163, 2932896, 2932897, 2**31 - 1, -(2**31)]
ORDINARY = ["N123AA", "UA", "AA", "7", "12", "a,b,c,d", "Boeing 737 max", "nine"]


class Program:
    """Functions whose results hang on all of their parts."""

    def __init__(self, choices: random.Random) -> None:
        self._of = choices
        self._names: dict[str, list[str]] = {}
        self._n = 0

    def source(self, functions: int) -> str:
        """A file with so many functions, f0, f1, ..."""
        return HEAD + "\n".join(self._function(f"f{number}") for number in range(functions))

    def _function(self, name: str) -> str:
        arguments = self._of.sample(sorted(ARGUMENTS), self._of.randint(2, 5))
        self._names = {kind: [] for kind in KINDS}
        lines = []
        for argument in arguments:
            hint, kind = ARGUMENTS[argument]
            if "None" in hint and self._of.random() < 0.7:
                lines.append(f"    if {argument} is None:")
                lines.append(f"        {argument} = {self._constant(kind)}")
            self._names[kind].append(argument)
        result = self._of.choice(KINDS)
        for _ in range(self._of.randint(0, 4)):
            lines += self._statement("    ", 2, result)
        lines.append(f"    return {self._expression(result, 3)}")
        nullable = self._of.random() < 0.3
        if nullable:
            lines.insert(len(lines) - 1, f"    if {self._expression('bool', 1)}:\n        return None")
        head = ", ".join(f"{argument}: {ARGUMENTS[argument][0]}" for argument in arguments)
        hint = f"{result} | None" if nullable else result
        return f'\n@udf(native="auto")\ndef {name}({head}) -> {hint}:\n' + "\n".join(lines) + "\n"

    # ---- Statements --------------------------------------------------------------------------------------------------

    def _statement(self, indent: str, depth: int, result: str) -> list[str]:
        ways: list[Callable[[], list[str]]] = [
            lambda: self._assignment(indent),
            lambda: self._assignment(indent),
            lambda: [f"{indent}assert {self._expression('bool', 1)}"],
        ]
        if depth > 0:
            ways += [
                lambda: self._branch(indent, depth, result),
                lambda: self._loop(indent, depth, result),
                lambda: self._while(indent, depth, result),
                lambda: self._attempt(indent, depth, result),
            ]
        return self._of.choice(ways)()

    def _assignment(self, indent: str) -> list[str]:
        kind = self._of.choice([*KINDS, "int", "float"])
        value = self._expression(kind, 2)
        if self._names[kind] and self._of.random() < 0.5:
            name = self._of.choice(self._names[kind])
            if kind == "int" and self._of.random() < 0.5:
                sign = self._of.choice(["+", "-", "*", "//", "%", "&", "|", "^"])
                return [f"{indent}{name} {sign}= {value}"]
            return [f"{indent}{name} = {value}"]
        self._n += 1
        name = f"v{self._n}"
        self._names[kind].append(name)
        return [f"{indent}{name} = {value}"]

    def _inside(self, indent: str, depth: int, result: str) -> list[str]:
        """Statements of a block, whose new names are gone behind it."""
        before = {kind: list(names) for kind, names in self._names.items()}
        lines = [line for _ in range(self._of.randint(1, 2)) for line in self._statement(indent, depth - 1, result)]
        self._names = before
        return lines

    def _branch(self, indent: str, depth: int, result: str) -> list[str]:
        lines = [f"{indent}if {self._expression('bool', 2)}:", *self._inside(indent + "    ", depth, result)]
        if self._of.random() < 0.3:
            lines.append(f"{indent}    return {self._expression(result, 2)}")
        if self._of.random() < 0.4:
            lines += [f"{indent}elif {self._expression('bool', 1)}:", *self._inside(indent + "    ", depth, result)]
        if self._of.random() < 0.6:
            lines += [f"{indent}else:", *self._inside(indent + "    ", depth, result)]
        return lines

    def _loop(self, indent: str, depth: int, result: str) -> list[str]:
        self._n += 1
        name = f"i{self._n}"
        bounds = self._of.choice(["3", "-2, 3", "5, 0, -2", "0, 7, 3", "4"])
        lines = [f"{indent}for {name} in range({bounds}):"]
        before = {kind: list(names) for kind, names in self._names.items()}
        self._names["int"].append(name)
        if self._of.random() < 0.4:
            word = self._of.choice(["break", "continue"])
            lines += [f"{indent}    if {self._expression('bool', 1)}:", f"{indent}        {word}"]
        lines += self._inside(indent + "    ", depth, result)
        self._names = before
        return lines

    def _while(self, indent: str, depth: int, result: str) -> list[str]:
        self._n += 1
        name = f"n{self._n}"
        lines = [f"{indent}{name} = 0", f"{indent}while {name} < 4 and {self._expression('bool', 1)}:"]
        return [*lines, f"{indent}    {name} += 1", *self._inside(indent + "    ", depth, result)]

    def _attempt(self, indent: str, depth: int, result: str) -> list[str]:
        lines = [f"{indent}try:", *self._inside(indent + "    ", depth, result)]
        return [*lines, f"{indent}except Exception:", f"{indent}    return {self._constant(result)}"]

    # ---- Expressions -------------------------------------------------------------------------------------------------

    def _constant(self, kind: str) -> str:
        if kind == "int":
            return self._of.choice(["0", "1", "2", "3", "-1", "10", "LIMIT", "7", "9007199254740993"])
        if kind == "float":
            return self._of.choice(["0.0", "1.5", "-2.0", "RATE", "1e10", "math.pi", "0.1", "60.0"])
        if kind == "str":
            return self._of.choice(['""', '"a"', '"N"', "WORD", '","', '"b "', '"\\u00e9"'])
        if kind == "date":
            return self._of.choice(["date(2024, 2, 29)", "date(1, 1, 1)", "date(1999, 12, 31)"])
        return self._of.choice(["True", "False"])

    def _expression(self, kind: str, depth: int) -> str:
        names = self._names[kind]
        if depth == 0 or self._of.random() < 0.15:
            return self._of.choice(names) if names and self._of.random() < 0.75 else self._constant(kind)

        def e(wanted: str) -> str:
            return self._expression(wanted, depth - 1)

        if self._of.random() < 0.1:
            return f"({e(kind)} if {e('bool')} else {e(kind)})"
        return str(self._of.choice(_WAYS[kind])(e))


_E = Callable[[str], str]
_WAYS: dict[str, list[Callable[[_E], str]]] = {
    "int": [
        *(lambda e, sign=sign: f"({e('int')} {sign} {e('int')})" for sign in ("+", "-", "*", "//", "%", "&", "|", "^")),
        lambda e: f"({e('int')} ** 3)",
        lambda e: f"({e('int')} << ({e('int')} & 7))",
        lambda e: f"({e('int')} >> ({e('int')} & 63))",
        lambda e: f"(-{e('int')})",
        lambda e: f"(~{e('int')})",
        lambda e: f"abs({e('int')})",
        lambda e: f"int({e('float')})",
        lambda e: f"round({e('float')})",
        lambda e: f"math.floor({e('float')})",
        lambda e: f"len({e('str')})",
        lambda e: f"int({e('str')})",
        lambda e: f"{e('str')}.find({e('str')})",
        lambda e: f"{e('str')}.count({e('str')})",
        lambda e: f"min({e('int')}, {e('int')}, {e('int')})",
        lambda e: f"max({e('int')}, {e('int')})",
        lambda e: f"clip({e('int')}, -5, LIMIT)",
        lambda e: f"sign({e('float')})",
        lambda e: f"({e('bool')} + {e('int')})",
        lambda e: f"SMALL[{e('int')} % 3]",
        lambda e: f"CODES.get({e('str')}, 0)",
        lambda e: f"int({e('bool')})",
        lambda e: f"ord({e('str')}[0])",
        *(lambda e, part=part: f"{e('date')}.{part}" for part in ("year", "month", "day", "weekday()", "toordinal()")),
        lambda e: f"({e('date')} - {e('date')}).days",
    ],
    "date": [
        lambda e: f"({e('date')} + timedelta(days={e('int')} % 1000))",
        lambda e: f"({e('date')} - timedelta(days={e('int')}, hours={e('int')}))",
        lambda e: f"min({e('date')}, {e('date')})",
        lambda e: f"date({e('int')} % 3000, {e('int')} % 13, {e('int')} % 32)",
        lambda e: f"({e('date')} + ({e('date')} - {e('date')}))",
    ],
    "float": [
        *(lambda e, sign=sign: f"({e('float')} {sign} {e('float')})" for sign in ("+", "-", "*", "/", "//", "%")),
        lambda e: f"({e('int')} / {e('int')})",
        lambda e: f"({e('int')} * {e('float')})",
        lambda e: f"({e('float')} ** 2)",
        lambda e: f"({e('float')} ** 0.5)",
        lambda e: f"(-{e('float')})",
        lambda e: f"abs({e('float')})",
        lambda e: f"float({e('int')})",
        lambda e: f"round({e('float')}, 2)",
        lambda e: f"round({e('float')}, 0)",
        lambda e: f"half({e('float')})",
        lambda e: f"half({e('int')})",
        lambda e: f"min({e('float')}, {e('float')})",
        lambda e: f"max({e('float')}, {e('float')})",
        *(lambda e, name=name: f"math.{name}({e('float')})" for name in ("sqrt", "exp", "log", "sin", "fabs", "log10")),
        lambda e: f"math.copysign({e('float')}, {e('float')})",
        lambda e: f"math.fmod({e('float')}, {e('float')})",
        lambda e: f"clip({e('float')}, -1.0, 1.0)",
    ],
    "str": [
        lambda e: f"({e('str')} + {e('str')})",
        lambda e: f"str({e('int')})",
        lambda e: f"{e('str')}[{e('int')}]",
        lambda e: f"{e('str')}[1:]",
        lambda e: f"{e('str')}[:-1]",
        lambda e: f"{e('str')}[{e('int')}:{e('int')}]",
        *(lambda e, name=name: f"{e('str')}.{name}()" for name in ("lower", "upper", "strip", "lstrip", "rstrip")),
        lambda e: f"{e('str')}.replace({e('str')}, {e('str')})",
        lambda e: f"{e('str')}.split(',')[{e('int')}]",
        lambda e: f"{e('str')}.split('aa')[{e('int')}]",
        lambda e: f"{e('str')}.split()[0]",
        lambda e: f"'-'.join([{e('str')}, {e('str')}])",
        lambda e: f"str({e('bool')})",
        lambda e: f"str({e('float')})",
        lambda e: f"money({e('float')})",
        lambda e: f"money({e('int')})",
        lambda e: f"padded({e('int')})",
        lambda e: f"column({e('str')})",
        lambda e: f"str({e('date')})",
        lambda e: f"{e('date')}.isoformat()",
        lambda e: f"NAMES[{e('int')}]",
        lambda e: f"{e('str')}.strip('a ,')",
        lambda e: f"{e('str')}.removeprefix('N')",
        lambda e: f"min({e('str')}, {e('str')})",
        lambda e: f"clip({e('str')}, 'b', 'n')",
    ],
    "bool": [
        *(lambda e, sign=sign: f"({e('int')} {sign} {e('int')})" for sign in ("<", "<=", "==", "!=", ">")),
        *(lambda e, sign=sign: f"({e('float')} {sign} {e('float')})" for sign in ("<", "==", ">=")),
        *(lambda e, sign=sign: f"({e('int')} {sign} {e('float')})" for sign in ("<", "==")),
        *(lambda e, sign=sign: f"({e('str')} {sign} {e('str')})" for sign in ("<", "==", "!=", "in", "not in")),
        lambda e: f"({e('int')} < {e('int')} <= {e('int')})",
        lambda e: f"({e('bool')} and {e('bool')})",
        lambda e: f"({e('bool')} or {e('bool')})",
        lambda e: f"(not {e('bool')})",
        *(lambda e, sign=sign: f"({e('date')} {sign} {e('date')})" for sign in ("<", "==", ">=")),
        lambda e: f"bool({e('int')})",
        lambda e: f"bool({e('str')})",
        lambda e: f"{e('str')}.startswith({e('str')})",
        lambda e: f"{e('str')}.endswith(('a', 'N'))",
        lambda e: f"({e('int')} in SMALL)",
        lambda e: f"({e('str')} in MANY)",
        lambda e: f"({e('str')} in CODES)",
        *(lambda e, name=name: f"{e('str')}.{name}()" for name in ("isdigit", "isdecimal", "isnumeric", "isascii")),
        lambda e: f"{e('str')}.isupper()",
        lambda e: f"math.isnan({e('float')})",
        lambda e: f"(known({e('str')}) is None)",
        lambda e: f"(known({e('str')}) == {e('int')})",
    ],
}


def rows(field: pa.Field, count: int, choices: random.Random, extreme: float, texts: Sequence[str] = ()) -> pa.Array:
    """A column for an argument: extremes, so many of all, ordinary values, and nulls. Extremes of dates and times are
    those that Python does not have, too. texts: ordinary ones of this function."""
    type_ = field.type
    makers: dict[pa.DataType, Callable[[], object]] = {
        pa.float64(): lambda: choices.choice(FLOATS) if choices.random() < extreme else choices.uniform(0, 100),
        pa.utf8(): lambda: choices.choice(TEXTS if choices.random() < extreme else texts or ORDINARY),
        pa.bool_(): lambda: choices.random() < 0.5,
        pa.date32(): lambda: choices.choice(DAYS) if choices.random() < extreme else choices.randint(0, 25_000),
        pa.timestamp("us"): lambda: choices.choice(TIMES) if choices.random() < extreme else choices.randint(0, 2**51),
    }
    makers[pa.float32()], makers[pa.duration("us")] = makers[pa.float64()], makers[pa.timestamp("us")]
    stored = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64(), pa.duration("us"): pa.int64()}.get(type_, type_)
    if pa.types.is_integer(type_):
        low, high = (0, 2**type_.bit_width - 1) if pa.types.is_unsigned_integer(type_) else (
            -(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1
        )  # fmt: skip
        edges = [low, high, *(number for number in INTS if low <= number <= high)]
        makers[type_] = lambda: (
            choices.choice(edges) if choices.random() < extreme else choices.randint(max(low, -9), 99)
        )
    make = makers[type_]
    return pa.array([None if choices.random() < extreme / 10 else make() for _ in range(count)], stored).cast(type_)
