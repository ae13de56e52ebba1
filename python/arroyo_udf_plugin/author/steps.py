"""The steps of an aggregate, and the rows of a table function, as the core calls them.

    update(state, a list of each argument) -> state        merge(state, other) -> state        finish(state) -> value

Each call is for one group, with the state as a dict; or, if `update` takes Arrow arrays, that step is called for many
groups, with arrays of states and lists. Imports no pyarrow unless it takes arrays, because plugins do this in
subinterpreters, too.
"""

from __future__ import annotations

import operator
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .adapting import converter, to_core
from .hints import is_struct, item, optional, struct_hints
from .udaf import Udaf, Udtf


def takes_arrays(aggregate: Udaf) -> bool:
    """Whether `update` gets Arrow arrays."""
    return any(
        typing.get_origin(hint) is not list for name, hint in aggregate.hints("update").items() if name != "return"
    )


def step(aggregate: Udaf, name: str) -> Callable[..., Any]:
    """The step of this name."""
    new = aggregate.cls
    from_core, to_state = _conversion(new)

    def opened(state: dict[str, Any] | None) -> Any:
        return new() if state is None else from_core(state)

    def merge(state: dict[str, Any], other: dict[str, Any]) -> Any:
        group = from_core(state)
        group.merge(from_core(other))
        return to_state(group)

    if name == "merge":
        return merge
    if name == "finish":
        to_value = to_core(aggregate.hints("finish")["return"])
        return lambda state: to_value(opened(state).finish())
    hints = [hint for name, hint in aggregate.hints("update").items() if name != "return"]
    if takes_arrays(aggregate):
        return _update_of_arrays(opened, to_state, hints, aggregate)
    items = [converter(item(hint)) for hint in hints]
    required = [i for i, hint in enumerate(hints) if not optional(item(hint))[1]]

    def update(state: dict[str, Any] | None, *columns: list[Any]) -> Any:
        group = opened(state)
        columns = _without_nulls(columns, required)
        if any(items):
            columns = tuple(
                column if c is None else [None if v is None else c(v) for v in column]
                for column, c in zip(columns, items, strict=True)
            )
        group.update(*columns)
        return to_state(group)

    return update


def _conversion(cls: Any) -> tuple[Callable[[dict[str, Any]], Any], Callable[[Any], dict[str, Any]]]:
    """Makes an object of a state, and the state of an object."""
    hints = struct_hints(cls)
    if not all(_is_plain(hint) for hint in hints.values()):
        from_core = converter(cls)
        assert from_core is not None  # dataclasses have one
        return from_core, to_core(cls)
    names = tuple(hints)
    values = operator.attrgetter(*names)
    if len(names) == 1:
        return lambda state: cls(**state), lambda group: {names[0]: values(group)}
    return lambda state: cls(**state), lambda group: dict(zip(names, values(group), strict=True))


def _is_plain(hint: Any) -> bool:
    """Whether the core's value is the field's: most states have only such fields."""
    hint, _ = optional(hint)
    inner = optional(typing.get_args(hint)[0])[0] if typing.get_origin(hint) is list else hint
    return inner in (bool, int, float, str, bytes)


def _without_nulls(columns: tuple[list[Any], ...], required: Sequence[int]) -> tuple[list[Any], ...]:
    """Without the rows that have None in a required column (F3)."""
    if not any(None in columns[i] for i in required):
        return columns
    kept = [row for row in zip(*columns, strict=True) if all(row[i] is not None for i in required)]
    return tuple(map(list, zip(*kept, strict=True))) if kept else tuple([] for _ in columns)


def _update_of_arrays(
    opened: Callable[[Any], Any], to_state: Callable[[Any], Any], hints: list[Any], aggregate: Udaf
) -> Callable[..., Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from .types import state_type

    type_ = state_type(aggregate)
    lists = [item(hint) if typing.get_origin(hint) is list else None for hint in hints]
    required = [i for i, inner in enumerate(lists) if inner is not None and not optional(inner)[1]]

    def update(states: pa.StructArray, *columns: pa.ListArray) -> pa.Array:
        updated = []
        for row, state in enumerate(states.to_pylist()):
            group = opened(state)
            arrays = [column[row].values for column in columns]
            if nulls := [arrays[i] for i in required if arrays[i].null_count]:
                kept = nulls[0].is_valid()
                for array in nulls[1:]:
                    kept = pc.and_(kept, array.is_valid())
                arrays = [array.filter(kept) for array in arrays]
            group.update(*(a if inner is None else a.to_pylist() for a, inner in zip(arrays, lists, strict=True)))
            updated.append(to_state(group))
        return pa.array(updated, type_)

    return update


def rows(udtf: Udtf[..., Any]) -> Callable[..., Any]:
    """The function of a @udtf: it answers the list of its rows, as dicts."""
    function, name = udtf.function, udtf.__name__
    hint = udtf.row_hint()
    to_row = to_core(hint)
    hints = typing.get_type_hints(udtf.definition, include_extras=True)
    arguments = [converter(hints[argument]) for argument in udtf.definition.__code__.co_varnames[: len(hints) - 1]]
    is_column = not is_struct(optional(hint)[0])

    def call(*row: Any) -> list[Any]:
        given = (v if c is None or v is None else c(v) for v, c in zip(row, arguments, strict=True))
        found = function(*given)
        return [{name: to_row(value)} for value in found] if is_column else [to_row(value) for value in found]

    return call
