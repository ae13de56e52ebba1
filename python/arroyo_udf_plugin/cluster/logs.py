"""Log lines on standard error, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {"time": self.formatTime(record), "level": record.levelname.lower(), "logger": record.name}
        told["message"] = record.getMessage()
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


def show(form: Literal["text", "json"], level: str) -> None:
    """Shows what this package and the server log."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_Json() if form == "json" else text)
    for name in ("arroyo_udf_plugin", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
