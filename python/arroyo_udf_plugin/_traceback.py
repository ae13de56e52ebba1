"""The text of a row that raised: what was raised, and the end of the way there. Called by the native core."""

import traceback

__all__ = ["describe"]

FRAMES = 3


def describe(exception: BaseException) -> str:
    """`Type: message`, then the innermost frames, a line each."""
    summary = "".join(traceback.format_exception_only(exception)).strip()
    frames = [
        frame
        for frame in traceback.extract_tb(exception.__traceback__)
        if not frame.filename.startswith(__package_folder__)
    ]
    places = [f"  at {frame.name}, {frame.filename}:{frame.lineno}: {frame.line}" for frame in frames[-FRAMES:]]
    return "\n".join([summary, *places])


__package_folder__ = __file__.rpartition("/")[0] + "/"
