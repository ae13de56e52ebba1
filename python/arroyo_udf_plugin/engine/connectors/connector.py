"""What a kind of table is: a `Connector`. registry.py has those of this package and of others.

    class Echo(Output):                      # its keys in a description
        type: Literal["echo"] = "echo"
        ...

    CONNECTOR = Connector("echo", sink=Echo)

Other packages name theirs in pyproject.toml:

    [project.entry-points."arroyo_udf_plugin.connectors"]
    echo = "my_package.echo:CONNECTOR"
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pydantic

from .described import Input, Output
from .table_options import TableOptions


class Form(pydantic.BaseModel):
    """What a web page asks for, of a table or of a connection profile. example: a right configuration."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    example: ClassVar[Mapping[str, Any]] = {}

    def table_type(self) -> Literal["source", "sink"] | None:
        """What the table is; None: the connector is only one."""
        return None

    @abc.abstractmethod
    def options(self) -> dict[str, str]:
        """Those of CREATE TABLE, without the connector's name."""

    def added_to(self, options: Mapping[str, str]) -> dict[str, str]:
        """Of a profile: what the options of a table become with its own."""
        return {**options, **self.options()}


class NoOptions(Form):
    def options(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class CatalogueEntry:
    """The connector in the catalogue of an API.

    title, description: for people. table: the form of a table. profile: that of what several tables share, such as an
    address; None: there are no profiles. A table needs one, unless all of its fields may be left out. secrets: fields
    of `profile` that are told to workers alone. has_schema: users may name columns. hidden: pages do not offer it.
    icon: the path of an SVG of 24 by 24.
    """

    title: str
    description: str
    table: type[Form]
    profile: type[Form] | None = None
    secrets: tuple[str, ...] = ()
    has_schema: bool = True
    hidden: bool = False
    icon: str = "M4 5h16v14H4z"

    @property
    def needs_profile(self) -> bool:
        fields = {} if self.profile is None else self.profile.model_fields
        return any(field.is_required() for field in fields.values())


@dataclass(frozen=True)
class Connector:
    """name: in WITH (connector = 'name'). source, sink: the models of its sources and sinks; None: it has none.

    lookup: the keys of a `pipeline.Lookup` that say where a table looks, in SQLite, PostgreSQL or Redis: `uri` and
    `table`; None: rows cannot look up others there. lookup_metadata: what METADATA FROM may name there.
    in_sql: tables of a query may have it. entry: None: the API does not offer it.
    """

    name: str
    source: type[Input] | None = None
    sink: type[Output] | None = None
    lookup: Callable[[TableOptions], Mapping[str, Any]] | None = None
    lookup_metadata: tuple[str, ...] = ()
    in_sql: bool = True
    entry: CatalogueEntry | None = None
