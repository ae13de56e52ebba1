"""Shows on stderr what a build does: one changing line on a terminal, else a line for each crate that it compiles."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{record.getMessage()}\n")
        sys.stderr.flush()


class _OneLine(logging.Handler):
    ERASE = "\r\x1b[K"

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        sys.stderr.write(f"{self.ERASE}{text} ..." if text else self.ERASE)
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write(self.ERASE)
        sys.stderr.flush()
        super().close()


@contextmanager
def shown() -> Iterator[None]:
    """While this is open, builds are shown."""
    log = logging.getLogger("arroyo_udf_plugin.build")
    terminal = sys.stderr.isatty()
    handler = _OneLine() if terminal else _Lines()
    level, propagate = log.level, log.propagate
    log.setLevel(logging.DEBUG if terminal else logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()
        log.setLevel(level)
        log.propagate = propagate
