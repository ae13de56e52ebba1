"""arroyo-udf cache: what earlier builds have left, to make the next ones quick."""

import re

import click

from ..build import cache, storage

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def _bytes(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """The number in "500MB" or "2 GB"."""
    if text is None:
        return None
    said = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?", text.strip().lower())
    if said is None:
        raise click.BadParameter(f"{text!r} is no size; write 500MB or 2GB, say")
    return int(float(said[1]) * _UNITS[said[2]])


@click.command("cache", short_help="Show what builds have left, and free it.")
@click.option("--clear", is_flag=True, help="Delete everything.")
@click.option(
    "--limit", metavar="SIZE", callback=_bytes, help="Delete what was used longest ago, down to this, as 2GB."
)
def command(clear: bool, limit: int | None) -> None:
    """Show where the build cache is and what it holds; or make it smaller.

    It may be deleted at any time: then the next build takes longer. XDG_CACHE_HOME names another place.
    """
    deleted = None
    if clear or limit is not None:
        deleted = storage.shrink(0 if clear else limit or 0)
    parts, crates = storage.parts(), storage.crates()
    size, n_libraries = sum(part.bytes for part in parts), sum(part.is_library for part in parts)
    click.echo(f"{cache.folder()}: {_shown(size + crates.bytes)}")
    click.echo(f"{n_libraries} libraries, {_shown(size)}; crates for Rust and async C, {_shown(crates.bytes)}")
    if deleted is not None:
        click.echo(f"{_shown(deleted)} deleted")


def _shown(size: float) -> str:
    units = ["GB", "MB", "kB", "bytes"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop()
    return f"{size:.3g} {units[-1]}"
