"""A function that waits for the disk. For the host it is async; each call runs on a thread of a pool."""

from pathlib import Path

from arroyo_udf_plugin import udf


@udf(blocking=True, allowed_in_flight=20, timeout=5.0)
def size(path: str) -> int:
    """The size of a file in bytes. A missing file is an error of its row."""
    return Path(path).stat().st_size
