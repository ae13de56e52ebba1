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
stopping.py  Ctrl-C and SIGTERM
crashes.py   names the function that has crashed

Guarantees: exit status 0: done; 1: the toolkit's error, with its text on stderr (a failed row, source, file or plugin);
2: usage; 130, 143, 129: ended by SIGINT, SIGTERM, SIGHUP. Results are on stdout, progress and errors on stderr.
"""

from typing import Any

import click

from ..errors import ArroyoUdfError
from . import (
    build,
    cache,
    cluster,
    doctor,
    flink,
    inspect,
    jobs,
    new,
    pipelines,
    plugins,
    replay,
    run,
    savepoints,
    sql,
    states,
    tokens,
)
from .stopping import stoppable


class _Group(click.Group):
    """Turns the toolkit's exceptions into a text on stderr and exit status 1, and signals into their status."""

    def invoke(self, ctx: click.Context) -> Any:
        with stoppable():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArroyoUdfError as error:
            raise click.ClickException(pipelines.text_of(error)) from error
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


for _module in (new, build, inspect, run, sql, replay, cache, states, doctor):
    main.add_command(_module.command)
for _command in (*plugins.commands, *cluster.commands, jobs.group, tokens.group, tokens.login, flink.group):
    main.add_command(_command)
main.add_command(pipelines.check)
main.add_command(pipelines.schema)
main.add_command(pipelines.checkpoints)
main.add_command(savepoints.command)
