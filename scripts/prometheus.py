"""Prometheus and its Pushgateway, for a test run. They end with the process that uses them.

    with prometheus.pushgateway() as gateway:                       "http://127.0.0.1:40123"
    with prometheus.server(text of prometheus.yml) as address:

The programs are installed ones, else Debian's packages, downloaded and unpacked below build/, not installed. They
listen on a free port of the loopback address, and keep their data in a private temporary folder.
Guarantees: when the `with` block is left, the program has ended and its folder is gone. If the process is killed, that
happens soon after: a shell holds the other end of a pipe, and ends the program when the pipe closes.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import debian

UNPACKED = Path(__file__).resolve().parent.parent / "build" / "prometheus"
HOW_TO_GET_IT = "install them (Debian, Ubuntu: apt-get install prometheus prometheus-pushgateway)"
PACKAGES = ["prometheus", "prometheus-pushgateway"]

# $1 folder; then the program with its arguments. Waits for the end of stdin.
LIFE = """
folder="$1"; shift; cd "$folder"
"$@" >log 2>&1 & program=$!
read -r _
kill $program; wait $program
cd / && rm -rf "$folder"
"""


class NoPrometheus(Exception):
    """The programs are not here. The text says why, and how to get them."""


def program(name: str) -> str:
    """The path of prometheus, promtool or prometheus-pushgateway. Raises NoPrometheus."""
    if installed := shutil.which(name):
        return installed
    path = UNPACKED / "usr" / "bin" / name
    if not path.exists():
        try:
            debian.unpack(UNPACKED, lambda apt: PACKAGES)
        except debian.Missing as error:
            raise NoPrometheus(f"there is no {name}, and {error}: {HOW_TO_GET_IT}") from None
    return str(path)


@contextlib.contextmanager
def server(configuration: str) -> Iterator[str]:
    """Yields the address of a Prometheus."""
    with _folder() as folder:
        (folder / "prometheus.yml").write_text(configuration)
        options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        with _running(folder, program("prometheus"), *options) as address:
            yield address


@contextlib.contextmanager
def pushgateway() -> Iterator[str]:
    """Yields the address of a Pushgateway."""
    with _folder() as folder, _running(folder, program(PACKAGES[1]), "--persistence.file=data") as address:
        yield address


def check_metrics(text: bytes) -> str:
    """What promtool finds wrong with the text of /metrics: nothing, if it is well made."""
    done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="prometheus-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _running(folder: Path, *words: str) -> Iterator[str]:
    life = subprocess.Popen(
        ["sh", "-c", LIFE, "prometheus", str(folder), *words, "--web.listen-address=127.0.0.1:0"],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches the caller alone; the program ends through the pipe
    )
    with life:  # leaving closes the pipe, and waits
        yield _address(folder / "log")


def _address(log: Path) -> str:
    """Where the program listens, as its log says, as soon as it answers questions: it reads its data before."""
    patience = time.monotonic() + 60
    while time.monotonic() < patience:
        text = log.read_text() if log.exists() else ""
        found = re.search(r'msg="Listening on" address=(\S+)', text)
        if found is not None and _is_ready(address := f"http://{found[1]}"):
            return address
        time.sleep(0.01)
    raise NoPrometheus(f"it does not start: {text}")


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=10):
            return True
    except OSError:  # such as its status 503
        return False
