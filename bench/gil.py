"""A program: a thread of a Python host sleeps and calls a sync function, beside an event loop that never sleeps.

    python gil.py PLUGIN SWITCH_INTERVAL

Prints {"name": "p99", "value": microseconds} of what a sleep and a call take beyond the time of the sleep. BENCH_LOOP
names the loop, see udf.py.
"""

from __future__ import annotations

import json
import math
import sys
import time
from statistics import quantiles

import pyarrow as pa

from arroyo_udf_plugin import load

PAUSE = 0.0005  # seconds


def main() -> None:
    path, interval = sys.argv[1:]
    functions = load(path).functions
    plus_one, number = functions["plus_one"], pa.array([1])
    waits = []
    with functions["spin"].start(allowed_in_flight=1000, timeout=math.inf) as runtime:
        runtime.send(0, pa.array(range(1000)))
        while runtime.statistics().running < 1000:
            time.sleep(0.001)  # releases the GIL, so that the rows start
        sys.setswitchinterval(float(interval))
        for _ in range(300):
            start = time.perf_counter()
            time.sleep(PAUSE)  # the case itself: a thread that comes back for the GIL
            assert plus_one(number).to_pylist() == [2]
            waits.append((time.perf_counter() - start - PAUSE) * 1e6)
        runtime.stop("cancel")
    print(json.dumps({"name": "p99", "value": quantiles(waits, n=100)[98]}))


if __name__ == "__main__":
    main()
