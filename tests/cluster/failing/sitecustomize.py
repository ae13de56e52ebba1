"""Imported by every Python process that has this folder on its path: one of them is killed at a moment, once.

FAIL_AT: the name of a moment (see failpoints.py). FAILED: a file, which is made when it has happened.
"""

import os
import signal
import sys

if "FAIL_AT" in os.environ and sys.argv[0] in ("-m", "-c"):
    from arroyo_udf_plugin import failpoints

    def reached(name: str) -> None:
        if name == os.environ["FAIL_AT"]:
            try:
                os.close(os.open(os.environ["FAILED"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.reached = reached
