"""A function that waits for the disk: for the host it is async, and each call has a thread while it runs."""

from pathlib import Path

from arroyo_udf_plugin import udf


@udf(blocking=True, allowed_in_flight=20, timeout=5.0)
def size(path: str) -> int:
    """How many bytes a file has. A file that is not there is the error of its row."""
    return Path(path).stat().st_size
