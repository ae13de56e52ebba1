"""For tests in which some rows time out and others, that end at once, do not."""

import contextlib
from collections.abc import Callable


def in_time(run: Callable[[float], None], *timeouts: float) -> None:
    """Runs a test with one timeout (seconds) after another, until it passes; the last one decides.

    A row that ends at once times out as well where its thread gets no processor in time, and rightly so. A rule that is
    broken is broken with every timeout.
    """
    *short, last = timeouts
    for timeout in short:
        with contextlib.suppress(AssertionError):
            run(timeout)
            return
    run(last)
