"""The end of a process that a function has forked, and in which the function comes back to the toolkit.

Its rows are its parent's. So it ends there, as a program whose main function has returned or raised: `sys.exit(3)`
gives the exit status 3. Exit handlers are the parent's, and do not run.
"""

import os
import sys
import traceback

__all__ = ["end"]


def end(error: BaseException | None) -> None:
    """Ends this process. error: what the function has raised."""
    status = 1
    try:
        status = _status(error)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _status(error: BaseException | None) -> int:
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        traceback.print_exception(error)
        return 1
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1
