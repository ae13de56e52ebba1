"""arroyo-udf states: the life of a job, as a table."""

from __future__ import annotations

import click


@click.command("states", short_help="Print the life of a job, as a table.")
def command() -> None:
    """Print the states of a job: what each event does in each of them.

    What is not listed has no effect.
    """
    from ..cluster.states import table

    click.echo(f"{'state':<20}{'event':<18}{'next state':<20}action")
    before = None
    for state, event, following, action in table():
        if before not in (None, state):
            click.echo()
        before = state
        click.echo(f"{state:<20}{event:<18}{following:<20}{action}")
