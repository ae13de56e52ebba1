"""A PostgreSQL server of one's own, for a test run or the demo: nobody else sees it, and it goes when they go.

    with postgresql.server() as address:        "postgresql://udf@/postgres?host=FOLDER"

The server is an installed one, else Debian's packages, downloaded and unpacked below build/ without being installed. It
runs as the caller, or as `nobody` where that is root (PostgreSQL refuses root); it listens on a socket in a private
temporary folder and on no port; whoever may open that folder may do everything.
Guarantees: the server has ended and its folder is gone when the `with` block is left, and soon after when the process
that started it was killed: a shell holds the other end of a pipe, and stops the server when the pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parent.parent / "build"
INSTALLED = Path("/usr/lib/postgresql")  # where Debian's packages put it: .../15/bin
HOW_TO_GET_IT = (
    "install the server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server) "
    "and see that pg_ctl and initdb are on PATH"
)

# $1 folder, $2 programs. Says "ready", or what went wrong; then waits for the end of stdin. A database that is thrown
# away need not survive a power cut, hence no fsync.
LIFE = """
cd "$1"
if "$2/initdb" -D data -U udf -A trust -E UTF8 --locale=C --no-sync >log 2>&1 &&
   "$2/pg_ctl" -D data -l log -w -t 60 -o "-k '$1' -c listen_addresses= -c fsync=off -c jit=off" start >>log 2>&1
then echo ready; read -r _
else cat log
fi
if [ -f data/postmaster.pid ]; then "$2/pg_ctl" -D data -m immediate -w stop >>log 2>&1; fi
cd / && rm -rf "$1"
"""


class NoPostgresql(Exception):
    """No server can be had here; the text says why, and how to get one."""


@dataclass(frozen=True)
class Programs:
    """The folder of initdb and pg_ctl, and the folder below which they were unpacked (None: they are installed)."""

    folder: Path
    unpacked: Path | None = None

    def environment(self) -> dict[str, str]:
        """Without the caller's PG... variables; with the libraries that were unpacked beside the programs."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if self.unpacked is not None:
            folders = (self.unpacked / "usr" / "lib").glob("*-linux-gnu*")
            variables["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
        return variables | {"LC_ALL": "C"}

    def run_as(self, user: dict[str, Any]) -> bool:
        """Whether they can be executed; a home folder, say, may be closed to others."""
        try:
            command = [str(self.folder / "initdb"), "--version"]
            return subprocess.run(command, capture_output=True, env=self.environment(), **user).returncode == 0
        except OSError:
            return False


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Starts a server; gives the address of its database, for any client. Raises NoPostgresql."""
    programs = installed() or unpacked_below(BUILD / "postgresql") or download()
    user = unprivileged()
    # Not where $TMPDIR says: that may be closed to `nobody`, or too long for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    try:
        programs = reachable(programs, user, folder)
        if user:
            subprocess.run(["chown", "-R", f"{user['user']}:{user['group']}", str(folder)], check=True)
        life = subprocess.Popen(
            ["sh", "-c", LIFE, "postgresql", str(folder), str(programs.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=programs.environment(),
            start_new_session=True,  # Ctrl-C is the caller's; the server hears of it by the pipe
            **user,
        )
    except BaseException:
        shutil.rmtree(folder)
        raise
    with life:  # leaving closes the pipe, and waits
        assert life.stdout is not None
        said = life.stdout.readline()
        if said != "ready\n":
            raise NoPostgresql(f"{programs.folder}: the server does not start:\n{said}{life.stdout.read()}")
        yield f"postgresql://udf@/postgres?host={folder}"


def unprivileged() -> dict[str, Any]:
    """Options of a subprocess that may not be root's; none where the caller is not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def reachable(programs: Programs, user: dict[str, Any], folder: Path) -> Programs:
    """The programs, or their copy below `folder` where the server's user cannot reach what was unpacked."""
    if programs.run_as(user):
        return programs
    if programs.unpacked is not None:
        shutil.copytree(programs.unpacked, folder / "unpacked", symlinks=True)
        copy = unpacked_below(folder / "unpacked")
        folder.chmod(0o755)  # the copy is tried before it is handed over
        if copy is not None and copy.run_as(user):
            folder.chmod(0o700)
            return copy
    raise NoPostgresql(
        f"{programs.folder}: initdb does not run as user {user.get('user', os.geteuid())}; {HOW_TO_GET_IT}"
    )


def installed() -> Programs | None:
    """Of PATH, else the newest of Debian's."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += newest_first(INSTALLED)
    return next((Programs(folder) for folder in folders if (folder / "initdb").exists()), None)


def unpacked_below(root: Path) -> Programs | None:
    return next((Programs(folder, root) for folder in newest_first(root / INSTALLED.relative_to("/"))), None)


def newest_first(versions: Path) -> list[Path]:
    """The folders VERSION/bin with a server in them."""
    found = [path.parent for path in versions.glob("*/bin/initdb") if path.parent.parent.name.isdigit()]
    return sorted(found, key=lambda folder: int(folder.parent.name), reverse=True)


# ---- Debian's packages -----------------------------------------------------------------------------------------------


def download() -> Programs:
    """Unpacks the server and the libraries that are missing here below build/postgresql. Raises NoPostgresql."""
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoPostgresql(f"there is no PostgreSQL server, and no {tool} to download one with: {HOW_TO_GET_IT}")
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=BUILD) as name:
        aside = Path(name)
        try:
            packages = fetch(aside, aside / "of_system", [])
        except NoPostgresql:  # the system's lists are empty or old: get lists of our own, which needs no root
            lists = ["-o", f"Dir::State::Lists={aside / 'lists'}"]
            apt(aside, "apt-get", *lists, "update")
            packages = fetch(aside, aside / "of_ours", lists)
        for package in packages:
            command(aside, "dpkg-deb", "--extract", str(package), str(aside / "root"))
        with contextlib.suppress(OSError):  # somebody else was quicker
            (aside / "root").rename(BUILD / "postgresql")
    programs = unpacked_below(BUILD / "postgresql")
    if programs is None:
        raise NoPostgresql(f"Debian's packages have no server below {INSTALLED}: {HOW_TO_GET_IT}")
    return programs


def fetch(aside: Path, folder: Path, lists: list[str]) -> list[Path]:
    """The files of the server's package and of the libraries that it needs and that are not installed."""
    folder.mkdir()
    depends = apt(aside, "apt-cache", *lists, "depends", "postgresql")
    server = re.search(r"Depends: (postgresql-\d+)$", depends, re.MULTILINE)
    if server is None:
        raise NoPostgresql(f"apt-cache knows no package postgresql: {HOW_TO_GET_IT}")
    plan = apt(aside, "apt-get", *lists, "--simulate", "--no-install-recommends", "install", server[1])
    libraries = {name for name in re.findall(r"^Inst (lib\S+)", plan, re.MULTILINE) if not name.startswith("libllvm")}
    print(f"downloading {server[1]} and {len(libraries)} libraries below build/", file=sys.stderr, flush=True)
    apt(folder, "apt-get", *lists, "download", server[1], *sorted(libraries))
    return sorted(folder.glob("*.deb"))


def apt(folder: Path, tool: str, *arguments: str) -> str:
    """Runs apt with a cache of its own and without its own unprivileged user, who may not write here."""
    cache = ["-o", f"Dir::Cache={folder / 'cache'}", "-o", f"APT::Sandbox::User={pwd.getpwuid(os.geteuid()).pw_name}"]
    for name in ("cache/archives/partial", "lists/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return command(folder, tool, *cache, "-o", "Acquire::Retries=3", *arguments)


def command(folder: Path, *words: str) -> str:
    """What the command prints; it runs in the folder. Raises NoPostgresql with its errors."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    if done.returncode:
        raise NoPostgresql(f"`{' '.join(words)}` failed:\n{done.stderr}{HOW_TO_GET_IT}")
    return done.stdout
