"""The folder of a session cluster.

    conf/ jars/ lib/ plugins/ tmp/ ... made anew at each start
    log/                          what its programs say
    checkpoints/ savepoints/      of jobs that name no other place; they stay
    lock                          is held as long as `arroyo-udf flink up` runs; who that is
    flink.json                    where the cluster is, once it is ready
    cluster.toml                  the same as settings of `arroyo-udf cluster`

Guarantees: one cluster has a folder at a time. A program of the cluster is known by a variable that its children
inherit, so what a killed `flink up` has left is found, and nobody else's process is ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from ...errors import InvalidArgument, InvalidState
from .. import private_files
from ..schedulers import worker_files
from .distribution import Distribution
from .python_jar import loopback_jar
from .session_conf import Ports, SessionOptions, as_yaml, configuration, zookeeper_conf

_ANEW = ("conf", "jars", "lib", "plugins", "upload", "tmp", "zookeeper", "available")
_FILE_SYSTEM = "META-INF/services/org.apache.flink.core.fs.FileSystemFactory"
_PATIENCE = 30.0  # seconds for `flink up` to end its programs
_PAUSE = 0.05


class SessionFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.about = self.path / "flink.json"
        self._settings = self.path / "cluster.toml"
        self.logs = self.path / "log"
        self._lock = self.path / "lock"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises InvalidState: a cluster has the folder, or has left something that runs."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with open(self._lock, "a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidState(f"{self.path}: a cluster runs here; arroyo-udf flink down ends it") from None
            if worker_files.has_family(self._marker):
                raise InvalidState(f"{self.path}: a cluster was cut off here; arroyo-udf flink down ends the rest")
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            try:
                yield
            finally:
                self._forget()

    def lay_out(self, flink: Distribution, ports: Ports, options: SessionOptions) -> Distribution:
        """Returns it with the jar that jobs are submitted with here. Raises InvalidArgument: an option is wrong."""
        shipped = flink.home / "conf"
        own = configuration((shipped / "config.yaml").read_text(), flink.python, self.path, ports, options)
        for name in _ANEW:
            shutil.rmtree(self.path / name, ignore_errors=True)
            (self.path / name).mkdir(mode=0o700)
        conf = self.path / "conf"
        for file in shipped.glob("log4j*"):
            shutil.copy(file, conf)
        private_files.create(conf / "config.yaml", as_yaml(own).encode())  # it may have keys of a store
        private_files.create(conf / "zoo.cfg", zookeeper_conf(self.path, ports).encode())
        for plugin in (flink.home / "plugins").iterdir():
            (self.path / "plugins" / plugin.name).symlink_to(plugin)
        for jar in (flink.home / "lib").glob("*.jar"):
            (self.path / "lib" / jar.name).symlink_to(jar)
        for jar in options.jars:
            folder = self.path / "plugins" / jar.stem if _is_file_system(jar) else self.path / "lib"
            folder.mkdir(exist_ok=True)
            (folder / jar.name).symlink_to(jar.absolute())
        return replace(flink, python_jar=loopback_jar(flink.python_jar, self.path / "jars"))

    def environment(self, role: str) -> dict[str, str]:
        """Of a program of the cluster."""
        return {
            **os.environ,
            worker_files.MARKER: self._marker,
            "FLINK_CONF_DIR": str(self.path / "conf"),
            "FLINK_LIB_DIR": str(self.path / "lib"),
            "FLINK_PLUGINS_DIR": str(self.path / "plugins"),
            "FLINK_LOG_DIR": str(self.logs),
            "FLINK_PID_DIR": str(self.path / "tmp" / role),
            "FLINK_IDENT_STRING": role,
            "TMPDIR": str(self.path / "tmp"),
        }

    def tell(self, about: Mapping[str, Any]) -> None:
        """about: url, python_jar, runner, python, pids. Once this is there, the cluster takes jobs."""
        lines = [f"{key} = {json.dumps(about[key])}\n" for key in ("url", "python_jar", "runner")]
        private_files.replace(self._settings, "".join(["[flink]\n", *lines]).encode())
        private_files.replace(self.about, (json.dumps(about, indent=1) + "\n").encode())

    def is_ready(self, supervisor: int) -> bool:
        """Whether the cluster that this process runs takes jobs."""
        try:
            return bool(json.loads(self.about.read_bytes())["pids"]["supervisor"] == supervisor)
        except FileNotFoundError:
            return False

    def end(self) -> bool:
        """Ends the cluster and what is left of one. Returns whether there was any."""
        if not self.path.is_dir():
            return False
        was_there = self._end_supervisor() | worker_files.has_family(self._marker)
        if not worker_files.kill_family(self._marker, None):
            raise InvalidState(f"{self.path}: programs of the cluster do not end")
        self._forget()
        return was_there

    def _forget(self) -> None:
        self.about.unlink(missing_ok=True)
        self._settings.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Kills what programs of the cluster have left."""
        worker_files.kill_family(self._marker, None)

    def _end_supervisor(self) -> bool:
        with suppress(FileNotFoundError), open(self._lock) as lock:
            is_there = not _is_free(lock)
            if is_there:  # so the process that has written its id lives
                supervisor = int(lock.read())
                os.kill(supervisor, signal.SIGTERM)
                patience = time.monotonic() + _PATIENCE
                while not _is_free(lock):
                    if time.monotonic() > patience:
                        os.kill(supervisor, signal.SIGKILL)
                    time.sleep(_PAUSE)
            return is_there
        return False

    @property
    def _marker(self) -> str:
        """The same by whatever path one comes to the folder."""
        status = self.path.stat()
        return f"flink@{status.st_dev}:{status.st_ino}"


def _is_file_system(jar: Path) -> bool:
    """Of Flink: it has a class loader of its own. Others, such as connectors, are for all. Raises InvalidArgument."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return _FILE_SYSTEM in archive.namelist()
    except zipfile.BadZipFile:
        raise InvalidArgument(f"{jar} is no jar") from None


def _is_free(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
