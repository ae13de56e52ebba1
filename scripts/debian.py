"""Programs out of Debian's packages: downloaded and unpacked below build/, not installed.

    debian.unpack(BUILD / "prometheus", lambda apt: ["prometheus", "prometheus-pushgateway"])

It needs apt's programs, but no root. Guarantees: of two processes that unpack the same at once, each finds it whole.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


class Missing(Exception):
    """It cannot be downloaded. The text says why."""


class Apt:
    """Runs apt with a private cache, and without apt's unprivileged user, which may not write here.

    lists: where its private lists of packages are; None: the system's are used.
    """

    def __init__(self, folder: Path, lists: Path | None = None) -> None:
        self._folder = folder
        user = pwd.getpwuid(os.geteuid()).pw_name
        options = [f"Dir::Cache={folder / 'cache'}", f"APT::Sandbox::User={user}", "Acquire::Retries=3"]
        options += [] if lists is None else [f"Dir::State::Lists={lists}"]
        self._options = [word for option in options for word in ("-o", option)]
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        if lists is not None:
            (lists / "partial").mkdir(parents=True)

    def __call__(self, tool: str, *arguments: str) -> str:
        return command(self._folder, tool, *self._options, *arguments)


def unpack(root: Path, choose: Callable[[Apt], list[str]]) -> None:
    """Unpacks packages below `root`. choose: names them; it is called again when the lists were old. Raises Missing."""
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Missing(f"no {tool} to download one with")
    root.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{root.name}-", dir=root.parent) as name:
        aside = Path(name)
        try:
            packages = fetch(aside / "of_system", None, choose)
        except Missing:  # the system's lists are empty or old: private lists need no root
            packages = fetch(aside / "of_ours", aside / "lists", choose)
        for package in packages:
            command(aside, "dpkg-deb", "--extract", str(package), str(aside / "root"))
        with contextlib.suppress(OSError):  # another process was quicker
            (aside / "root").rename(root)


def fetch(folder: Path, lists: Path | None, choose: Callable[[Apt], list[str]]) -> list[Path]:
    """Downloads the packages; returns the files."""
    apt = Apt(folder, lists)
    if lists is not None:
        apt("apt-get", "update")
    chosen = choose(apt)
    others = len(chosen) - 1
    print(f"downloading {chosen[0]} and {others} other packages below build/", file=sys.stderr, flush=True)
    apt("apt-get", "download", *chosen)
    return sorted(folder.glob("*.deb"))


def command(folder: Path, *words: str) -> str:
    """Runs the command in the folder; returns its output. Raises Missing with its errors."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    if done.returncode:
        raise Missing(f"`{' '.join(words)}` failed:\n{done.stderr}")
    return done.stdout
