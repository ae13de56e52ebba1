"""arroyo-udf jobs: pipelines of a cluster and their jobs, over its API.

A pipeline is named by its id, the id of its job, or its name, if no other pipeline has it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from ..errors import InvalidArgument, printable
from .cluster import configured_by

if TYPE_CHECKING:
    from ..cluster.client import Client

_WIDEST = 60


def _with_client(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command gets a client of the cluster."""

    @click.option("-c", "--config", "file", type=click.Path(path_type=Path), help="A TOML file with settings.")
    @click.option("--data", metavar="DIR", help="The cluster's data folder, with its token.")
    @click.option("--url", metavar="URL", help="The address of the API; default: the one in the data folder.")
    @functools.wraps(command)
    def wrapped(file: Path | None, data: str | None, url: str | None, **others: Any) -> None:
        settings = configured_by(file, {"data": data}).settings
        from ..cluster.client import Client

        command(Client.of(settings, url), **others)

    return wrapped


@click.group("jobs", short_help="Look at a cluster's jobs, and stop them.")
def group() -> None:
    """Jobs of a cluster. The token is that of the data folder, or of the variable ARROYO_UDF_TOKEN."""


@group.command("ls")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Pipelines that have this label.")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Jobs in this state, such as Running.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each job.")
@_with_client
def listed(client: Client, labels: Sequence[str], states: Sequence[str], as_json: bool) -> None:
    """List jobs, the newest first."""
    asked = urlencode([("label", label) for label in labels] + [("state", state) for state in states])
    names = {
        pipeline["id"]: pipeline["name"] for pipeline in client.pages(f"/pipelines?{asked}" if asked else "/pipelines")
    }
    jobs = client.ask("GET", f"/jobs?{asked}")["data"]
    if as_json:
        for job in jobs:
            click.echo(json.dumps({"name": names.get(job["pipeline_id"])} | job))
        return
    rows = [
        [job["pipeline_id"], names.get(job["pipeline_id"], ""), job["state"], _time(job["start_time"]), _reason(job)]
        for job in jobs
    ]
    _table(["pipeline", "name", "state", "started", ""], rows)


@group.command()
@click.argument("pipeline")
@_with_client
def show(client: Client, pipeline: str) -> None:
    """Print a pipeline and its job, as JSON."""
    id = _pipeline_id(client, pipeline)
    job = _job(client, id)
    click.echo(json.dumps({"pipeline": client.ask("GET", f"/pipelines/{id}"), "job": job}, indent=2))


@group.command()
@click.argument("pipeline")
@click.option(
    "--level", type=click.Choice(["error", "warn", "info"]), default="info", help="This level and worse ones."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, help="So many of the latest entries.")
@_with_client
def logs(client: Client, pipeline: str, level: str, limit: int) -> None:
    """Print the log of a job, the oldest entry first."""
    id = _pipeline_id(client, pipeline)
    path = f"/pipelines/{id}/jobs/{_job(client, id)['id']}/errors?level={level}&limit={limit}"
    for entry in reversed(client.ask("GET", path)["data"]):
        click.echo(f"{_time(entry['created_at'])} {entry['level']:<5} {printable(entry['message'])}")
        if entry["details"] and entry["details"] != entry["message"]:
            for line in entry["details"].splitlines():
                click.echo(f"    {printable(line)}")


def _of_many(command: Callable[..., None]) -> Callable[..., None]:
    """Adds what says which pipelines are meant: by themselves, or by labels and states."""

    @click.argument("pipelines", nargs=-1)
    @click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="All that have this label.")
    @click.option("--state", "states", multiple=True, metavar="STATE", help="All whose jobs are in this state.")
    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        if bool(given["pipelines"]) == bool(given["labels"] or given["states"]):
            raise click.UsageError("name pipelines, or say --label or --state")
        command(**given)

    return wrapped


@group.command()
@_of_many
@click.option(
    "--how",
    type=click.Choice(["checkpoint", "graceful", "immediate", "force"]),
    default="checkpoint",
    show_default=True,
)
@_with_client
def stop(client: Client, pipelines: Sequence[str], labels: Sequence[str], states: Sequence[str], how: str) -> None:
    """Stop jobs. It is a wish: `jobs show` says when it has come true."""
    _act(client, pipelines, labels, states, {"action": "stop", "how": how}, lambda id: ("PATCH", id, {"stop": how}))


@group.command()
@_of_many
@_with_client
def start(client: Client, pipelines: Sequence[str], labels: Sequence[str], states: Sequence[str]) -> None:
    """Start jobs that have stopped or failed, from their last checkpoints."""
    _act(client, pipelines, labels, states, {"action": "start"}, lambda id: ("PATCH", id, {"stop": "none"}))


@group.command()
@_of_many
@_with_client
def restart(client: Client, pipelines: Sequence[str], labels: Sequence[str], states: Sequence[str]) -> None:
    """Start jobs anew, from their last checkpoints."""
    _act(client, pipelines, labels, states, {"action": "restart"}, lambda id: ("POST", f"{id}/restart", {}))


def _act(
    client: Client,
    pipelines: Sequence[str],
    labels: Sequence[str],
    states: Sequence[str],
    of_many: dict[str, Any],
    of_one: Callable[[str], tuple[str, str, dict[str, Any]]],
) -> None:
    if pipelines:
        for id in [_pipeline_id(client, named) for named in pipelines]:
            method, path, body = of_one(_quoted(id))
            client.ask(method, f"/pipelines/{path}", body)
            click.echo(f"{id}: {of_many['action']}", err=True)
        return
    pairs = [label.partition("=") for label in labels]
    if wrong := [name for name, is_pair, _ in pairs if not is_pair]:
        raise click.UsageError(f"--label: {wrong[0]!r} is no label: write name=value")
    which = {"labels": {name: value for name, _, value in pairs} or None, "states": list(states) or None}
    answer = client.ask("POST", "/pipelines/actions", of_many | which)
    for id in answer["done"]:
        click.echo(f"{id}: {of_many['action']}", err=True)
    for refusal in answer["refused"]:
        click.echo(f"{refusal['id']}: {printable(refusal['error'])}", err=True)
    if answer["refused"]:
        raise SystemExit(1)


@group.command()
@click.argument("pipeline")
@_with_client
def tail(client: Client, pipeline: str) -> None:
    """Print the rows that a pipeline shows, as they come: a line of JSON for each. It ends with the job."""
    id = _pipeline_id(client, pipeline)
    for kind, data in client.events(f"/pipelines/{id}/jobs/{_job(client, id)['id']}/output"):
        if kind == "message":
            for row in json.loads(data["batch"]):
                click.echo(json.dumps(row, ensure_ascii=False))


def _pipeline_id(client: Client, named: str) -> str:
    """The id of a pipeline."""
    from ..cluster.client import RequestRefused

    try:
        return str(client.ask("GET", f"/pipelines/{_quoted(named)}")["id"])
    except RequestRefused as refused:
        if refused.answered != 404:
            raise
    for job in client.ask("GET", "/jobs")["data"]:
        if job["id"] == named:
            return str(job["pipeline_id"])
    ids = [pipeline["id"] for pipeline in client.pages("/pipelines") if pipeline["name"] == named]
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        raise InvalidArgument(f"there are {len(ids)} pipelines {named}: name one by its id: {', '.join(ids[:5])}")
    raise InvalidArgument(f"there is no pipeline {named}: `arroyo-udf jobs ls` lists them")


def _quoted(named: str) -> str:
    return quote(named, safe="")


def _job(client: Client, id: str) -> dict[str, Any]:
    job: dict[str, Any] = client.ask("GET", f"/pipelines/{_quoted(id)}/jobs")["data"][0]
    return job


def _reason(job: dict[str, Any]) -> str:
    reason = job["failure_reason"]
    return "" if reason is None else str(reason["error"]).partition("\n")[0]


def _time(micros: int | None) -> str:
    return "-" if micros is None else f"{datetime.fromtimestamp(micros / 1e6, UTC):%F %T}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The last column takes what is left of a line."""
    cut = [[printable(text)[:_WIDEST] for text in row[:-1]] + [printable(row[-1])] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cut, strict=True)]
    for row in [list(names), *cut]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
