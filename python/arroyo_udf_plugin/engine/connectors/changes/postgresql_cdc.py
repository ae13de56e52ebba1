"""Change data capture from PostgreSQL: a table as it is, and then each of its changes, out of the server's log.

Guarantees: each row of the snapshot and each change behind it comes once, in the order of commits, also after a resume.
A slot, a table or a server with which this cannot be kept is refused by name. The server keeps its log for the slot
until a checkpoint is behind it.

Assumes: a slot belongs to one pipeline.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic

from ....errors import InvalidArgument, Unreachable
from ..bad_records import BadRecords
from ..connector import CatalogueEntry, Connector, Form
from ..described import Input, Period
from ..interface import Json, Partition, Source, has_ended
from ..interrupt import Interrupt
from ..location import database_of
from ..table_options import BOOLEANS, TableOptions, chosen, period_seconds
from . import follower
from .change_rows import METADATA, ChangeColumns
from .changes_partition import ChangesPartition
from .follower import FollowingOptions
from .positions import ChangesPosition
from .publisher import Publisher
from .wire import Lost, Refused, Wire

_SLOT = r"^[a-z0-9_]{1,63}$"
_TURN = 0.1  # seconds between two attempts to reach a server
_OTHERS = re.compile(r"[^a-z0-9_]")


class PostgresqlChanges(Input):
    """A table of PostgreSQL and its changes."""

    metadata_keys: ClassVar[tuple[str, ...]] = METADATA

    type: Literal["postgresql_cdc"] = "postgresql_cdc"

    uri: Annotated[str, pydantic.Field(repr=False)]
    """The database: `postgresql://USER:${PASSWORD}@HOST/DATABASE`. The user needs the right REPLICATION."""

    table: Annotated[str, pydantic.Field(min_length=1)]
    """The table, as `SCHEMA.TABLE`; without a schema, it is in `public`."""

    slot: Annotated[str | None, pydantic.Field(pattern=_SLOT)] = None
    """The slot for which the server keeps its log: small letters, digits and `_`; one for each pipeline. It is made if
    it is not there. Default: `arroyo_udf_` and the table's name."""

    publication: Annotated[str | None, pydantic.Field(min_length=1, max_length=63)] = None
    """The publication that has the table. It is made if it is not there. Default: the slot's name."""

    snapshot: bool = True
    """The first run begins with the rows that are in the table; otherwise with changes from now on."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; otherwise all of the table's. Also
    of metadata: "before" may be a struct with some columns."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "op", "before", "after", "unsent", "lsn", "xid" or "committed" of a change."""

    bad_records: BadRecords = "fail"
    """What happens to rows with a value that its type cannot hold: "fail", "drop" or "dead_letter"."""

    truncate: Literal["fail", "row"] = "fail"
    """What TRUNCATE is: an error, or a row whose `op` is "t", without values."""

    heartbeat: Period = 10.0
    """Seconds between two messages that tell the server what may go; fewer than its `wal_sender_timeout`."""

    bounded: bool = False
    """Ends at what was committed at the start; otherwise there is no end."""

    @property
    def ends(self) -> bool:
        return self.bounded

    def source(self, parallelism: int) -> Source:
        return ChangesSource(self)

    @property
    def publisher(self) -> Publisher:
        slot = self.slot or f"arroyo_udf_{_OTHERS.sub('_', self.table.lower())}"[:63]
        return Publisher(self.uri, self.table, slot, self.publication or slot)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        columns = options.columns or ()
        return cls(
            **chosen(
                {
                    "uri": options.need("uri", "postgresql://user:password@host/name"),
                    "table": options.text("table") or options.table,
                    "slot": options.text("slot"),
                    "publication": options.text("publication"),
                    "snapshot": options.one_of("snapshot", BOOLEANS),
                    "types": {column.name: str(column.type) for column in columns},
                    "metadata": {
                        column.name: column.metadata.value for column in columns if column.metadata is not None
                    },
                    "bad_records": options.one_of("bad_data", {name: name for name in ("fail", "drop", "dead_letter")}),
                    "truncate": options.one_of("truncate", {name: name for name in ("fail", "row")}),
                    "heartbeat": options.read("heartbeat", period_seconds, "a time such as 10 s"),
                    "bounded": options.one_of("bounded", BOOLEANS),
                }
            )
        )


class ChangesSource:
    """Asks the server when its partition is wanted; before, only for columns that nobody has named."""

    resumable = True
    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: PostgresqlChanges) -> None:
        where = database_of(described.uri, "uri")
        if where.path is not None:
            raise InvalidArgument(
                "uri: changes are read from PostgreSQL: write postgresql://USER:${PASSWORD}@HOST/NAME"
            )
        self._publisher = described.publisher
        self.name = f"changes of {self._publisher.name}"
        self._following = FollowingOptions(
            described.snapshot, described.truncate == "row", described.bounded, described.heartbeat
        )
        self._columns = ChangeColumns(described.types, described.metadata, self._declared)
        self.schema = self._columns.schema
        self._open: ChangesPartition | None = None
        self._is_checked = False

    def _declared(self) -> Mapping[str, str]:
        with self._asking() as wire:
            return self._publisher.found(wire).declared

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Wire]:
        """A connection for a question."""
        publisher = self._publisher
        with contextlib.closing(Interrupt()) as interrupt:
            try:
                with self._connected(interrupt) as wire:
                    yield wire
            except Lost as error:
                text = f"{publisher.server} does not answer: start it, or correct the uri ({error})"
                raise Unreachable(text, publisher.server) from None
            except Refused as error:
                raise publisher.refusal(error) from None

    def _connected(self, interrupt: Interrupt) -> Wire:
        """Waits for a server that is away for a moment."""
        late = time.monotonic() + follower.PATIENCE
        while True:
            try:
                return self._publisher.connected(interrupt)
            except Lost:
                if time.monotonic() > late:
                    raise
            time.sleep(_TURN)

    def partitions(self) -> Sequence[str]:
        if not self._is_checked:
            with self._asking() as wire:
                self._publisher.check_log(wire)
                self._columns.check(self._publisher.found(wire).declared, self._publisher.place)
            self._is_checked = True
        return [self._publisher.name]

    def check(self, positions: Mapping[str, Json]) -> None:
        at = positions.get(self._publisher.name)
        if positions and at is None:
            raise InvalidArgument(
                f"the checkpoints are of {', '.join(positions)}, not of {self._publisher.name}: name that table"
            )
        if at and not has_ended(at):
            self._check(ChangesPosition.of(at))

    def _check(self, position: ChangesPosition) -> None:
        publisher = self._publisher
        with self._asking() as wire:
            table = publisher.found(wire)
            slot = publisher.check_slot(publisher.slot_found(wire), publisher.database(wire))
            publisher.check_position(slot, position, table, position.system or "")

    def open(self, partition: str, position: Json | None) -> Partition:
        at = ChangesPosition.of(position or {})
        self._open = ChangesPartition(self._publisher, self._columns, self._following, at)
        return self._open

    def announce(self, positions: Mapping[str, Json]) -> None:
        lsn = positions.get(self._publisher.name, {}).get("lsn")
        if self._open is not None and lsn is not None:
            self._open.confirm(lsn)

    def close(self) -> None: ...


_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000)]


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"table": "public.customers", "slot": "customers"}

    table: Annotated[_Text, pydantic.Field(title="Table, with its schema")]
    slot: Annotated[str | None, pydantic.Field(pattern=_SLOT, title="Replication slot, of this pipeline alone")] = None
    publication: Annotated[_Text | None, pydantic.Field(title="Publication, if it has another name than the slot")] = (
        None
    )
    snapshot: Annotated[bool, pydantic.Field(title="Begin with the rows that are in the table")] = True

    def table_type(self) -> Literal["source", "sink"] | None:
        return "source"

    def options(self) -> dict[str, str]:
        texts = {"table": self.table, "slot": self.slot, "publication": self.publication}
        return {name: text for name, text in texts.items() if text is not None} | {
            "snapshot": "true" if self.snapshot else "false"
        }


class _Address(Form):
    example: ClassVar[Mapping[str, Any]] = {"uri": "postgresql://user:password@host/name"}

    uri: Annotated[_Text, pydantic.Field(title="URI", json_schema_extra={"format": "var-str"})]

    @pydantic.field_validator("uri")
    @classmethod
    def _is_postgresql(cls, uri: str) -> str:
        if not uri.startswith(("postgresql://", "postgres://", "${", "{{")):  # a variable may be all of it
            raise ValueError(f"it begins with postgresql://, such as {cls.example['uri']}")
        return uri

    def options(self) -> dict[str, str]:
        return {"uri": self.uri}


CONNECTOR = Connector(
    "postgresql_cdc",
    source=PostgresqlChanges,
    entry=CatalogueEntry(
        "PostgreSQL changes",
        "A table of a PostgreSQL database, and then each of its changes",
        _Form,
        profile=_Address,
        secrets=("uri",),
    ),
)
