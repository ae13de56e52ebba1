"""A program: starts a worker in a process that has had none before, and prints how long it took.

    python first_worker.py PLUGIN ISOLATION

From `load` to the first row's result. The host has imported what it needs before.
"""

import json
import sys
import time

import pyarrow as pa

from arroyo_udf_plugin import load

path, isolation = sys.argv[1:]
assert isolation in ("subinterpreter", "process")
row = pa.array([1], pa.int64())
with load(path) as plugin:  # in a thread: what any plugin needs, before the clock runs
    plugin.functions["plus_one"](row)
start = time.perf_counter()
with load(path, isolation="process" if isolation == "process" else "subinterpreter") as plugin:
    assert plugin.functions["plus_one"](row).to_pylist() == [2]
    print(json.dumps({"name": isolation, "value": (time.perf_counter() - start) * 1e3}))
