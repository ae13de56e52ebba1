"""`arroyo-udf flink up`: who can reach the cluster, what becomes of programs that are killed, and what is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from sessions import COMMAND, Session, session, until

NUMBERS = Path(__file__).with_name("numbers_program.py")


def processes_of(folder: Path) -> set[int]:
    """All whose environment names the folder's configuration, Python workers of jobs among them."""
    mark = f"FLINK_CONF_DIR={folder / 'conf'}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:  # it has ended
            continue
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def workers_of(folder: Path) -> set[int]:
    return {pid for pid in processes_of(folder) if "beam_boot" in command_of(pid) or "sdk_worker" in command_of(pid)}


def sockets_of(pids: set[int]) -> list[str]:
    """The address of each socket on which these processes listen, as /proc has it."""
    sockets = {os.readlink(file) for pid in pids for file in _files(pid)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1].partition(":")[0])
    return found


def _files(pid: int) -> list[Path]:
    try:
        return [file for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]
    except OSError:
        return []


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_nothing_listens_on_another_address_than_loopback(session_cluster: Session) -> None:
    """Neither do TaskManagers for the Python workers of a job."""
    before = len(sockets_of(processes_of(session_cluster.folder)))
    session_cluster.run(NUMBERS).await_running(2)
    listening = sockets_of(processes_of(session_cluster.folder))
    assert len(listening) > before
    assert set(listening) <= LOOPBACK


def test_a_killed_taskmanager_comes_back_and_its_python_workers_end(session_cluster: Session) -> None:
    job = session_cluster.run(NUMBERS, parallelism=4)
    job.await_running(4)
    before = workers_of(session_cluster.folder)
    group = os.getpgid(session_cluster.pids["taskmanager-0"])
    orphans = {pid for pid in before if os.getpgid(pid) == group}
    assert orphans
    killed = session_cluster.kill("taskmanager-0")
    session_cluster.await_new("taskmanager-0", killed)
    assert not orphans & workers_of(session_cluster.folder)
    session_cluster.await_slots(4)
    job.await_running(4)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left(end: signal.Signals, flink_python: Path, tmp_path: Path) -> None:
    """After SIGKILL, `down` ends what is left."""
    with session(tmp_path, flink_python, "--slots", 1) as cluster:
        job = cluster.run(NUMBERS, parallelism=1)
        job.await_running(1)
        assert workers_of(tmp_path)
        cluster.process.send_signal(end)
        status = cluster.process.wait()
        if end == signal.SIGKILL:
            assert processes_of(tmp_path)
            again = subprocess.run(
                [*COMMAND, "up", "--folder", tmp_path, "--python", flink_python], capture_output=True
            )
            assert again.returncode == 1
            assert b"arroyo-udf flink down ends the rest" in again.stderr
            ended = subprocess.run([*COMMAND, "down", "--folder", tmp_path], check=True, capture_output=True)
            assert ended.stderr == b"arroyo-udf flink: ended\n"
        else:
            assert status == 0
        until(lambda: not processes_of(tmp_path), "the end of everything")
        assert not (tmp_path / "flink.json").exists()


def test_a_folder_has_one_cluster_and_a_detached_one_ends_by_down(flink_python: Path, tmp_path: Path) -> None:
    up = [*COMMAND, "up", "--folder", tmp_path, "--python", flink_python, "--port", "0", "--slots", "1"]
    try:
        detached = subprocess.run([*up, "--detach"], check=True, capture_output=True, text=True)
        assert re.fullmatch(rf"arroyo-udf flink: http://127\.0\.0\.1:\d+, 1 slot, folder {tmp_path}\n", detached.stderr)
        second = subprocess.run(up, capture_output=True, text=True)
        assert second.returncode == 1
        assert second.stderr == f"Error: {tmp_path}: a cluster runs here; arroyo-udf flink down ends it\n"
    finally:
        subprocess.run([*COMMAND, "down", "--folder", tmp_path], check=True)
    until(lambda: not processes_of(tmp_path), "the end of everything")
