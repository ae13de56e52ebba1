"""Which function a worker has died in: read from the stack that Python leaves on a fatal signal.

Fatal Python error: Segmentation fault

Current thread 0x00007f4d (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/tmp/town.py", line 6 in town
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BEGIN = "Fatal Python error:"
_FRAME = re.compile(r'^  File ".*", line \d+ in (\w+)$', re.MULTILINE)
INSTEAD = 'with isolation = "process" such a crash costs the row in hand only'


def crashed_in(output: str, program: Mapping[str, Any]) -> str | None:
    """program: see `Task`. The innermost function that it calls; None: the output tells none."""
    _, begin, stack = output.rpartition(_BEGIN)
    called = json.dumps(program.get("pipeline"))
    frames: list[str] = _FRAME.findall(stack) if begin else []
    return next((name for name in frames if re.search(rf"\b{name}\b", called)), None)
