"""arroyo-udf new: a folder with a function to begin with."""

import re
from pathlib import Path

import click

TEMPLATES = Path(__file__).parent.parent / "build" / "templates" / "new"
SUFFIXES = {"python": ".py", "rust": ".rs", "c": ".c"}


@click.command("new", short_help="Make a folder with a first function.")
@click.argument("name")
@click.option("--lang", type=click.Choice(list(SUFFIXES)), required=True, help="The language to write in.")
def command(name: str, lang: str) -> None:
    """Create the folder NAME with a first function, some rows, and a README with the next two commands."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise click.ClickException(f"{name!r} cannot name a plugin: use a-z, 0-9 and _, and begin with a letter")
    folder, suffix = Path(name), SUFFIXES[lang]
    readme = (TEMPLATES / "README.md").read_text()
    try:
        folder.mkdir()
        (folder / f"{name}{suffix}").write_text((TEMPLATES / f"udf{suffix}").read_text())
        (folder / "rows.csv").write_text((TEMPLATES / "rows.csv").read_text())
        (folder / "README.md").write_text(readme.replace("NAME", name).replace("SUFFIX", suffix))
    except FileExistsError:
        raise click.ClickException(f"{folder} exists already: choose another name, or remove it first") from None
    except OSError as error:
        raise click.ClickException(f"{folder.absolute()} cannot be made: {error.strerror}") from None
    click.echo(f"{folder / (name + suffix)} is yours to edit; {folder / 'README.md'} says how to build and run it")
