"""The command line.

    arroyo-udf new | build | inspect | install | list | uninstall | verify | cache
    arroyo-udf run | sql | replay | check | schema | checkpoints | savepoint

    arroyo-udf cluster | api | controller | migrate | config | states | jobs | token | login |
                 doctor | flink

new.py       a folder to begin with
build.py     source -> plugin
inspect.py   describe a plugin
plugins.py   install, list, uninstall, verify: plugins that are found by name
run.py       run functions over files
sql.py       a query over files
pipelines.py run, check and describe pipelines
savepoints.py checkpoints with a name
preview.py   the first rows of a run, as a table
view.py      shows a running pipeline
telling.py   numbers and failures for people
replay.py    run dead letters again, into the output of their run
cluster.py   a cluster: its programs, migrations, configuration
jobs.py      jobs of a cluster, over its API
doctor.py    what is wrong with its installation
tokens.py    who may use its API
flink.py     Apache Flink on this machine, for development
states.py    the life of a job
calls.py     which functions run and replay call
files.py     the options of commands that read and write files; isolation.py: where functions run
cache.py     what earlier builds have left
building.py  shows what a build does
starting.py  imports
stopping.py  Ctrl-C and SIGTERM
crashes.py   names the function that has crashed

Guarantees: exit status 0: done; 1: the toolkit's error, with its text on stderr (a failed row, source, file or plugin);
2: usage; 130, 143, 129: ended by SIGINT, SIGTERM, SIGHUP. Results are on stdout, progress and errors on stderr.
"""

from importlib import import_module
from typing import Any

import click

from ..errors import ArroyoUdfError
from .starting import starting
from .stopping import stoppable
from .telling import text_of

_COMMANDS = {
    "new": "new.command",
    "build": "build.command",
    "inspect": "inspect.command",
    "install": "plugins.install",
    "list": "plugins.list_",
    "uninstall": "plugins.uninstall",
    "verify": "plugins.verify",
    "cache": "cache.command",
    "run": "run.command",
    "sql": "sql.command",
    "replay": "replay.command",
    "check": "pipelines.check",
    "schema": "pipelines.schema",
    "checkpoints": "pipelines.checkpoints",
    "savepoint": "savepoints.command",
    "cluster": "cluster.cluster",
    "api": "cluster.api",
    "controller": "cluster.controller",
    "migrate": "cluster.migrate",
    "moved": "cluster.moved",
    "config": "cluster.config",
    "worker": "cluster.worker",
    "states": "states.command",
    "jobs": "jobs.group",
    "token": "tokens.group",
    "login": "tokens.login",
    "doctor": "doctor.command",
    "flink": "flink.group",
}
"""Where each command is. Only the one that is called is imported: all of them take as long as a build in C."""


class _Group(click.Group):
    """Turns the toolkit's exceptions into a text on stderr and exit status 1, and signals into their status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(".")
        with starting():
            command: click.Command = getattr(import_module(f".{module}", __name__), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        with stoppable():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArroyoUdfError as error:
            raise click.ClickException(text_of(error)) from error
        except UnicodeEncodeError as error:
            raise click.ClickException(f"{error.object!r} is not UTF-8") from error
        except Exception as error:
            # Values that a plugin returns may be wrong only for a file: a time zone that does not exist, for example.
            if not type(error).__module__.startswith("pyarrow"):
                raise
            raise click.ClickException(f"pyarrow: {error}") from error


@click.group(cls=_Group)
@click.version_option(package_name="arroyo_udf_plugin")
def main() -> None:
    """UDFs in Python, Rust or C, as one shared library each."""
