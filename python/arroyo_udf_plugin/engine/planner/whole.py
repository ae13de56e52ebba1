"""A query that needs all rows, as an operator that answers when its tables have ended.

    SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 10

    flights ──► carrier ──► the query, as it is written ──► carrier, "count(*)"

DataFusion gets the user's own text. Its tables are whatever rows their names mean here; functions of plugins are
functions of DataFusion there, so they may stand anywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from ..datafusion.feed import functions_by_kind
from ..datafusion.query import Select, WrongQuery
from ..datafusion.tokens import quoted
from .column_types import cast_to
from .diagnostics import WINDOWS, wrong_query
from .flow import Flow, Node
from .functions import PlannedUdf
from .guarded import Guarded, queries_behind_from
from .rounds import Wanted
from .selects import AnyQuery, Item, WholeText, items_of, name_of, query_of
from .text import Text, Tokens, Wrong, leveled

_AFTER_FROM = {
    *("select", "where", "group", "order", "having", "on", "using", "limit", "offset", "union", "except", "intersect"),
    *("qualify", "window", "fetch"),
}


def tables_in(part: Tokens, known: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The names of tables that a query reads, each once, with where it stands. known: that there are."""
    seen: set[str] = set()
    around: list[bool] = []  # whether a FROM is open, for each open bracket
    is_from = False
    for place, token in enumerate(part):
        before = part[place - 1] if place else None
        is_place = before is not None and is_from and (before.word in ("from", "join") or before.text in (",", "("))
        if token.text == "(" and token.kind == "sign":
            of_time = before is not None and before.word in ("extract", "substring", "trim", "overlay")
            around.append(is_from)
            is_from = is_place and not of_time
        elif token.text == ")" and token.kind == "sign":
            is_from = around.pop() if around else False
        elif token.word in ("from", "join") and (before is None or before.word not in ("distinct", ".")):
            is_from = True
        elif token.word in _AFTER_FROM:
            is_from = False
        elif is_place and token.name is not None and token.name in known and token.name not in seen:
            after = part[place + 1] if place + 1 < len(part) else None
            if after is None or after.text not in (".", "("):
                seen.add(token.name)
                yield token.name, token.start


def first_table(part: Tokens) -> tuple[str, int] | None:
    """The name behind FROM, and where it stands; None: there is none, or a function."""
    for place, token, depth in leveled(part):
        if place and not depth and part[place - 1].word == "from" and token.name is not None:
            is_call = place + 1 < len(part) and part[place + 1].text == "("
            return None if is_call else (token.name, token.start)
    return None


def queries_in(part: Tokens, udfs: Mapping[str, PlannedUdf]) -> Iterator[AnyQuery]:
    """The queries behind FROM that are operators of their own: their rows come from there, so that no function of a
    plugin gets rows that a WHERE in there has left out, and they may have windows. Others are DataFusion's alone.
    Raises Wrong."""
    calls = {(token.name or "").lower() for token, after in itertools.pairwise(part) if after.text == "("}
    for inner in queries_behind_from(part) if calls & {*udfs, *WINDOWS} else ():
        yield query_of(inner)


def built(
    text: Text,
    udfs: Mapping[str, PlannedUdf],
    flow: Flow,
    query: WholeText,
    tables: Mapping[str, Node],
    inner: Mapping[int, Node],
    ranges: Sequence[range],
    name: str,
    wanted: Sequence[Wanted] | None,
) -> Node:
    """tables: the rows of each. inner: those of `queries_in`, by where they begin. ranges: of
    their text. name: of the operators. wanted: as
    of `Rounds.built`. Raises Wrong."""
    part = query.part
    called = _called(flow, [token for token in part if not any(token.start in own for own in ranges)], udfs)
    needed = _columns(part)
    names = {at: f"__q{number}" for number, at in enumerate(inner, 1)}
    tables = {**tables, **{names[at]: node for at, node in inner.items()}}
    given = {table: _only(flow, node, needed, f"{name}_{table}", query.at) for table, node in tables.items()}
    try:
        guarded = Guarded(text, called, _grouping(), names, {table: source.names for table, source in given.items()})
        node = flow.whole(given, guarded.query(part), called, name, query.at)
    except WrongQuery as error:
        if any(token.word in WINDOWS and after.text == "(" for token, after in itertools.pairwise(part)):
            raise Wrong(query.why.text, query.why.at) from None  # windows are for streams
        schema = pa.schema([field for source in tables.values() for field in source.schema])
        raise wrong_query(error, part, query, schema, udfs) from None
    return _as_wanted(flow, node, _names(text, part, node), name, wanted, query.at)


def _grouping() -> frozenset[str]:
    """The functions of DataFusion that have one value for many rows."""
    kinds = functions_by_kind()
    return kinds["AGGREGATE"] | kinds["WINDOW"]


def _called(flow: Flow, part: Tokens, udfs: Mapping[str, PlannedUdf]) -> dict[str, PlannedUdf]:
    called = {}
    for token, after in itertools.pairwise(part):
        name = (token.name or "").lower()
        if after.text != "(" or name not in udfs:
            continue
        udf = called[name] = udfs[name]
        if udf.is_aggregate:
            continue
        if udf.function.kind not in ("sync", "async", "table"):
            raise Wrong(f"{udf.signature} is {udf.function.kind}, and no row can call it", token.start)
        if (flow.settings.on_error, flow.settings.on_timeout) != ("fail", "fail"):
            raise Wrong(
                f"{name} is called in a query over all rows, where a row that fails has no policy: call it in a view, "
                "and select from the view",
                token.start,
            )
    return called


def _columns(part: Tokens) -> set[str] | None:
    """The names that may be columns. None: all columns are needed."""
    stars = (before for before, token in itertools.pairwise(part) if token.text == "*")
    if any(before.text != "(" for before in stars) or any(token.word == "natural" for token in part):
        return None
    return {token.name for token in part if token.name is not None}


def _only(flow: Flow, node: Node, needed: set[str] | None, name: str, at: int) -> Node:
    """The rows with the columns that are needed, and at least one."""
    names = [column for column in node.names if needed is None or column in needed] or node.names[:1]
    return (
        node
        if names == node.schema.names
        else flow.query(node, Select({column: quoted(column) for column in names}), name, at)
    )


def _names(text: Text, part: Tokens, node: Node) -> list[str]:
    """Of the results, as of other queries: what has no name has its own text."""
    items = items_of(part)
    own: list[str] = node.schema.names
    if items is None or len(items) != len(own) or not all(isinstance(item, Item) for item in items):
        return own
    return [name_of(text, item) for item in items if isinstance(item, Item)]


def _as_wanted(
    flow: Flow, node: Node, names: Sequence[str], name: str, wanted: Sequence[Wanted] | None, at: int
) -> Node:
    own = node.schema.names
    if wanted is not None and len(wanted) != len(own):
        columns = ", ".join(wanted_column.name for wanted_column in wanted)
        raise Wrong(f"the SELECT has {len(own)} columns, and the table {len(wanted)}: {columns}", at)
    texts = [quoted(column) for column in own]
    for place, wanted_column in enumerate(wanted or ()):
        converted = (
            texts[place]
            if wanted_column.type is None
            else cast_to(texts[place], node.schema.types[place], wanted_column.type)
        )
        if converted is None:
            reason = (
                f"{wanted_column.name} is {wanted_column.type} in the table, and this is {node.schema.types[place]}"
            )
            raise Wrong(f"{reason}: write CAST(... AS ...)", at)
        texts[place] = converted
    names = names if wanted is None else [wanted_column.name for wanted_column in wanted]
    for column in names:
        if names.count(column) > 1:
            raise Wrong(f"there are two columns {column}: write AS and another name", at)
    items = dict(zip(names, texts, strict=True))
    if list(items.items()) != [(column, quoted(column)) for column in own]:
        node = flow.query(node, Select(items), name, at)
    return flow.required(
        node, [wanted_column.name for wanted_column in wanted or () if wanted_column.not_null], name, at
    )
