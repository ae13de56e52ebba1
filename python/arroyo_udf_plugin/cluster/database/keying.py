"""Whether the key file is that of the database: looked at when a program starts.

The database has a sample that the keys must open. The first program makes it, and the file.

Guarantees: a program does not start with a key that is missing or of another database. When the file has a new first
key, all secrets are sealed anew by it, so that the older keys can go.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from ...errors import InvalidState
from .models import Base, KeySample
from .sealing import Keys, Sealed

_TEXT = "a sample"
_ROW = 1


def check(connection: Connection, keys: Keys, url: str) -> None:
    """While no other program does. Raises InvalidState."""
    sample = connection.execute(select(KeySample.sample)).scalar()
    if sample is None:
        keys.make()
        connection.execute(insert(KeySample).values(id=_ROW, sample=keys.seal(_TEXT)))
        return
    if not keys.file.exists():
        raise InvalidState(
            f"the key file {keys.file} is missing, and the database {url} has secrets sealed by it: restore it, or say "
            "where it is by database.key_file"
        )
    if not keys.opens(sample):
        raise InvalidState(
            f"the key file {keys.file} has another key than the database {url}: restore the right one, or say where it "
            "is by database.key_file"
        )
    if not keys.has_sealed(sample):
        _seal_anew(connection)
        connection.execute(update(KeySample).values(sample=keys.seal(_TEXT)))


def _seal_anew(connection: Connection) -> None:
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if not isinstance(column.type, Sealed):
                continue
            (key,) = table.primary_key.columns
            for row in connection.execute(select(key, column)).all():
                connection.execute(update(table).where(key == row[0]).values({column: row[1]}))
