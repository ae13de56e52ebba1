"""An engine in a process of its own, to be killed: child.py DESCRIPTION MOMENT EPOCHS [--resume]

Says "epoch" after each epoch. After EPOCHS of them it kills itself at the next MOMENT (a name of failpoints.py); with
the moment "any" it is killed by its parent. SIGTERM stops it; then it says how it ended. SIGABRT: it says where it is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from pathlib import Path

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of

description, moment, wanted = sys.argv[1:4]
epochs = 0
stop = StopRequest(timeout=60)


def reached(name: str) -> None:
    global epochs
    if name == moment and epochs >= int(wanted):
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "cleaned":
        epochs += 1
        print("epoch", flush=True)


failpoints.reached = reached
faulthandler.enable()
signal.signal(signal.SIGTERM, lambda number, frame: stop.request())
summary = run_pipeline(pipeline_of(json.loads(Path(description).read_text())), resume="--resume" in sys.argv, stop=stop)
print(summary.ended, flush=True)
