"""Why a Flink job has failed, from the text of its exceptions.

    reason = reason_of(stack)
    reason.text, reason.is_wrong          RowError: row 3 of orders.csv ..., True

A Python function's exception arrives inside a Java one, as text: its last line has the class and the message.
Guarantees: an error that a new start would only repeat is known by its class, whatever stands around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....errors import BuildError, LoadError, PluginEnvironmentError, RowError, UserCodeError, WrongCheckpoints

SEE_LOG = "Flink gives no reason: see the JobManager's log"
_WRONG = {error.__name__ for error in (RowError, UserCodeError, BuildError, LoadError, PluginEnvironmentError)}
_WRONG |= {WrongCheckpoints.__name__, "InvalidPipeline", "Outside"}
# No other InvalidArgument: it may be about what others have, such as a permission, and they may put it right.
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"^(?P<module>(?:\w+\.)*)(?P<name>\w+)(?:: (?P<text>.*))?$")


@dataclass(frozen=True)
class Reason:
    """is_wrong: a new start would only repeat it."""

    text: str
    is_wrong: bool


def reason_of(stack: str) -> Reason:
    """stack: of Java, with a traceback of Python inside if that was the cause."""
    lines = stack.splitlines()
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    for start in reversed(starts):  # the outermost Python exception is printed last
        for line in lines[start + 1 :]:
            if line and not line[0].isspace():
                raised = _RAISED.match(line)
                if raised is None:
                    break
                is_own = raised["module"].startswith("arroyo_udf_plugin.")
                return Reason(f"{raised['name']}: {raised['text'] or ''}", is_own and raised["name"] in _WRONG)
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return Reason((causes or lines or [SEE_LOG])[-1 if causes else 0] or SEE_LOG, False)
