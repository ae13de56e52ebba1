"""The text of a row that raised: what was raised, and the end of the way there. Called by the native core."""

import traceback

__all__ = ["describe"]

FRAMES = 3
_OWN_FOLDER = __file__.rpartition("/")[0] + "/"


def describe(exception: BaseException) -> str:
    """`Type: message`, then the innermost frames of the user's code, a line each."""
    summary = "".join(traceback.format_exception_only(exception)).strip()
    frames = traceback.extract_tb(exception.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDER)]
    places = [f"  at {frame.name}, {frame.filename}:{frame.lineno}: {frame.line}" for frame in users[-FRAMES:]]
    return "\n".join([summary, *places])
