"""The configuration of a session cluster: what Flink's `config.yaml` says, for one machine and a few small jobs.

Its own options are those that decide who can reach the cluster and how its programs find each other. The others may be
changed with `--config`.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InvalidArgument

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class SessionOptions:
    """port: of REST; 0: a free one. jars: file systems and connectors. config: changes what Flink is told.
    is_available: a JobManager that is killed goes on with its jobs."""

    taskmanagers: int = 1
    slots: int = 2
    port: int = 8081
    jars: tuple[Path, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    is_available: bool = False


@dataclass(frozen=True)
class Ports:
    rest: int
    rpc: int
    zookeeper: int

    @classmethod
    def free(cls, rest: int) -> Ports:
        """Raises InvalidArgument: somebody listens on the port of REST."""
        try:
            held = [_bound(rest), _bound(0), _bound(0)]
        except (OSError, OverflowError):
            raise InvalidArgument(f"port {rest} is in use: --port 0 takes a free one") from None
        ports = [one.getsockname()[1] for one in held]
        for one in held:
            one.close()
        return cls(*ports)


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        bound.listen(1)  # an address in use is refused here at the latest
    except BaseException:
        bound.close()
        raise
    return bound


def configuration(shipped: str, python: Path, folder: Path, ports: Ports, options: SessionOptions) -> dict[str, str]:
    """shipped: Flink's own config.yaml. Raises InvalidArgument: an option that is not the user's."""
    opened = re.search(r"^\s+all: (--add-exports.*)$", shipped, re.MULTILINE)
    if opened is None:
        raise InvalidArgument("Flink's config.yaml has no env.java.opts.all; this package knows Flink 2.3")
    own = (
        _addresses(ports)
        | _places(folder)
        | {
            "env.java.opts.all": opened[1],  # without it every Python job fails as it is submitted
            "python.executable": str(python),
            "python.client.executable": str(python),
            "taskmanager.numberOfTaskSlots": str(options.slots),
        }
    )
    if options.is_available:
        own |= _availability(folder, ports)
    if taken := sorted(own.keys() & options.config.keys()):
        raise InvalidArgument(f"--config {taken[0]}: a session cluster sets this itself")
    return {**_DEFAULTS, **own, **options.config}


def as_yaml(configuration: Mapping[str, str]) -> str:
    """Flink reads flat keys as it reads nested ones."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in configuration.items())


def zookeeper_conf(folder: Path, ports: Ports) -> str:
    """Of ZooKeeper's single server; short ticks, for a session may end after two of them at the earliest."""
    return (
        f"tickTime=500\ndataDir={folder / 'zookeeper'}\nclientPort={ports.zookeeper}\nclientPortAddress={LOOPBACK}\n"
        "admin.enableServer=false\n"
    )


_DEFAULTS = {
    # Room for two slots whose work is done in Python, outside of the JVM.
    "jobmanager.memory.process.size": "1000m",
    "jobmanager.memory.off-heap.size": "64m",
    "taskmanager.memory.process.size": "1300m",
    "taskmanager.memory.managed.size": "256m",
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    "taskmanager.network.memory.buffer-debloat.enabled": "true",
    # A job takes slots of each TaskManager, and its parallelism can be changed while it runs.
    "taskmanager.load-balance.mode": "SLOTS",
    "jobmanager.scheduler": "adaptive",
    "web.refresh-interval": "500 ms",  # what is told of jobs is no older
    "jobmanager.adaptive-scheduler.prefer-minimal-taskmanagers": "false",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 s",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "2 s",
    # A killed TaskManager is missed at the second call that nobody answers; one that is slow, after ten seconds.
    "heartbeat.interval": "1 s",
    "heartbeat.timeout": "10 s",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "200 ms",
    "restart-strategy.exponential-delay.max-backoff": "2 s",
    "execution.checkpointing.data-inline-threshold": "1 kb",  # else small states are in no file of their own
    "env.stdout-err.redirect-to-file": "true",
}


def _addresses(ports: Ports) -> dict[str, str]:
    return {
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": str(ports.rpc),
        "jobmanager.bind-host": LOOPBACK,
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": str(ports.rest),
        "rest.bind-port": str(ports.rest),
    }


def _places(folder: Path) -> dict[str, str]:
    return {
        "io.tmp.dirs": str(folder / "tmp"),
        "web.upload.dir": str(folder / "upload"),  # so that an uploaded jar survives the JobManager
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "execution.checkpointing.savepoint-dir": (folder / "savepoints").as_uri(),
    }


def _availability(folder: Path, ports: Ports) -> dict[str, str]:
    return {
        "high-availability.type": "zookeeper",
        "high-availability.storageDir": (folder / "available").as_uri(),
        "high-availability.zookeeper.quorum": f"{LOOPBACK}:{ports.zookeeper}",
        "high-availability.zookeeper.client.session-timeout": "4 s",
    }
