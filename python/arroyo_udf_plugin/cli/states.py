"""arroyo-udf states: the life of a job, as a table."""

from __future__ import annotations

import click


@click.command("states", short_help="Print the life of a job, as a table.")
def command() -> None:
    """Print the states of a job: what each event does in each of them, and what the scheduler is asked for.

    What is not listed has no effect.
    """
    from ..cluster.states import actions, table

    click.echo(f"{'state':<20}{'event':<18}next state")
    before = None
    for state, event, following in table():
        if before not in (None, state):
            click.echo()
        before = state
        click.echo(f"{state:<20}{event:<18}{following}")
    click.echo(f"\n{'state':<20}{'when':<18}action")
    for asked_in, when, action in actions():
        click.echo(f"{asked_in:<20}{when:<18}{action}")
