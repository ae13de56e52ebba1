"""Tables over connectors: CREATE TABLE ... WITH (...) as the sources, sinks and lookups of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pydantic

from ...errors import ArroyoUdfError, nearest, printable
from ..connectors.connector import Connector
from ..connectors.described import Input, Output
from ..connectors.registry import OWN, broken, connectors
from ..connectors.table_options import CHANGES, LONGEST_SECONDS, SqlColumn, TableOptions, WrongOption
from .statements import CreateTable
from .text import Wrong

_IDLE = "idle_micros"
_Made = TypeVar("_Made")
_STREAM = "pipe its records into a table with connector = 'stdin', or from one with 'stdout'"
_NO_CONNECTORS = {
    **dict.fromkeys(("kinesis", "nats", "mqtt", "rabbitmq", "fluvio"), _STREAM),
    "websocket": _STREAM,
    **dict.fromkeys(("delta", "iceberg"), "write connector = 'filesystem' and format = 'parquet'"),
    "confluent": "write connector = 'kafka' and auth.type = 'sasl'",
    "nexmark": "write connector = 'impulse', or read a file of its events",
    "preview": "write connector = 'stdout', or a SELECT without INSERT",
}


def kind_of(table: CreateTable) -> str:
    """ "source" or "sink" by its options, "memory" without a connector, "both" if its use decides; "lookup" for a
    TEMPORARY TABLE. Raises Wrong."""
    option = table.options.get("connector")
    known = {name: connector for name, connector in connectors().items() if connector.in_sql}
    if table.is_lookup and (option is None or not _has_lookups(known.get(option.value), option.value)):
        names = [f"'{name}'" for name, connector in known.items() if connector.lookup is not None]
        names[0] = f"WITH (connector = {names[0]})"
        at = table.at if option is None else option.at
        raise Wrong(f"a TEMPORARY TABLE is in a database: write {' or '.join(names)}", at)
    if option is None:
        if table.options and (name := next(iter(table.options))):
            raise Wrong(f"table {table.name} has options and no connector: add one", table.options[name].at)
        return "memory"
    if option.value == "memory":
        return "memory"
    if option.value not in known and option.value in broken():
        raise Wrong(broken()[option.value], option.at)
    if option.value not in known and (instead := _NO_CONNECTORS.get(option.value)) is not None:
        raise Wrong(f"the connector {option.value} is not supported: {instead}", option.at)
    if option.value not in known:
        raise Wrong(f"there is no connector '{option.value}': {nearest(option.value, known)}", option.at)
    if table.is_lookup:
        return "lookup"
    kinds = _kinds(known[option.value])
    if (chosen := table.options.get("type")) is not None:
        if chosen.value not in ("source", "sink"):
            raise Wrong(f"type = '{chosen.value}': write 'source' or 'sink'", chosen.at)
        if chosen.value not in kinds:
            raise Wrong(f"the connector {option.value} has no {chosen.value}s", chosen.at)
        return chosen.value
    if not kinds:
        raise Wrong("rows can only be looked up there: write CREATE TEMPORARY TABLE", option.at)
    return "both" if len(kinds) > 1 else kinds[0]


def _has_lookups(connector: Connector | None, name: str) -> bool:
    """Others are told later why they are not there."""
    return name in _NO_CONNECTORS or name in broken() if connector is None else connector.lookup is not None


def _kinds(connector: Connector) -> list[str]:
    """What a table can be. A model that makes nothing of options is for descriptions alone."""
    models = (("source", connector.source, Input), ("sink", connector.sink, Output))
    return [kind for kind, model, base in models if model is not None and _is_own(model, base)]


def _is_own(model: type[Input] | type[Output], base: type[Input] | type[Output]) -> bool:
    return getattr(model.of_table, "__func__", None) is not getattr(base.of_table, "__func__", None)


def is_in_database(table: CreateTable) -> bool:
    """Whether its connector has lookups."""
    return _connector(table).lookup is not None


def source_of(table: CreateTable) -> Input:
    """Raises Wrong, and what pydantic raises."""
    model = _connector(table).source
    assert model is not None, "by kind_of"
    known = model.metadata_keys
    for column in table.columns or ():
        if (asked := column.metadata) is not None and asked.value not in known:
            hint = nearest(asked.value, known) if known else "it has none. Leave the column out"
            connector = table.options["connector"].value
            raise Wrong(f"the connector {connector} has no metadata '{asked.value}': {hint}", asked.at)
    return _made(table, model.of_table, _IDLE)


def idle_of(table: CreateTable) -> float | None:
    """The seconds without rows after which a source holds no watermark back; None: it always does. Raises Wrong."""
    option = table.options.get(_IDLE)
    if option is None:
        return None
    if table.watermark is None:
        raise Wrong(f"{_IDLE} is of tables with an event time: add WATERMARK FOR its column", option.at)
    micros = int(option.value) if option.value.isdecimal() else 0
    if not micros:
        raise Wrong(f"{_IDLE} = '{option.value}': write a whole number of microseconds above 0", option.at)
    if micros / 1e6 > LONGEST_SECONDS:
        raise Wrong(f"{_IDLE} = '{option.value}': write no more than {LONGEST_SECONDS} seconds", option.at)
    return micros / 1e6


def sink_of(table: CreateTable) -> Output:
    """Raises Wrong, and what pydantic raises."""
    model = _connector(table).sink
    assert model is not None, "by kind_of"
    return _made(table, model.of_table)


def takes_changes(table: CreateTable) -> bool:
    """Whether its rows are changes: op, before and after."""
    option = table.options.get("format")
    return option is not None and option.value == CHANGES


def lookup_of(table: CreateTable) -> Mapping[str, Any]:
    """The keys of a `Lookup` that say where it looks. Raises Wrong."""
    if table.watermark is not None:
        raise Wrong("what is looked up has no event time: leave WATERMARK FOR out", table.watermark.at)
    known = _connector(table).lookup_metadata
    for column in table.columns or ():
        if column.generated:
            raise Wrong(f"{column.name} is generated, and not in the database: compute it in the SELECT", column.at)
        if column.metadata is not None and column.metadata.value not in known:
            raise Wrong(f"{column.name} is a column of the database: leave out METADATA FROM", column.metadata.at)
    lookup = _connector(table).lookup
    assert lookup is not None, "by kind_of"
    keys = _made(table, lookup)
    if missing := [key for key in ("uri", "table") if key not in keys]:
        raise Wrong(f"the connector failed: its lookup has no {missing[0]}", table.at)
    return keys


def _connector(table: CreateTable) -> Connector:
    return connectors()[table.options["connector"].value]


def _made(table: CreateTable, make: Callable[[TableOptions], _Made], *others: str) -> _Made:
    """others: options that are read elsewhere."""
    columns = [
        SqlColumn(column.name, column.type, column.at, column.metadata, column.is_json)
        for column in table.columns or ()
        if not column.generated
    ]
    options = TableOptions(
        table.name, table.at, table.options, None if table.columns is None else columns, table.primary_key
    )
    for name in ("connector", "type", *others):
        options.take(name)
    try:
        made = make(options)
        options.end()
    except WrongOption as error:
        raise Wrong(str(error), error.at) from None
    except (ArroyoUdfError, pydantic.ValidationError, OSError):
        raise
    except Exception as error:
        if _connector(table) in OWN:
            raise
        raise Wrong(f"the connector failed: {printable(f'{type(error).__name__}: {error}')}", table.at) from error
    return made
