"""arroyo-udf cluster, api, controller, migrate, moved and config: pipelines as jobs."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import getpass
import queue
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .stopping import drainable

if TYPE_CHECKING:
    from ..cluster.configuration import Configured, Settings
    from ..cluster.program import Served

_FLAGS: dict[str, tuple[str, ...]] = {
    "data": ("data",),
    "database": ("database", "url"),
    "bind": ("api", "bind_address"),
    "port": ("api", "http_port"),
    "scheduler": ("controller", "scheduler"),
    "insecure": ("api", "insecure"),
    "no_token": ("api", "no_token"),
}
"""Where the value of a flag is in the settings."""


def configured_by(file: Path | None, flags: Mapping[str, Any]) -> Configured:
    """flags: by their names; None: it was not given."""
    try:
        from ..cluster.configuration import configured
    except ModuleNotFoundError as error:
        text = f"{error.name} is missing: pip install 'arroyo_udf_plugin[cluster]'"
        raise click.ClickException(text) from None
    given: dict[str, Any] = {}
    for name, value in flags.items():
        if value is not None:
            *sections, key = _FLAGS[name]
            functools.reduce(lambda into, section: into.setdefault(section, {}), sections, given)[key] = value
    return configured(file, given)


def _configurable(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command gets what is configured, and its own arguments."""

    @click.option("-c", "--config", "file", type=click.Path(path_type=Path), help="A TOML file with settings.")
    @click.option("--data", metavar="DIR", help="The folder of everything that the cluster keeps.")
    @click.option("--database", metavar="URL", help="sqlite:////folder/file or postgresql://user@host/name.")
    @click.option("--bind", metavar="ADDRESS", help="Where the API listens.")
    @click.option("--port", type=int, help="The API's port; 0: a free one.")
    @click.option("--scheduler", type=click.Choice(["embedded", "process", "flink"]), help="Where pipelines run.")
    @click.option("--insecure", is_flag=True, default=None, help="Listen to others without TLS.")
    @click.option("--no-token", is_flag=True, default=None, help="Ask nobody for a token, on loopback.")
    @functools.wraps(command)
    def wrapped(file: Path | None, **flags: Any) -> None:
        own = {name: flags.pop(name) for name in [*flags] if name not in _FLAGS}
        with _collecting_later():
            configured = configured_by(file, flags)
            from ..cluster import program  # noqa: F401
        command(configured, **own)

    return wrapped


@click.command(short_help="Run pipelines as jobs, with a REST API.")
@_configurable
def cluster(configured: Configured) -> None:
    """Run API and controller in one program, and each pipeline in a process of its own."""
    from ..cluster.program import controlling, opened, serving

    settings = _ready(configured.settings)
    with (
        _until_stopped() as stopped,
        opened(settings) as database,
        controlling(database, settings) as controller,
    ):
        own = (controller.wake, [controller.tell], lambda: controller.is_alive)
        with serving(database, settings, *own) as served:
            _tell("cluster", served)
            stopped.get()
        click.echo("arroyo-udf cluster: jobs end with a checkpoint; a second signal ends them at once", err=True)


@click.command(short_help="Run a cluster's API alone.")
@_configurable
def api(configured: Configured) -> None:
    """Run the API alone."""
    from ..cluster.program import opened, serving

    settings = _ready(configured.settings)
    with (
        _until_stopped() as stopped,
        opened(settings) as database,
        serving(database, settings, lambda: None) as served,
    ):
        _tell("api", served)
        stopped.get()


@click.command(short_help="Run a cluster's controller alone.")
@_configurable
def controller(configured: Configured) -> None:
    """Run the controller alone. A second one stands by until the first has ended."""
    from ..cluster.program import controlling, opened

    settings = _ready(configured.settings)
    with _until_stopped() as stopped, opened(settings) as database, controlling(database, settings):
        click.echo("arroyo-udf controller: ready", err=True)
        stopped.get()


@click.command(short_help="Migrate a cluster's database.")
@_configurable
def migrate(configured: Configured) -> None:
    """Bring the database to this program's version. Every program does so at its start."""
    from ..cluster.database.database import LATEST
    from ..cluster.program import opened

    with opened(configured.settings) as database:
        click.echo(f"{database.url}: {LATEST}")


@click.command(short_help="Tell a cluster that its files were moved.")
@click.argument("old")
@click.argument("new")
@_configurable
def moved(configured: Configured, old: str, new: str) -> None:
    """Tell the database that states and functions that were below the folder or bucket OLD are below NEW by now.

    No controller may run. Nothing is copied. Paths in queries stay as they are.
    """
    from ..cluster.database import places
    from ..cluster.program import opened

    with opened(configured.settings) as database:
        changed = places.move(database, old, new)
    click.echo(f"{changed} places below {old} are below {new} now")


@click.command(short_help="Print a cluster's configuration.")
@_configurable
def config(configured: Configured) -> None:
    """Print what is configured, and where each value came from."""
    for key, value, place in configured.lines():
        click.echo(f"{key} = {value}    ({place})")


@contextlib.contextmanager
def _collecting_later() -> Iterator[None]:
    """What is imported in the block stays for ever: the collector need not look at it, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _tell(program: str, served: Served) -> None:
    """At once, so that whoever waits for the address has all of it."""
    if served.login is None:
        user = getpass.getuser()
        text = f"WARNING: no token: every user of this machine runs code as {user}, and reads what it may read"
    else:
        text = f"a browser logs in, once, within ten minutes, at {served.login}"
    click.echo(f"arroyo-udf {program}: {served.address}\narroyo-udf {program}: {text}", err=True)


def _ready(settings: Settings) -> Settings:
    from ..cluster.logs import show

    _stack_of_crashes()
    show(settings.logging.format, settings.logging.level)
    return settings


def _stack_of_crashes() -> None:
    """A fatal signal leaves the Python stack of its thread on standard error: it names the function that ran."""
    faulthandler.enable(2, all_threads=False)


@contextlib.contextmanager
def _until_stopped() -> Iterator[queue.SimpleQueue[None]]:
    """Yields what has an item as soon as a signal has come."""
    stopped: queue.SimpleQueue[None] = queue.SimpleQueue()
    with drainable(lambda: stopped.put(None)):
        yield stopped


@click.command(hidden=True)
def worker() -> None:
    """Run a generation of a job. A controller starts it."""
    with _collecting_later():
        from ..cluster.worker import main

    _stack_of_crashes()
    main()
