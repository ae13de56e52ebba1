"""arroyo-udf flink up, down: a session cluster of Apache Flink on this machine."""

from __future__ import annotations

import queue
import subprocess
import sys
import time
from pathlib import Path

import click

from ..cluster.local_flink.distribution import Distribution
from ..cluster.local_flink.session_conf import Ports, SessionOptions
from ..cluster.local_flink.session_folder import SessionFolder
from ..cluster.local_flink.supervisor import Supervisor
from .stopping import drainable

_PAUSE = 0.05

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("flink"),
    show_default=True,
    help="Where the cluster keeps what it has.",
)


@click.group("flink")
def group() -> None:
    """Run Apache Flink on this machine, for development."""


@group.command(short_help="Start a session cluster.")
@click.option(
    "--python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=Path(sys.executable),
    help="The Python that has apache-flink.  [default: this one]",
)
@_folder
@click.option("--taskmanagers", type=click.IntRange(1), default=1, show_default=True, help="How many programs work.")
@click.option("--slots", type=click.IntRange(1), default=2, show_default=True, help="Of each of them.")
@click.option("--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="Of REST; 0: a free one.")
@click.option(
    "--jar",
    "jars",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A file system or connector, such as flink-s3-fs-native. May be repeated.",
)
@click.option("--config", metavar="KEY=VALUE", multiple=True, help="An option of Flink. May be repeated.")
@click.option("--ha", is_flag=True, help="A JobManager that is killed goes on with its jobs.")
@click.option("--detach", is_flag=True, help="Return when the cluster is ready, and let it run.")
def up(
    python: Path,
    folder: Path,
    taskmanagers: int,
    slots: int,
    port: int,
    jars: tuple[Path, ...],
    config: tuple[str, ...],
    ha: bool,
    detach: bool,
) -> None:
    """Start a JobManager and TaskManagers that listen on 127.0.0.1 only, and start again those that end.

    Ctrl-C ends the cluster and its jobs. FOLDER/flink.json says where it is.
    """
    if detach:
        _detached(SessionFolder(folder))
        return
    options = SessionOptions(taskmanagers, slots, port, jars, dict(map(_pair, config)), ha)
    flink = Distribution.of(python.absolute())
    session = SessionFolder(folder)
    stopped: queue.SimpleQueue[None] = queue.SimpleQueue()
    with session.held(), drainable(lambda: stopped.put(None)):
        ports = Ports.free(port)
        own = session.lay_out(flink, ports, options)
        Supervisor(session, own, ports, options, _tell).run(stopped)


@group.command(short_help="End a session cluster.")
@_folder
def down(folder: Path) -> None:
    """End the cluster of the folder, its jobs, and whatever of it is left."""
    _tell("ended" if SessionFolder(folder).end() else f"nothing runs in {folder.absolute()}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--config")
    return key.strip(), value


def _detached(folder: SessionFolder) -> None:
    """The same command, in the background."""
    folder.logs.mkdir(parents=True, exist_ok=True)
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    log = folder.logs / "up.out"
    with open(log, "wb") as output:
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        while process.poll() is None and not folder.is_ready(process.pid):
            time.sleep(_PAUSE)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    click.echo(log.read_text(), err=True, nl=False)
    if process.returncode is not None:
        raise SystemExit(process.returncode)


def _tell(text: str) -> None:
    click.echo(f"arroyo-udf flink: {text}", err=True)
