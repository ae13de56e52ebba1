"""arroyo-udf doctor: what is wrong with the installation of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import printable
from .cluster import configured_by


@click.command("doctor", short_help="Say what is wrong with a cluster's installation.")
@click.option("-c", "--config", "file", type=click.Path(path_type=Path), help="A TOML file with settings.")
@click.option("--data", metavar="DIR", help="The cluster's data folder.")
@click.option("--database", metavar="URL", help="sqlite:////folder/file or postgresql://user@host/name.")
def command(file: Path | None, **flags: Any) -> None:
    """Look at data folder, disk, token, database, keys, clock, stores, roots, limits and API.

    Run it as the user of the cluster, with its configuration. Exit status 1: something is wrong.
    """
    settings = configured_by(file, flags).settings
    from ..cluster.doctor import examine

    findings = list(examine(settings))
    for finding in findings:
        click.echo(f"{'WRONG' if finding.is_wrong else 'ok':<6} {finding.what:<12} {printable(finding.text)}")
    if any(finding.is_wrong for finding in findings):
        raise SystemExit(1)
