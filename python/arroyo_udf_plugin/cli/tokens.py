"""arroyo-udf token and login: who may use the API of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..author.options import seconds_of
from .cluster import configured_by

if TYPE_CHECKING:
    from ..cluster.tokens import Role, Tokens


def _with_tokens(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command gets the tokens of the data folder."""

    @click.option("-c", "--config", "file", type=click.Path(path_type=Path), help="A TOML file with settings.")
    @click.option("--data", metavar="DIR", help="The cluster's data folder.")
    @functools.wraps(command)
    def wrapped(file: Path | None, data: str | None, **others: Any) -> None:
        settings = configured_by(file, {"data": data}).settings
        from ..cluster.tokens import Tokens

        command(Tokens(settings.data), **others)

    return wrapped


@click.group("token", short_help="Who may use a cluster's API.")
def group() -> None:
    """Tokens of a cluster's API, in its data folder. A change holds from the next request on.

    A token has a role: read (see everything but secrets), run (pipelines and their functions), or admin (saved
    functions, profiles and tables, too).
    """


@group.command()
@_with_tokens
def show(tokens: Tokens) -> None:
    """Print the token of whoever runs the cluster."""
    click.echo(tokens.own())


@group.command("ls")
@_with_tokens
def listed(tokens: Tokens) -> None:
    """List names and roles. Tokens themselves are not kept."""
    for name, known in tokens.known().items():
        since = "-" if not known.created_at else datetime.fromtimestamp(known.created_at, UTC).isoformat()[:10]
        until = max((expiry for expiry in known.keys.values() if expiry is not None), default=None)
        note = "" if until is None else f"  the one before holds until {datetime.fromtimestamp(until, UTC):%F %R} UTC"
        click.echo(f"{name:<24}{known.role:<8}{since}{note}")


@group.command()
@click.argument("name")
@click.option("--role", type=click.Choice(["read", "run", "admin"]), required=True)
@_with_tokens
def add(tokens: Tokens, name: str, role: Role) -> None:
    """Make a token, and print it: it is not told again."""
    click.echo(tokens.add(name, role))


@group.command()
@click.argument("name")
@click.option("--keep", metavar="TIME", default="0s", help="How long the old one still holds, such as 1h.")
@_with_tokens
def rotate(tokens: Tokens, name: str, keep: str) -> None:
    """Make a new token in the place of one, and print it. Its browsers are logged out."""
    try:
        seconds = seconds_of(keep)
    except ValueError:
        raise click.UsageError(f"--keep: {keep!r} is no time: write 1h") from None
    click.echo(tokens.rotate(name, seconds))


@group.command()
@click.argument("name")
@_with_tokens
def remove(tokens: Tokens, name: str) -> None:
    """Remove a token, and log its browsers out."""
    tokens.remove(name)


@click.command(short_help="Print an address that logs a browser in.")
@click.option("-c", "--config", "file", type=click.Path(path_type=Path), help="A TOML file with settings.")
@click.option("--data", metavar="DIR", help="The cluster's data folder.")
@click.option("--url", metavar="URL", help="The address of the API; default: the one in the data folder.")
def login(file: Path | None, data: str | None, url: str | None) -> None:
    """Print an address that logs a browser in, once, within ten minutes."""
    settings = configured_by(file, {"data": data}).settings
    from ..cluster.client import Client

    client = Client.of(settings, url)
    click.echo(client.address + client.ask("POST", "/logins", {})["path"])
