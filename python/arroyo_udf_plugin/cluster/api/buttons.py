"""The button of a pipeline: what is written on it, what it would set `stop` to, and whether something goes on."""

from __future__ import annotations

from typing import NamedTuple

from .shapes.pipelines import StopType


class Button(NamedTuple):
    """action: None: it does nothing now."""

    text: str
    action: StopType | None
    busy: bool


_BUSY_STOP = Button("Stop", "checkpoint", True)
_STOPPING = Button("Stopping", None, True)
_START = Button("Start", "none", False)
_FORCE = Button("Force Stop", "immediate", True)

_BUTTONS: dict[str, tuple[Button, Button]] = {
    # state: while it is wanted that the job runs, while it is not
    "Created": (_BUSY_STOP, _START),
    **dict.fromkeys(("Compiling", "Scheduling", "Rescaling", "Recovering", "Restarting"), (_BUSY_STOP, _STOPPING)),
    "Running": (Button("Stop", "checkpoint", False), _STOPPING),
    "CheckpointStopping": (_FORCE, _FORCE),
    "Stopping": (Button("Stopping", "checkpoint", True), _STOPPING),
    "Stopped": (Button("Starting", None, True), _START),
    **{state: (Button(state, None, True),) * 2 for state in ("Finishing", "Failing")},
    "Finished": (Button("Finished", None, False),) * 2,
    "Failed": (Button("Failed", None, False), _START),
}


def button(state: str, wanted: bool) -> Button:
    """wanted: that it runs. A state of a newer version has a button that does nothing."""
    both = _BUTTONS.get(state, (Button(state, None, True),) * 2)
    return both[0 if wanted else 1]
