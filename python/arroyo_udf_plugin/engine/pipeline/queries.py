"""What is wrong with the expressions of a query: all of them, each by its key, and what to write instead."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pyarrow as pa

from ...errors import nearest
from ..datafusion.query import Query, Select, WrongQuery
from .lines import Key

_COLUMN = re.compile(r"there is no column (.+)")


def wrong_parts(select: Select, given: pa.Schema, error: WrongQuery) -> list[tuple[Key, str]]:
    """error: of the whole query, which tells one mistake only."""
    return list(_alone(select, given)) or [(("where",) if select.where else (), in_words(error, given))]


def _alone(select: Select, given: pa.Schema) -> Iterator[tuple[Key, str]]:
    """Each expression by itself."""
    parts: list[tuple[Key, Select]] = [
        (("select", name), dataclasses.replace(select, items={name: text}, where=None, required=()))
        for name, text in (select.items or {}).items()
    ]
    if select.where is not None:
        parts.append((("where",), dataclasses.replace(select, items=None, required=())))
    for key, part in parts:
        try:
            Query(part, given)
        except WrongQuery as error:
            yield key, in_words(error, given)


def in_words(error: WrongQuery, given: pa.Schema) -> str:
    """With what to write instead of a column that is not there. Outside quotes, capitals are small letters in SQL."""
    text = str(error)
    if (match := _COLUMN.fullmatch(text)) is None:
        return text
    name = match[1].replace('"', "").rpartition(".")[2]
    quoted = [column for column in given.names if column.lower() == name and column != name]
    return f'{text}: write "{quoted[0]}", in double quotes' if quoted else f"{text}: {nearest(name, given.names)}"
