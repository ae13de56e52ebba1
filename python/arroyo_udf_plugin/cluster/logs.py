"""Log lines on standard error, as text or as JSON: of this package, of its libraries, and of users' functions.

    show("json", "info", job_id="job_4fGh7Kx9Qz", generation=3)         in a worker
    _log.info("started", extra={"job_id": job_id})                      elsewhere

A line has these fields, where they are known: job_id, generation, operator (the function whose call writes it).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

_FIELDS = ("job_id", "generation", "operator")
_TALKATIVE = ("alembic",)
"""Libraries whose warnings only are shown."""


def show(form: Literal["text", "json"], level: str, **own: object) -> None:
    """Shows what is logged in this process. own: fields of each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(_Fields(own))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


class _Fields(logging.Filter):
    """Adds what is known of the process, and of the call."""

    def __init__(self, own: dict[str, object]) -> None:
        super().__init__()
        self._own = own

    def filter(self, record: logging.LogRecord) -> bool:
        known = {"operator": _operator(), **self._own}
        record.__dict__.update({name: value for name, value in known.items() if name not in record.__dict__})
        return True


def _operator() -> str | None:
    """The function whose call runs: the executor names its Tasks so. Other Tasks have names of asyncio's."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    if task is None or task.get_name().startswith("Task-"):
        return None
    return task.get_name().rpartition(".")[2]  # behind the name of the module


def _fields(record: logging.LogRecord) -> dict[str, object]:
    values = {name: record.__dict__.get(name) for name in _FIELDS}
    return {name: value for name, value in values.items() if value is not None}


class _Text(logging.Formatter):
    """The fields are behind the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        return super().formatMessage(record) + (f" [{fields}]" if fields else "")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": time, "level": record.levelname.lower(), "logger": record.name, **_fields(record)}
        entry["message"] = record.getMessage()
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)
