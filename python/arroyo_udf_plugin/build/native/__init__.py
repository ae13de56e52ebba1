"""Compiles functions of a Python source to C, so that their rows need no interpreter.

    facts.py         what the source says of its module: constants, functions, names that nothing rebinds
    library.py       the functions of a file that were compiled
    function.py      statements of a function
    expressions.py   names, conditions, comparisons, calls
    numbers.py, mathematics.py, texts.py, tables.py, equality.py    what values of these kinds can do
    formats.py       numbers as texts, and formats of f-strings
    dates.py         dates, times and their differences
    builder.py       what these work with: the code so far, what is known of variables
    values.py        kinds of values; NotNative, which says why a function is not compiled
    code.py, names.py, literals.py    lines, names and constants in C
    rows.py          the loop over the rows of a batch

The C parts are templates/native_*.h: what Python's operators mean (native_numbers.h, native_texts.h, native_formats.h,
native_dates.h), rows of a batch (native_batches.h), batches with deferred rows (native_run.c), calls of each other's
values in one pass (native_fused.c), and rows in a library without Python (native_alone.h).

Guarantees: a row has the value, or the error, that Python gives it. Whatever native code does not do exactly so, Python
does: a function that is not of the subset is not compiled, and a row that leaves it is deferred.
Assumes: other modules do not change this one, or Python's own functions (docs/native.md).
"""

from __future__ import annotations

import ast
import datetime
import typing
from collections.abc import Sequence
from dataclasses import dataclass

from ...author.hints import optional
from ...author.hints import shown as shown_hint
from ...author.types import signature
from ...author.udf import Udf
from .code import c_string
from .facts import Facts
from .function import compiled as compiled_function
from .library import Library
from .rows import loop, variable_of
from .values import NotNative

__all__ = ["Natives", "compiled"]

_READ = (bool, int, float, str, datetime.date, datetime.datetime, datetime.timedelta)
MOST_ARGUMENTS = 16
"""Of a function, as in arroyo_udf_plugin.h."""
_HEAD = """\
/* Generated: the functions of this plugin that are native. */
#include "native_batches.h"

"""


@dataclass(frozen=True)
class Natives:
    """What became of the functions of a source. reasons: for each function, why it is not native; None: it is. text:
    the C file; None: no function is native."""

    reasons: tuple[str | None, ...]
    text: str | None


def compiled(source: str, plugin: str, udfs: Sequence[Udf[..., object]], total: int) -> Natives:
    """Compiles those functions that allow it. plugin: its name. total: functions of the descriptor, of which `udfs` are
    the first.

    Raises BuildError for a function with native=True that cannot be compiled.
    """
    facts = Facts(ast.parse(source), {udf.__name__ for udf in udfs if udf.function is udf.definition})
    library = Library(facts, compiled_function)
    loops: dict[int, str] = {}
    reasons: list[str | None] = []
    for number, udf in enumerate(udfs):
        if not udf.native:
            reasons.append("native=False")
            continue
        try:
            _check_kind(udf, facts)
            loops[number] = _loop(udf, library, f"{plugin}.{udf.__name__}", number)
            reasons.append(None)
        except NotNative as why:
            if udf.native is True:
                raise udf.mistake(f"has native=True, and is not compiled because of {why}") from None
            reasons.append(str(why))
    if not loops:
        return Natives(tuple(reasons), None)
    functions = [f"  {f'&native_function_{number}' if number in loops else 'NULL'}," for number in range(total)]
    table = ["const native_function *const native_functions[] = {", *functions, "};", ""]
    parts = [*library.data, *(function.code for function in library.functions.values()), *loops.values()]
    return Natives(tuple(reasons), _HEAD + "\n".join(parts) + "\n" + "\n".join(table))


def _loop(udf: Udf[..., object], library: Library, shown: str, number: int) -> str:
    read = signature(udf)
    line = udf.definition.__code__.co_firstlineno
    for name, hint in zip((*read.arguments.names, "return"), read.hints, strict=True):
        if _base(hint) not in _READ:
            raise NotNative(f"the annotation of {name!r}, {shown_hint(hint)},", line)
    arguments = []
    for field in read.arguments:
        if (variable := variable_of(field)) is None:
            raise NotNative(f"the type of {field.name!r}, {field.type},", line)
        arguments.append(variable)
    if len(arguments) > MOST_ARGUMENTS:
        raise NotNative(f"more than {MOST_ARGUMENTS} arguments", line)
    if (result := variable_of(read.returns)) is None:
        raise NotNative(f"the type of the result, {read.returns.type},", line)
    function = library.function(udf.__name__, arguments, line, result)
    return loop(number, c_string(shown), function, read.arguments, read.returns)


def _base(hint: object) -> object:
    """What Python gets or gives. An enumeration, a UUID or a Literal is a text in Arrow, and more in Python."""
    base, _ = optional(hint)
    return typing.get_args(base)[0] if typing.get_origin(base) is typing.Annotated else base


def _check_kind(udf: Udf[..., object], facts: Facts) -> None:
    """Raises NotNative for a function that is never compiled."""
    line = udf.definition.__code__.co_firstlineno
    if udf.starts or udf.vectorized or udf.gives_rows:
        raise NotNative("its kind: native is for a `def` that gives one value for each row,", line)
    if "timeout" in udf.chosen:
        raise NotNative("its timeout, which ends calls in processes,", line)
    if udf.function is not udf.definition:
        raise NotNative(f"the decorator `{udf.decorator()}`", line)
    if facts.rebinds is not None:
        raise NotNative(f"{facts.rebinds[0]}, which may change any name of the module,", facts.rebinds[1])
    definition = facts.functions.get(udf.__name__)
    first = min([definition.lineno, *(one.lineno for one in definition.decorator_list)]) if definition else 0
    if first != line:
        raise NotNative("its place: it is not defined once, at the top of the file,", line)
