"""The program of a child process: waits for a job, answers it, and ends. A spare child does its imports meanwhile.

It reads a line of JSON from standard input and writes one to standard output, or several if it tries a function. What
user code prints goes to standard error.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from types import FrameType


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    from . import messages

    if "spare" in sys.argv:
        from ...engine.datafusion.feed import warm
        from . import building, planning

        warm()
    line = sys.stdin.readline()
    if not line:  # whoever started it is gone
        return
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # whatever reads it would wait until the time is over
    signal.signal(signal.SIGTERM, _end)  # so that compilers end, too
    job = messages.JOB.validate_json(line)

    def tell(answer: messages.Built | messages.PlanResult | messages.Tried | messages.ReplayResult) -> None:
        answers.write(answer.model_dump_json() + "\n")
        answers.flush()

    if isinstance(job, messages.PlanRequest):
        from . import planning

        os.environ.update(job.environment)
        tell(planning.planned(job))
    elif isinstance(job, messages.TryRequest):
        from . import trying

        trying.tried(job, tell)
    elif isinstance(job, messages.ReplayRequest):
        from . import replaying

        tell(replaying.replayed(job))
    else:
        from . import building

        tell(building.built(job))
    os._exit(0)  # threads of user code may go on


def _limit(memory: int, cpu_seconds: int) -> None:
    """Of this process and each one that it starts. Whoever is root may have more, but does not ask for it."""
    for which, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 2 << 30),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(which)
        chosen = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(which, (chosen, chosen))


def _end(signal_number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    main()
