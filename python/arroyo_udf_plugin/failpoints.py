"""Named moments at which a test may stop the process.

    failpoints.reached("staged")

Each stands between two steps, where a crash has consequences of its own.

Of an epoch (engine/execution/checkpoints.py): "sealed", "staged", "committed", "applied" (after each sink), "renamed"
(after each part), "cleaned".

Of a controller (cluster/schedulers/process.py), after the job's state is in the database: "starting", "stopping",
"clearing"; "spawned" (the worker exists, and knows nothing), "taken over"; before the controller acts on what a worker
has said: "heard", "heard the end".

Of a worker (cluster/worker.py): "unregistered", "registered"; "ended" (the last epoch is committed, and nobody knows),
"told" (the controller knows, and the process still lives).

Of the API (cluster/api/udfs.py): "stored" (the functions are stored, and no row has them).

Assumes: callers use it through the module, so that a test can put another function in its place.
"""

from __future__ import annotations


def reached(name: str) -> None:
    """Does nothing."""
