"""Values of PostgreSQL, as its output functions write them, as Arrow arrays.

Guarantees: a text that the type cannot hold, such as 'infinity' for a timestamp, is a refused row with the text.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ....plugin.casting import Cast
from ..lookup_types import PostgresqlReading
from ..text_values import parse_texts, shortened

_READING = PostgresqlReading()
_ITEM = re.compile(rb'"((?:[^"\\]|\\.)*)"|([^",{}\\]+)', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)

Texts = Sequence[bytes | None]


def natural(declared: str) -> pa.DataType:
    """The type of a column that nobody has given one."""
    return _READING.natural(declared) or pa.string()


def can_be(declared: str, wanted: pa.DataType) -> bool:
    """Whether values of a column are read as this type."""
    own = _READING.natural(declared)
    if own is None:
        return bool(pa.types.is_string(wanted)) or _READING.expression("t.c", declared, wanted) is not None
    return bool(own == wanted) or _READING.expression("t.c", declared, wanted) is not None


def values(texts: Texts, wanted: pa.DataType) -> Cast:
    """Texts of a column that can be of this type."""
    if pa.types.is_list(wanted):
        return _lists(texts, wanted)
    if pa.types.is_binary(wanted):
        return _bytes(texts)
    column = pa.array(texts, pa.binary())
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:
        return _not_utf8(texts, wanted)
    if pa.types.is_boolean(wanted):
        return Cast(pc.equal(column, "t"))
    return parse_texts(column, wanted)


def _not_utf8(texts: Texts, wanted: pa.DataType) -> Cast:
    """Of a database whose encoding is SQL_ASCII."""
    refused, kept = {}, list(texts)
    for at, text in enumerate(texts):
        try:
            (text or b"").decode()
        except UnicodeDecodeError:
            kept[at], refused[at] = None, f"{text!r} is not UTF-8"
    done = values(kept, wanted)
    return Cast(done.array, done.refused | refused)


def _bytes(texts: Texts) -> Cast:
    found, refused = list[bytes | None](), {}
    for at, text in enumerate(texts):
        try:
            if text is not None and not text.startswith(b"\\x"):
                raise ValueError
            found.append(None if text is None else binascii.unhexlify(text[2:]))
        except ValueError:
            found.append(None)
            refused[at] = f"{shortened(repr(text))} is not binary"
    return Cast(pa.array(found, pa.binary()), refused)


def _lists(texts: Texts, wanted: pa.DataType) -> Cast:
    """All items are read at once."""
    refused: dict[int, str] = {}
    offsets, items, owners = [0], list[bytes | None](), list[int]()
    for at, text in enumerate(texts):
        if text is not None:
            own = _items(text)
            if own is None:
                refused[at] = f"{shortened(repr(text))} is not a list in one dimension"
            else:
                items += own
                owners += [at] * len(own)
        offsets.append(len(items))
    done = values(items, wanted.value_type)
    for item, why in done.refused.items():
        refused.setdefault(owners[item], why)
    missing = pa.array([text is None or at in refused for at, text in enumerate(texts)], pa.bool_())
    array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), done.array, mask=missing)
    return Cast(array.cast(wanted), refused)


def _items(text: bytes) -> list[bytes | None] | None:
    """Of an array; None: it has several dimensions, or begins at another number than 1."""
    if not text.startswith(b"{") or text.startswith(b"{{"):
        return None
    items: list[bytes | None] = []
    for match in _ITEM.finditer(text, 1, len(text) - 1):
        quoted, plain = match.groups()
        if quoted is not None:
            items.append(_ESCAPED.sub(rb"\1", quoted))
        else:
            items.append(None if plain == b"NULL" else plain)
    return items
