"""A table for lookups, wherever it is: by its URI in SQLite, PostgreSQL, or Redis."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

import pyarrow as pa

from .lookup_queries import KeyedTable
from .lookup_table import lookup_table
from .redis.lookup import redis_table
from .redis.server import SCHEMES


def keyed_table(
    uri: str,
    table: str,
    keys: Mapping[str, pa.DataType],
    columns: Mapping[str, str] | None,
    types: Mapping[str, pa.DataType],
    name: str,
) -> KeyedTable:
    """See `lookup_table`. Raises InvalidArgument."""
    made = redis_table if urllib.parse.urlsplit(uri).scheme in SCHEMES else lookup_table
    return made(uri, table, keys, columns, types, name)
