"""Tables of constants: dicts, sets and tuples, of the module or written in place, as lookups.

In C a table is an array. Up to MOST_COMPARED keys are compared one by one, because a comparison with a text of known
length needs no call; more are in ascending order, and searched by halves.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from .builder import FunctionBuilder
from .equality import equal
from .literals import text_initialiser
from .values import C_TYPES, NONE, Constant, Kind, NotNative, Value, kind_of

MOST_COMPARED = 8


def contains(on: FunctionBuilder, container: ast.expr, value: Value, line: int) -> str:
    """C for `value in container`."""
    table = on.table_of(container)
    if table is None:
        whole = on.text(on.expression(container), line)
        return f"native_contains({whole.code}, {on.text(value, line).code})"
    keys = list(_keys(table))
    is_searched = len(keys) > MOST_COMPARED and value.kind in (Kind.INT, Kind.TEXT) and not value.is_null
    if is_searched and all(kind_of(key) is value.kind for key in keys):
        return f"({_search(on, keys, value, line)} >= 0)"
    if len(keys) > 4 * MOST_COMPARED:
        raise NotNative(f"`in` with {len(keys)} values of several kinds", line)
    parts = [equal(on, value, on.constant(key, line), line) for key in keys]
    # A NaN that is in a table is the same object only in Python.
    if any(isinstance(key, float) and key != key for key in keys):
        raise NotNative("`in` with NaN", line)
    return on.code.result(Kind.BOOL, " || ".join(parts) or "false").code


def length(on: FunctionBuilder, node: ast.expr, line: int) -> Value:
    """`len` of a text or of a table."""
    table = on.table_of(node)
    if table is not None:
        return on.constant(len(table), line)  # type: ignore[arg-type]  # each kind of table has a length
    return on.code.result(Kind.INT, f"native_length({on.text(on.expression(node), line).code})")


def item(on: FunctionBuilder, table: object, key: Value, line: int) -> Value:
    """`table[key]`: where it is missing, Python raises."""
    if isinstance(table, Mapping):
        return _found(on, table, key, None, line)
    if not isinstance(table, tuple):
        raise NotNative("an item of a set", line)
    place = on.integer(key, line)
    if place.is_constant and isinstance(place.constant, int):
        if not -len(table) <= place.constant < len(table):
            raise NotNative("an item that is not there", line)
        return on.constant(table[place.constant], line)
    kind = _one_kind(table, line)
    number = on.code.checked(Kind.INT, f"native_place({place.code}, {len(table)}")
    return on.code.result(kind, f"{_array(on, table, kind, line)}[{number.code}]")


def got(on: FunctionBuilder, table: object, arguments: Sequence[ast.expr], line: int) -> Value:
    """`table.get(key)` or `table.get(key, default)`."""
    if not isinstance(table, Mapping) or len(arguments) not in (1, 2):
        raise NotNative("this call of `get`", line)
    key = on.kept(on.expression(arguments[0]))
    default = on.kept(on.expression(arguments[1])) if len(arguments) == 2 else NONE
    return _found(on, table, key, default, line)


def _found(
    on: FunctionBuilder, table: Mapping[Constant, Constant], key: Value, default: Value | None, line: int
) -> Value:
    """The value of a key. default: None: there must be one."""
    key = on.required(key, line)
    if key.kind not in (Kind.INT, Kind.TEXT) or any(kind_of(one) is not key.kind for one in table):
        raise NotNative("a lookup with keys of several kinds, or neither int nor str,", line)
    if not table:
        raise NotNative("a lookup in an empty table", line)
    keys = sorted(table, key=_order)
    kind = _one_kind([table[one] for one in keys], line)
    number = on.code.result(Kind.INT, _search(on, keys, key, line)).code
    values = _array(on, [table[one] for one in keys], kind, line)
    if default is None:
        on.code.defer_if(f"{number} < 0")
        return on.code.result(kind, f"{values}[{number}]")
    if default.kind is Kind.NONE:
        found = on.code.result(kind, f"{values}[{number} < 0 ? 0 : {number}]")
        return Value(kind, found.code, f"({number} < 0)")
    if default.kind is not kind:
        raise NotNative(f"a lookup that gives {kind.value} or {default.kind.value}", line)
    found = on.code.result(kind, f"{number} < 0 ? {default.code} : {values}[{number} < 0 ? 0 : {number}]")
    return Value(kind, found.code, f"({number} < 0 && {default.is_null})" if default.is_null else None)


def _keys(table: Any) -> Sequence[Constant]:
    return sorted(table, key=_order) if isinstance(table, frozenset) else list(table)


def _order(constant: Constant) -> tuple[str, Any]:
    """An order of constants of all kinds; of texts: by their bytes."""
    return type(constant).__name__, constant.encode("utf-8", "surrogatepass") if isinstance(constant, str) else constant


def _one_kind(constants: Sequence[Constant], line: int) -> Kind:
    kinds = {kind_of(one) for one in constants}
    if len(kinds) != 1 or Kind.NONE in kinds:
        raise NotNative("a table with values of several kinds", line)
    return kinds.pop()


def _array(on: FunctionBuilder, constants: Sequence[Constant], kind: Kind, line: int) -> str:
    """The name of an array of constants in C."""
    if kind is Kind.TEXT:
        items = [text_initialiser(str(one), line) for one in constants]
    else:
        items = [on.constant(one, line).code for one in constants]
    head = f"static const {C_TYPES[kind]} {{name}}[] NATIVE_UNUSED = "
    return on.library.constant_data(head + "{" + ", ".join(items) + "};")


def _search(on: FunctionBuilder, keys: Sequence[Constant], value: Value, line: int) -> str:
    """C for the place of a value among keys, which are in order; less than 0: it is not there."""
    ordered = sorted(keys, key=_order)
    array = _array(on, ordered, value.kind, line)
    if len(ordered) > MOST_COMPARED:
        return f"native_search_{value.kind.value}({array}, {len(ordered)}, {value.code})"
    ways = (f"{equal(on, Value(value.kind, f'{array}[{i}]'), value, line)} ? {i} : " for i in range(len(ordered)))
    return f"({''.join(ways)}-1)"
