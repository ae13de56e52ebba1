"""Connection profiles: what several tables of a connector have in common, such as an address with its password."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastapi
import pydantic
from fastapi.responses import Response

from ...engine.connectors.connector import CatalogueEntry
from ..database import connections as rows
from ..database.models import ConnectionProfileRow as ProfileRow
from ..database.sealing import Unopened
from .connectors import catalogue, form_of
from .dependencies import ThePart, for_admins
from .failures import Refusal
from .responses import HIDDEN, NOT_TOLD
from .shapes import Listed
from .shapes.connections import ConnectionProfile, ConnectionProfilePatch, ConnectionProfilePost, TestSourceMessage
from .transport import JsonRoute

router = fastapi.APIRouter(tags=["connections"], route_class=JsonRoute)


class Completions(pydantic.BaseModel):
    """Values that a form may propose, by field."""

    values: dict[str, list[str]]


@router.get("/connection_profiles")
def listed(parts: ThePart) -> Listed[ConnectionProfile]:
    """The one that was changed last comes first."""
    with parts.database.read() as session:
        return Listed(data=[profile_of(row) for row in rows.profiles(session)])


@router.post("/connection_profiles", dependencies=[fastapi.Depends(for_admins)])
def create(parts: ThePart, asked: ConnectionProfilePost) -> ConnectionProfile:
    """Secrets of its configuration are kept, and never told again."""
    _check(asked.connector, asked.config)
    with parts.database.begin() as session:
        return profile_of(rows.create_profile(session, name=asked.name, connector=asked.connector, config=asked.config))


@router.post("/connection_profiles/test")
def test(asked: ConnectionProfilePost) -> TestSourceMessage:
    """Whether the configuration has the right shape."""
    try:
        _check(asked.connector, asked.config)
    except Refusal as refusal:
        return TestSourceMessage(error=True, done=True, message=str(refusal))
    return TestSourceMessage(
        error=False, done=True, message="The configuration is valid; test a table to test the connection"
    )


@router.patch("/connection_profiles/{id}", dependencies=[fastapi.Depends(for_admins)])
def change(parts: ThePart, id: str, asked: ConnectionProfilePatch) -> ConnectionProfile:
    """Pipelines keep what they have, until they are restarted with `replan`."""
    changes: dict[str, Any] = {} if asked.name is None else {"name": asked.name}
    with parts.database.begin() as session:
        row = rows.profile(session, id)
        if asked.config is not None:
            secrets = entry_of(row.connector).secrets
            hidden = {name for name in secrets if asked.config.get(name) == HIDDEN and name in row.config}
            for name in hidden:
                if isinstance(row.config[name], Unopened):
                    raise Refusal(409, f"config: {name}: it cannot be kept ({row.config[name].why}): write the value")
            changes["config"] = {**asked.config, **{name: row.config[name] for name in hidden}}
            _check(row.connector, changes["config"])
        return profile_of(rows.change_profile(session, id, changes))


@router.get("/connection_profiles/{id}/autocomplete")
def autocomplete(parts: ThePart, id: str) -> Completions:
    """None of the connectors here has values to propose."""
    with parts.database.read() as session:
        rows.profile(session, id)
    return Completions(values={})


@router.delete("/connection_profiles/{id}", response_class=Response, dependencies=[fastapi.Depends(for_admins)])
def delete(parts: ThePart, id: str) -> Response:
    """Not while tables use it. The answer is empty."""
    with parts.database.begin() as session:
        rows.delete_profile(session, id)
    return Response()


def entry_of(connector: str) -> CatalogueEntry:
    """Raises Refusal."""
    known = catalogue()
    if connector not in known:
        raise Refusal(400, f"there is no connector {connector}: there are {', '.join(known)}")
    return known[connector]


def profile_of(row: ProfileRow) -> ConnectionProfile:
    entry = catalogue().get(row.connector)
    secrets = () if entry is None else entry.secrets
    config = {
        name: HIDDEN if name in secrets or isinstance(value, Unopened) else value for name, value in row.config.items()
    }
    return ConnectionProfile(
        id=row.id, name=row.name, connector=row.connector, config=config, description=row.description
    )


def _check(connector: str, config: Mapping[str, Any]) -> None:
    """Raises Refusal."""
    entry = entry_of(connector)
    if entry.profile is None:
        raise Refusal(400, f"the connector {connector} has no profiles: create a table of it")
    for name in entry.secrets:
        if config.get(name) == HIDDEN:
            raise Refusal(400, f"config: {name}: {NOT_TOLD}")
    try:
        form_of(entry.profile, config)
    except ValueError as error:
        raise Refusal(400, f"config: {error}") from None
