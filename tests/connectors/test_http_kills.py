"""A pipeline from a webhook to a webhook is killed with SIGKILL, again and again: each row that was confirmed arrives,
and for a receiver who takes each key once, it arrives once.

KILLS: see connector_kills.py. KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from connector_kills import KILLS, MOMENTS
from failing import ended
from http_server import Answer, Request, serving
from waiting import until

pytestmark = pytest.mark.connectors

CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"
EPOCHS = 2
AHEAD = 300
"""Rows that may be on their way. Without a limit, epochs grow on a slow machine until none ends."""


class Receiver:
    """Takes each key once, and fails now and then, also after it has taken one."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._lock = chance, threading.Lock()
        self.taken: dict[str, list[int]] = {}
        self.n_rows = 0

    def answer(self, request: Request) -> Answer:
        with self._lock:
            luck = self._chance.random()
            if luck < 0.02:
                return Answer(503)
            rows = [row["n"] for row in json.loads(request.body)]
            key = request.headers["idempotency-key"]
            if key not in self.taken:
                self.taken[key] = rows
                self.n_rows += len(rows)
            assert self.taken[key] == rows, "a key has other rows"
            return Answer(None if luck < 0.04 else 200)

    def numbers(self) -> list[int]:
        with self._lock:
            return sorted(n for rows in self.taken.values() for n in rows)


class Sender(threading.Thread):
    """Sends rows, each delivery with a key of its own, until it is confirmed."""

    def __init__(self, url: str, receiver: Receiver) -> None:
        super().__init__(daemon=True)
        self._url, self._receiver = url, receiver
        self._ended, self.confirmed = threading.Event(), 0

    def run(self) -> None:
        with httpx.Client(trust_env=False, timeout=5) as client:
            while not self._ended.wait(0.002):
                if self.confirmed - self._receiver.n_rows > AHEAD:
                    continue
                body = json.dumps([{"n": n} for n in range(self.confirmed, self.confirmed + 5)])
                with contextlib.suppress(httpx.TransportError):
                    answer = client.post(self._url, content=body, headers={"Idempotency-Key": str(self.confirmed)})
                    assert answer.status_code in (202, 429, 503), answer.text
                    if answer.status_code == 202:
                        self.confirmed += 5

    def end(self) -> None:
        self._ended.set()
        self.join(60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def test_webhook_to_webhook(tmp_path: Path) -> None:
    seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
    print(f"KILL_SEED={seed} KILLS={KILLS}")
    chance = random.Random(seed)
    receiver, listen = Receiver(random.Random(seed)), f"127.0.0.1:{free_port()}"
    path, errors = tmp_path / "pipeline.json", tmp_path / "errors"

    def engine(moment: str, is_first: bool) -> subprocess.Popen[str]:
        path.write_text(json.dumps(description | {"parallelism": chance.randint(1, 3)}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *([] if is_first else ["--resume"])]
        with open(errors, "w") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    sender = Sender(f"http://{listen}/rows", receiver)
    with serving(receiver.answer) as server:
        description: dict[str, Any] = {
            "name": "killed",
            "source": {
                **{"type": "webhook", "listen": listen, "path": "/rows", "journal": str(tmp_path / "journal")},
                **{"types": {"n": "int64"}, "remember": 0.5},
            },
            "sinks": [{"type": "webhook", "endpoint": server.url, "rows": 3}],
            "checkpoints": {"place": str(tmp_path / "checkpoints"), "every": 0.02},
        }
        sender.start()
        for number in range(KILLS):
            moment = MOMENTS[(seed + number) % len(MOMENTS)]
            with engine(moment, is_first=not number) as process:
                assert process.stdout is not None
                for epochs, line in enumerate(process.stdout, 1):
                    assert line == "epoch\n", errors.read_text()
                    if moment == "any" and epochs == EPOCHS:
                        time.sleep(chance.random() / 10)  # a kill at any moment: no result depends on its length
                        process.kill()
                assert process.wait(120) == -signal.SIGKILL, errors.read_text()
            found = receiver.numbers()
            assert len(found) == len(set(found)), "rows came twice"
        with ended(engine("none", is_first=False)) as process:
            confirmed = sender.confirmed
            until(lambda: sender.confirmed > confirmed or process.poll() is not None, "rows of the last engine")
            sender.end()
            assert not sender.is_alive()
            until(lambda: len(receiver.numbers()) >= sender.confirmed or process.poll() is not None, "all rows")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, errors.read_text()
        assert output.splitlines()[-1] == "resumable"
    # The last delivery may be taken, although its sender has not heard of it.
    assert receiver.numbers() in (list(range(sender.confirmed)), list(range(sender.confirmed + 5)))
