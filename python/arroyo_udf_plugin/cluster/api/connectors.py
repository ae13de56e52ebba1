"""The catalogue of connectors: what a form needs to know of each, and configurations against these forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import fastapi
import pydantic

from ...engine.connectors.connector import CatalogueEntry, Form
from ...engine.connectors.registry import connectors
from .shapes import Listed
from .shapes.connections import Connector, TableType


def catalogue() -> Mapping[str, CatalogueEntry]:
    """The connectors that the API offers, by name."""
    return {name: connector.entry for name, connector in sorted(connectors().items()) if connector.entry is not None}


def _shape(name: str, entry: CatalogueEntry) -> Connector:
    connector = connectors()[name]
    return Connector(
        id=name,
        name=entry.title,
        icon=_ICON.format(shape=entry.icon),
        description=entry.description,
        table_config=_schema(entry.table),
        connection_config=None if entry.profile is None else _schema(entry.profile),
        enabled=True,
        source=connector.source is not None,
        sink=connector.sink is not None,
        custom_schemas=entry.has_schema,
        testing=True,
        hidden=entry.hidden,
    )


_ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="currentColor" d="{shape}"/></svg>'


def _schema(model: type[pydantic.BaseModel]) -> str:
    return json.dumps(model.model_json_schema())


def form_of(model: type[Form], config: Mapping[str, Any]) -> Form:
    """Raises ValueError, with all that is wrong."""
    try:
        return model.model_validate(dict(config))
    except pydantic.ValidationError as error:
        problems = error.errors()
        messages = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in problems
        ]
        if any(problem["type"] == "extra_forbidden" for problem in problems):
            messages.append(f"write, for example, {json.dumps(dict(model.example))}")
        raise ValueError("; ".join(messages)) from None


def table_type(name: str, config: Mapping[str, Any]) -> TableType:
    """Of a table of this connector. Raises ValueError."""
    chosen = form_of(catalogue()[name].table, config).table_type()
    return chosen or ("sink" if connectors()[name].source is None else "source")


router = fastapi.APIRouter(tags=["connectors"])


@router.get("/connectors")
async def listed() -> Listed[Connector]:
    """By name; hidden ones, too."""
    entries = sorted(catalogue().items(), key=lambda pair: pair[1].title)
    return Listed(data=[_shape(*pair) for pair in entries])
