"""Kills worker processes at random. The seed is in KILL_SEED, or new; it is printed, and pytest shows it on failure."""

import os
import random
import signal
from pathlib import Path


def chance() -> random.Random:
    seed = int(os.environ.get("KILL_SEED", random.randrange(1 << 32)))
    print(f"KILL_SEED={seed}")
    return random.Random(seed)


def kill_worker(host: int, chance: random.Random) -> bool:
    """Kills one of the workers of the process `host`. False if it has none."""
    found = [worker for worker in children(host) if b"arroyo_udf_plugin.worker" in command(worker)]
    if not found:
        return False
    try:
        os.kill(chance.choice(sorted(found)), signal.SIGKILL)
    except ProcessLookupError:
        return False  # it has just ended by itself
    return True


def children(host: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{host}/task").glob("*/children"))
        return [int(child) for task in tasks for child in task.read_text().split()]
    except FileNotFoundError:
        return []  # a thread, or the host, has just ended


def command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
