"""arroyo-udf savepoint: checkpoints with a name, which no retention removes."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..engine.execution.savepoints import Savepoints, TakenSavepoint

_PLACE = click.argument("place", metavar="DIR|URL")
_NAME = click.argument("name")


@click.group("savepoint", short_help="Keep a checkpoint under a name.")
def command() -> None:
    """Copies of checkpoints with a name, in the place of the checkpoints.

    `run --restore NAME` goes back to one of them.
    """


@command.command("take")
@_PLACE
@_NAME
def take(place: str, name: str) -> None:
    """Copy the latest checkpoint, whether its pipeline runs or not. It stays until it is removed."""
    _tell(_savepoints(place).take(name))


@command.command("ls")
@_PLACE
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each.")
def listed(place: str, as_json: bool) -> None:
    """List the savepoints in a place, by name."""
    for savepoint in _savepoints(place).listed():
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(savepoint)))
        else:
            _tell(savepoint)


@command.command("rm")
@_PLACE
@_NAME
def remove(place: str, name: str) -> None:
    """Remove a savepoint."""
    _savepoints(place).delete(name)


def _savepoints(place: str) -> Savepoints:
    from ..engine.execution.savepoints import Savepoints
    from ..engine.execution.store import open_store

    return Savepoints(open_store(place))


def _tell(savepoint: TakenSavepoint) -> None:
    click.echo(
        f"{savepoint.name}  checkpoint {savepoint.epoch}  {savepoint.time or '-'}  "
        f"{savepoint.state_bytes:,} bytes of state"
    )
