"""A Delta table: what it is now, and what is committed to it.

    table = DeltaLog(location_of("s3://bucket/flights"))
    table.noted(["arroyo-udf/flights/out"])          {"arroyo-udf/flights/out": 7}
    table.commit(schema, (), files, "arroyo-udf/flights/out", 8)
                                                     adds files, unless the table has noted 8 or more for this name

What a pipeline has written is noted in the same commit as the files (`txn` of the protocol: a name and a number).

Guarantees: what is committed twice with the same name and number is in the table once, also if two processes do it at
the same time. Commits of others in between are no obstacle, as long as they do not change columns. When `commit`
returns, a loss of power takes nothing back.

Assumes: `vacuum` keeps files for longer than a checkpoint waits for its commit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument, Unreachable
from ..disk import Disk, current
from ..folder import open_folder
from ..location import Location

_TRIES = 30  # of a commit: others are in the way
_RETRIES = 20  # of each, by deltalake itself
_RECENT = 32  # commits that another process may have left
_FEATURES = {
    *("appendOnly", "changeDataFeed", "deletionVectors", "domainMetadata", "invariants", "timestampNtz"),
    *("v2Checkpoint", "vacuumProtocolCheck"),
}
"""Those of tables that add files need not care for, or that are checked here."""
_COMPUTED = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
_FINAL = re.compile(r"\b4(?!08|29)\d\d [A-Z]\w+")  # the request is wrong: a bucket that does not exist, and so on
_ANSWER = re.compile(r"<Code>([^<]+)</Code>\s*<Message>([^<]*)</Message>")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_locks: dict[str, threading.Lock] = {}  # by place: slices of one process do not stand in each other's way


def library(place: str) -> Any:
    """The package deltalake."""
    try:
        import deltalake
        import deltalake.exceptions
        import deltalake.transaction
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            f"{place}: Delta tables need deltalake: pip install 'arroyo_udf_plugin[delta]'"
        ) from error
    return deltalake


@dataclasses.dataclass(frozen=True)
class AddedFile:
    """A file of the table. values: of the partition columns. time: of its last change, in milliseconds."""

    name: str
    size: int
    rows: int
    time: int
    values: Mapping[str, str | None]


class DeltaLog:
    """where: of the table. place: for people. Raises InvalidArgument."""

    def __init__(self, where: Location) -> None:
        self.place = where.text.rstrip("/")
        self._path, self._disk = where.path, current()
        if where.path is None and self.place.startswith("memory://"):
            raise InvalidArgument(f"{self.place}: each reader of memory:// has a memory of its own: name a folder")
        self._library = library(self.place)
        self._lock = _locks.setdefault(self.place, threading.Lock())

    def now(self) -> Any:
        """The table, as deltalake has it; None: there is none."""
        uri = self.place if self._path is None else str(self._path.absolute())
        if self._path is not None and not (self._path / "_delta_log").is_dir():
            return None
        with self._errors(), contextlib.suppress(self._library.exceptions.TableNotFoundError):
            return self._library.DeltaTable(uri)
        return None

    def schema(self, table: Any, partition_by: Sequence[str]) -> pa.Schema:
        """The columns of a table that can be written with these partition columns. Raises InvalidArgument."""
        metadata, protocol = table.metadata(), table.protocol()
        if partition_by and list(partition_by) != metadata.partition_columns:
            there = ", ".join(metadata.partition_columns) or "none"
            raise InvalidArgument(
                f"{self.place}: the partition columns of the table are {there}: leave out partition_by"
            )
        wants = set(protocol.writer_features or ()) - _FEATURES
        settings = metadata.configuration
        wants |= {name for name in settings if name.startswith("delta.constraints.")}
        if settings.get("delta.columnMapping.mode", "none") != "none":
            wants.add("columnMapping")
        if "delta.setTransactionRetentionDuration" in settings:
            wants.add("setTransactionRetentionDuration")  # else it is not known any more what was written
        for field in json.loads(table.schema().to_json())["fields"]:
            wants |= {f"{name} of {field['name']}" for name in _COMPUTED if name in field["metadata"]}
        if wants:
            raise InvalidArgument(
                f"{self.place}: the table has {', '.join(sorted(wants))}, which this sink does not keep to: write to a "
                "table without"
            )
        return pa.schema(table.schema())

    def noted(self, names: Sequence[str]) -> Mapping[str, int]:
        """The numbers of those of these names for which there is one."""
        table = self.now()
        if table is None:
            return {}
        found = {name: table.transaction_version(name) for name in names}
        return {name: number for name, number in found.items() if number is not None}

    def commit(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        files: Sequence[AddedFile],
        name: str,
        number: int,
        marks: Sequence[str] = (),
    ) -> None:
        """Adds files, and notes the number; does nothing if it is noted already, or a later one. schema: of the table
        if it must be made. marks: names to note, too, if they are not. Raises InvalidArgument, Unreachable."""
        if self._path is not None:
            with self._errors():
                self._disk.make(self._path)
        for tried in range(_TRIES):
            with self._lock, self._errors():
                table = self.now() or self._made(schema, partition_by)
                if (table.transaction_version(name) or 0) >= number:
                    self._make_durable(table.version() - _RECENT)
                    return
                self.schema(table, partition_by)
                new = [(mark, 1) for mark in marks if table.transaction_version(mark) is None]
                noted = [self._library.Transaction(*each) for each in [(name, number), *new]]
                try:
                    table.create_write_transaction(
                        [self._action(file) for file in files],
                        "append",
                        table.schema(),
                        table.metadata().partition_columns,
                        commit_properties=self._library.CommitProperties(
                            app_transactions=noted, max_commit_retries=_RETRIES
                        ),
                    )
                except self._library.exceptions.CommitFailedError as error:
                    why = error
                else:
                    self._make_durable(table.version())
                    return
            time.sleep(random.uniform(0, 0.05) * (tried + 1))
        raise InvalidArgument(f"{self.place}: other writers were in the way {_TRIES} times: {why}. Resume later")

    def _made(self, schema: pa.Schema, partition_by: Sequence[str]) -> Any:
        uri = self.place if self._path is None else str(self._path.absolute())
        return self._library.DeltaTable.create(uri, schema, mode="ignore", partition_by=list(partition_by) or None)

    def _action(self, file: AddedFile) -> Any:
        return self._library.transaction.AddAction(
            path=urllib.parse.quote(file.name),
            size=file.size,
            partition_values=dict(file.values),
            modification_time=file.time,
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )

    def _make_durable(self, since: int) -> None:
        """The commits from a version on. In an object store they are."""
        if self._path is None:
            return
        log, first, disk = self._path / "_delta_log", f"{max(since, 0):020}", Disk()  # as deltalake has written them
        for name in open_folder(str(log)).names():
            if name >= first or name == "_last_checkpoint":
                with contextlib.suppress(FileNotFoundError):  # cleaned up by others
                    disk.sync(log / name)
        disk.sync(log)
        disk.sync(self._path)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        exceptions = self._library.exceptions
        try:
            yield
        except (exceptions.CommitFailedError, exceptions.TableNotFoundError):
            raise
        except (exceptions.DeltaError, ValueError) as error:
            raise InvalidArgument(f"{self.place}: {_why(error)}") from error
        except OSError as error:
            if self._path is not None:
                raise InvalidArgument(f"{self.place}: {error.strerror or _why(error)}") from error
            text = f"{self.place}: the store cannot be asked: {_why(error)}"
            if _FINAL.search(str(error)):
                raise InvalidArgument(text) from error
            raise Unreachable(text, "/".join(self.place.split("/")[:3])) from error


def _why(error: BaseException) -> str:
    """What the store has answered, or else how the chain of causes, a line for each, begins and ends."""
    text = str(error)
    if answer := _ANSWER.search(text):
        return f"{answer[1]}: {answer[2].rstrip('.')}"
    lines = [line.strip(" ↳.") for line in _COLOUR.sub("", text).splitlines()]
    lines = [line for line in lines if line] or [type(error).__name__]
    return ": ".join(dict.fromkeys([lines[0], lines[-1]]))
