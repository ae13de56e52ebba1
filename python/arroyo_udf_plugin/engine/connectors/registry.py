"""The connectors that there are: those of this package, and those of installed ones by their entry points.

    [project.entry-points."arroyo_udf_plugin.connectors"]
    echo = "my_package.echo:CONNECTOR"

Descriptions, SQL and the API of a cluster know a connector from here alone; workers do, too, because they read
descriptions.

Guarantees: a package whose connector cannot be loaded disturbs no other one: who asks for it is told why.

Assumes: pipeline/description.py is imported before somebody else asks for connectors. It asks at its end, so that a
package may import whatever it likes.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import get_args

import pydantic

from ...errors import printable
from . import adbc, blackhole, filesystem, impulse, preview, single, standard_input, standard_output, table
from .changes.postgresql_cdc import CONNECTOR as POSTGRESQL_CDC
from .connector import CatalogueEntry, Connector, Form
from .delta.connector import CONNECTOR as DELTA
from .described import Input, Output
from .http.connector import CONNECTORS as HTTP
from .kafka.connector import CONNECTOR as KAFKA
from .redis.connector import CONNECTOR as REDIS
from .tail.connector import CONNECTOR as TAIL

GROUP = "arroyo_udf_plugin.connectors"
_MEMORY = "memory"
OWN = (
    impulse.CONNECTOR,
    filesystem.CONNECTOR,
    single.CONNECTOR,
    TAIL,
    standard_input.CONNECTOR,
    standard_output.CONNECTOR,
    blackhole.CONNECTOR,
    *table.CONNECTORS,
    adbc.CONNECTOR,
    KAFKA,
    POSTGRESQL_CDC,
    REDIS,
    *HTTP,
    DELTA,
    preview.CONNECTOR,
)


def connectors() -> Mapping[str, Connector]:
    """By name."""
    return _installed()[0]


def broken() -> Mapping[str, str]:
    """Installed ones that cannot be used, by name: why."""
    return _installed()[1]


def source_models() -> tuple[type[Input], ...]:
    """Those of descriptions, each once."""
    return tuple(dict.fromkeys(connector.source for connector in connectors().values() if connector.source is not None))


def sink_models() -> tuple[type[Output], ...]:
    """The same of sinks."""
    return tuple(dict.fromkeys(connector.sink for connector in connectors().values() if connector.sink is not None))


@functools.cache
def _installed() -> tuple[Mapping[str, Connector], Mapping[str, str]]:
    known = {own.name: own for own in OWN}
    types = {_type_of(model) for own in OWN for model in (own.source, own.sink) if model is not None}
    broken: dict[str, str] = {}
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = "a package"
        try:
            package = package if point.dist is None else f"the package {point.dist.name} {point.dist.version}"
            connector = _checked(point.load(), point.name, known, types)
        except (Exception, SystemExit) as error:  # of somebody else's code
            reason = printable(f"{type(error).__name__}: {error}")
            broken.setdefault(point.name, f"the connector {point.name} of {package} ({point.value}): {reason}")
        else:
            known[connector.name] = connector
            types |= {_type_of(model) for model in (connector.source, connector.sink) if model is not None}
    return known, broken


def _checked(connector: object, name: str, known: Mapping[str, Connector], types: set[str]) -> Connector:
    """Raises TypeError, ValueError."""
    if not isinstance(connector, Connector):
        raise TypeError("name a Connector in the entry point")
    if connector.name != name:
        raise ValueError(f"its name is {connector.name!r}: give its entry point the same name")
    if name in known:
        raise ValueError("there is a connector of this name already: uninstall one of them")
    if name == _MEMORY:
        raise ValueError(f"{_MEMORY!r} names tables without a connector: rename it")
    for model, base in ((connector.source, Input), (connector.sink, Output)):
        if model is None:
            continue
        if not (isinstance(model, type) and issubclass(model, base)):
            raise TypeError(f"{model!r} is no {base.__name__}")
        if missing := getattr(model, "__abstractmethods__", None):
            raise TypeError(f"{model.__name__} does not define {', '.join(sorted(missing))}")
        if (type_ := _type_of(model)) in types:
            raise ValueError(f"the type {type_!r} is that of another connector: rename it")
        _check_schema(model)
    if connector.entry is not None:
        _check_entry(connector.entry)
    return connector


def _check_entry(entry: object) -> None:
    """Raises TypeError, ValueError, and what pydantic raises."""
    if not isinstance(entry, CatalogueEntry):
        raise TypeError(f"{entry!r} is no CatalogueEntry")
    for form in (entry.table, entry.profile):
        if form is not None and not (isinstance(form, type) and issubclass(form, Form)):
            raise TypeError(f"{form!r} is no Form")
        if form is not None:
            _check_schema(form)
    fields = {} if entry.profile is None else entry.profile.model_fields
    if unknown := [secret for secret in entry.secrets if secret not in fields]:
        raise ValueError(f"the secret {unknown[0]!r} is no field of its profile, so it would be shown: name the field")


def _check_schema(model: type[pydantic.BaseModel]) -> None:
    """One that cannot be built would be in the way of all others. Raises what pydantic raises."""
    model.model_rebuild()
    model.model_json_schema()


def _type_of(model: type[Input] | type[Output]) -> str:
    """Raises ValueError."""
    field = model.model_fields.get("type")
    if field is None or not isinstance(field.default, str):
        raise ValueError(f'{model.__name__} has no type: write type: Literal["name"] = "name"')
    if get_args(field.annotation) != (field.default,):
        raise ValueError(f'the type of {model.__name__}: write type: Literal["{field.default}"] = "{field.default}"')
    return field.default
