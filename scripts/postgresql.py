"""A private PostgreSQL server for a test run or the demo. It ends with the process that uses it.

    with postgresql.server() as address:        "postgresql://udf@/postgres?host=FOLDER"

The programs are installed ones, else Debian's packages, downloaded and unpacked below build/, not installed. The server
runs as the caller, or as `nobody` if the caller is root (PostgreSQL refuses root). It listens on a socket in a private
temporary folder and on no port; access to that folder is access to everything.
Guarantees: when the `with` block is left, the server has ended and its folder is gone. If the process is killed, that
happens soon after: a shell holds the other end of a pipe, and stops the server when the pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import debian

BUILD = Path(__file__).resolve().parent.parent / "build"
INSTALLED = Path("/usr/lib/postgresql")  # where Debian's packages put it: .../15/bin
HOW_TO_GET_IT = (
    "install the server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server) "
    "and see that pg_ctl and initdb are on PATH"
)

# A temporary database need not survive a power cut. Change data capture reads its log.
OPTIONS = "-c listen_addresses= -c fsync=off -c jit=off -c wal_level=logical"
# $1 folder, $2 programs, $3 options. Prints "ready", or the log of the failure; then waits for the end of stdin.
LIFE = """
cd "$1"
if "$2/initdb" -D data -U udf -A trust -E UTF8 --locale=C --no-sync >log 2>&1 &&
   "$2/pg_ctl" -D data -l log -w -t 60 -o "-k '$1' $3" start >>log 2>&1
then echo ready; read -r _
else cat log
fi
if [ -f data/postmaster.pid ]; then "$2/pg_ctl" -D data -m immediate -w stop >>log 2>&1; fi
cd / && rm -rf "$1"
"""


class NoPostgresql(Exception):
    """There is no server here. The text says why, and how to get one."""


@dataclass(frozen=True)
class Programs:
    """The folder of initdb and pg_ctl, and the root below which they were unpacked (None: they are installed)."""

    folder: Path
    unpacked: Path | None = None

    def environment(self) -> dict[str, str]:
        """The caller's, without PG... variables and with the libraries unpacked beside the programs."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if self.unpacked is not None:
            folders = (self.unpacked / "usr" / "lib").glob("*-linux-gnu*")
            variables["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
        return variables | {"LC_ALL": "C"}

    def run_as(self, user: dict[str, Any]) -> bool:
        """Whether the user can execute them: the folder may be closed to others, as a home folder is."""
        try:
            command = [str(self.folder / "initdb"), "--version"]
            return subprocess.run(command, capture_output=True, env=self.environment(), **user).returncode == 0
        except OSError:
            return False


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Starts a server; yields the address of its database. Raises NoPostgresql."""
    programs = installed() or unpacked_below(BUILD / "postgresql") or download()
    user = unprivileged()
    # Not $TMPDIR: it may be closed to `nobody`, or too long for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    try:
        programs = reachable(programs, user, folder)
        if user:
            subprocess.run(["chown", "-R", f"{user['user']}:{user['group']}", str(folder)], check=True)
        life = subprocess.Popen(
            ["sh", "-c", LIFE, "postgresql", str(folder), str(programs.folder), OPTIONS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=programs.environment(),
            start_new_session=True,  # Ctrl-C reaches the caller alone; the server ends through the pipe
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


def restart(address: str) -> None:
    """Kills a server that `server` has started, without a good-bye to its clients, and starts it again."""
    assert not control(address, "-m", "immediate", "restart")


def kill(address: str) -> None:
    """SIGKILL for a server that `server` has started; its data stays. Its own children end by themselves."""
    with open(folder_of(address) / "data" / "postmaster.pid") as file:
        os.kill(int(file.readline()), signal.SIGKILL)


def start(address: str) -> None:
    """After `kill`: the same address, the same data. It waits for the last child of the server before."""
    folder = folder_of(address)
    patience = time.monotonic() + 60
    while control(address, "-o", f"-k '{folder}' {OPTIONS}", "start"):
        if time.monotonic() > patience:
            raise NoPostgresql(f"the server does not start again:\n{(folder / 'log').read_text()}")
        time.sleep(0.05)


def control(address: str, *arguments: str) -> int:
    """Returns the status of pg_ctl."""
    folder = folder_of(address)
    programs = unpacked_below(folder / "unpacked") or installed() or unpacked_below(BUILD / "postgresql")
    assert programs is not None
    command = [str(programs.folder / "pg_ctl"), "-D", "data", "-l", "log", "-w", *arguments]
    environment = programs.environment()
    return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment, **unprivileged()).returncode


def folder_of(address: str) -> Path:
    return Path(address.rpartition("host=")[2])


def unprivileged() -> dict[str, Any]:
    """Options of a subprocess that must not run as root; none if the caller is not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def reachable(programs: Programs, user: dict[str, Any], folder: Path) -> Programs:
    """The programs, or a copy below `folder` if the server's user cannot reach the unpacked ones."""
    if programs.run_as(user):
        return programs
    if programs.unpacked is not None:
        shutil.copytree(programs.unpacked, folder / "unpacked", symlinks=True)
        copy = unpacked_below(folder / "unpacked")
        folder.chmod(0o755)  # so that the user can try the copy
        if copy is not None and copy.run_as(user):
            folder.chmod(0o700)
            return copy
    raise NoPostgresql(
        f"{programs.folder}: initdb does not run as user {user.get('user', os.geteuid())}; {HOW_TO_GET_IT}"
    )


def installed() -> Programs | None:
    """Those on PATH, else the newest of Debian's."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += newest_first(INSTALLED)
    return next((Programs(folder) for folder in folders if (folder / "initdb").exists()), None)


def unpacked_below(root: Path) -> Programs | None:
    return next((Programs(folder, root) for folder in newest_first(root / INSTALLED.relative_to("/"))), None)


def newest_first(versions: Path) -> list[Path]:
    """The folders VERSION/bin that contain a server."""
    found = [path.parent for path in versions.glob("*/bin/initdb") if path.parent.parent.name.isdigit()]
    return sorted(found, key=lambda folder: int(folder.parent.name), reverse=True)


def download() -> Programs:
    """Unpacks the server and its missing libraries below build/postgresql. Raises NoPostgresql."""
    try:
        debian.unpack(BUILD / "postgresql", packages)
    except debian.Missing as error:
        raise NoPostgresql(f"there is no PostgreSQL server, and {error}: {HOW_TO_GET_IT}") from None
    programs = unpacked_below(BUILD / "postgresql")
    if programs is None:
        raise NoPostgresql(f"Debian's packages have no server below {INSTALLED}: {HOW_TO_GET_IT}")
    return programs


def packages(apt: debian.Apt) -> list[str]:
    """The server's package, and those of its libraries that are not installed."""
    server = re.search(r"Depends: (postgresql-\d+)$", apt("apt-cache", "depends", "postgresql"), re.MULTILINE)
    if server is None:
        raise debian.Missing("apt-cache knows no package postgresql")
    plan = apt("apt-get", "--simulate", "--no-install-recommends", "install", server[1])
    libraries = {name for name in re.findall(r"^Inst (lib\S+)", plan, re.MULTILINE) if not name.startswith("libllvm")}
    return [server[1], *sorted(libraries)]
