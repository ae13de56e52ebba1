"""Child processes with limits, one job each. Builds and plans have places of their own (see `fair_queue.py`).

After `prepare`, a spare child waits that has done the imports, which take a second. Whatever a child has started ends
with it: they are one session, and the session is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .fair_queue import Lane, Turns
from .messages import Job, PlanRequest, ReplayRequest

_PACKAGE = Path(__file__).resolve().parents[3]
_KEPT = ("PATH", "LANG", "LC_ALL", "CC", "ARROYO_UDF_PYTHON", "SSL_CERT_FILE", "SSL_CERT_DIR")
_GRACE_SECONDS = 1.0
_MOST_ANSWER = 64 << 20
_TOLD = 2000
_PREFIX, _ERRORS = "child-", "stderr"
_UNLOCKED = "stderr-unlocked"


@dataclass(frozen=True)
class ChildLimits:
    """seconds: of a build. plan_seconds: of a plan, or a replay. memory: bytes of address space of each process.
    builds, plans: how many run, and may wait; a replay is one of the plans."""

    seconds: float = 120.0
    plan_seconds: float = 120.0
    memory: int = 4 << 30
    builds: Lane = Lane()  # noqa: RUF009 (frozen)
    plans: Lane = Lane()  # noqa: RUF009 (frozen)

    @property
    def cpu_seconds(self) -> int:
        """Of a child that does not know its job yet."""
        return max(1, round(max(self.seconds, self.plan_seconds)))

    def seconds_of(self, job: Job) -> float:
        """For its first answer."""
        return self.plan_seconds if isinstance(job, PlanRequest | ReplayRequest) else self.seconds


class ChildFailed(Exception):
    """A child has ended without an answer. The text says why, for whoever wrote the code that it ran. reason: how its
    process has ended: the name of a signal, or its status; empty: it had to be ended."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


@dataclass
class _Child:
    process: asyncio.subprocess.Process
    folder: Path


class Children:
    """folder: in which private folders are made. cache: that of builds, which all children share."""

    def __init__(self, folder: Path, cache: Path, limits: ChildLimits) -> None:
        self._folder, self._cache, self._limits = folder, cache, limits
        self.builds, self.plans = Turns("builds", limits.builds), Turns("plans", limits.plans)
        self._has_spares = False
        self._spare: asyncio.Task[_Child] | None = None

    def prepare(self) -> None:
        """From now on there is a spare child."""
        self._has_spares = True
        if self._spare is None:
            self._spare = asyncio.get_running_loop().create_task(self._start("spare"))

    async def close(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(Exception):
                await _end(await spare)  # not cancelled: asyncio would leave a process that has just started

    @contextlib.asynccontextmanager
    async def working(self, turns: Turns) -> AsyncIterator[Child]:
        """A child for one job. It has ended when the block ends. turns: `builds` or `plans`. Raises Busy."""
        async with turns.turn():
            spare, self._spare = self._spare, None
            started = await self._alive(spare) or await self._start()
            if self._has_spares:
                self.prepare()
            try:
                yield Child(started, self._limits)
            finally:
                await asyncio.shield(_end(started))

    async def _alive(self, spare: asyncio.Task[_Child] | None) -> _Child | None:
        """None: there is no spare child, or something has ended it while it waited: nobody's job was the reason."""
        if spare is None:
            return None
        try:
            child = await spare
        except OSError:
            return None
        if child.process.returncode is None:
            return child
        await _end(child)
        return None

    async def _start(self, *how: str) -> _Child:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._folder))  # 0700
        try:
            with (folder / _UNLOCKED).open("wb") as errors:
                fcntl.flock(errors, fcntl.LOCK_EX)  # of the child, too: as long as it lives, its folder is in use
                (folder / _UNLOCKED).rename(folder / _ERRORS)  # what `left_behind` finds was locked before
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-s", "-m", f"{__package__}.child"),
                    *(
                        str(self._limits.memory),
                        str(max(1, round(max(self._limits.seconds, self._limits.plan_seconds)))),
                        *how,
                    ),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    cwd=folder,
                    env=self._environment(folder),
                    start_new_session=True,
                    limit=_MOST_ANSWER,
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _Child(process, folder)

    def _environment(self, folder: Path) -> Mapping[str, str]:
        home = Path.home()
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "XDG_CACHE_HOME": str(self._cache),
            "PYTHONPATH": str(_PACKAGE),
        }


def left_behind(folder: Path) -> Iterator[Path]:
    """Private folders of children that have ended: whoever started them was killed."""
    for path in folder.glob(f"{_PREFIX}*/{_ERRORS}"):
        with contextlib.suppress(OSError), path.open("rb") as errors:  # it is locked, or has just been removed
            fcntl.flock(errors, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path.parent


class Child:
    """folder: its private one, which is removed with it."""

    def __init__(self, child: _Child, limits: ChildLimits) -> None:
        self._process, self.folder = child.process, child.folder
        self._limits = limits

    async def answer(self, job: Job) -> bytes:
        """The first line of its answer. Raises ChildFailed."""
        seconds = self._limits.seconds_of(job)
        assert self._process.stdin is not None
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._process.stdin.write(job.model_dump_json().encode() + b"\n")
                    await self._process.stdin.drain()
                return await self.line()
        except TimeoutError:
            raise ChildFailed(f"it takes more than {seconds:g} s") from None

    async def line(self) -> bytes:
        """The next line. Raises ChildFailed: there is none."""
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except ValueError:
            raise ChildFailed("its answer is too large") from None
        if line.endswith(b"\n"):
            return line
        reason = _reason(await self._process.wait())
        raise ChildFailed(f"it ended the process that loaded it: {reason}{self._last_words()}", reason)

    def printed(self, most: int) -> str:
        """The first so many bytes of what it has written to standard output and standard error."""
        with (self.folder / _ERRORS).open("rb") as file:
            return file.read(most).decode(errors="replace")

    def _last_words(self) -> str:
        text = (self.folder / _ERRORS).read_bytes()[-_TOLD:].decode(errors="replace").strip()
        return f"\n{text}" if text else ""


def _reason(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"


async def _end(child: _Child) -> None:
    """Ends it and all of its session, and removes its folder."""
    process = child.process
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    for pid in _session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
    await asyncio.to_thread(shutil.rmtree, child.folder, ignore_errors=True)


def _session(leader: int) -> list[int]:
    """The processes of a session."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                behind_name = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(behind_name[3]) == leader:
                    pids.append(int(entry.name))
    return pids
