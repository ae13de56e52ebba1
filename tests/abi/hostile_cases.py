"""A child process of test_hostile.py: hostile_cases.py PLUGIN, with the cases on stdin, one JSON list a line.

A case is [name, HOSTILE, step, arguments]. Prints one JSON line for each: [name, kind, text], where kind is the
exception's class, or "returned". CLI steps give "exit STATUS" and the last line of output.
"""

import contextlib
import faulthandler
import io
import json
import os
import sys
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin import load
from arroyo_udf_plugin.cli import main

SECONDS = 10  # for one case, before its stacks are printed and the process ends
plugin, folder = sys.argv[1:]


def add(validate: bool = False) -> Any:
    return load(plugin, validate=validate).functions["add"](pa.array([1, 2, 3]), pa.array([10, 20, 30])).to_pylist()


def greet(validate: bool = False) -> Any:
    return load(plugin, validate=validate).functions["greet"](pa.array(["a", "b", "c"])).to_pylist()


def outcomes() -> Any:
    return load(plugin).functions["add"].outcomes(pa.array([1, 2, 3]), pa.array([10, 20, 30])).to_pylist()


def stream(ordered: bool = True, rows: int = 3) -> Any:
    """Sends rows in two batches, drains, stops, drains until the end."""
    rows_out = []
    with load(plugin).functions["next"].start(ordered=ordered) as runtime:
        runtime.send(0, pa.array(range(rows)))
        while runtime.wait(0) and (drained := runtime.drain_results()) is not None:
            rows_out += drained.column("id").to_pylist()
            if len(rows_out) > 4 * rows:
                raise RuntimeError("rows without end")
        runtime.send(rows, pa.array(range(rows)))
        runtime.cancel(0)
        runtime.statistics()
        runtime.stop()
        while (drained := runtime.drain_results()) is not None:
            rows_out += drained.column("id").to_pylist()
            if len(rows_out) > 4 * rows:
                raise RuntimeError("rows without end")
    return rows_out


def wait() -> Any:
    with load(plugin).functions["next"].start() as runtime:
        return runtime.wait()


def wait_after_stop() -> Any:
    with load(plugin).functions["next"].start() as runtime:
        runtime.stop()
        return runtime.wait()


def listed() -> Any:
    return {name: function.kind for name, function in load(plugin).functions.items()}


def cli(*arguments: str) -> tuple[str, str]:
    out = io.StringIO()
    with contextlib.redirect_stderr(out), contextlib.redirect_stdout(out):
        try:
            main(list(arguments), standalone_mode=True)
        except SystemExit as end:
            return f"exit {end.code}", out.getvalue()
    raise AssertionError("click always exits")


def inspect() -> Any:
    return cli("inspect", plugin)


def run(function: str, columns: str, *options: str) -> Any:
    source, target = os.path.join(folder, "in.csv"), os.path.join(folder, "out.csv")
    return cli("run", f"{plugin}:{function}", source, "--args", columns, "--out", target, *options)


STEPS = {step.__name__: step for step in (add, greet, outcomes, stream, wait, wait_after_stop, listed, inspect, run)}


def result(step: str, arguments: list[Any]) -> tuple[str, str]:
    try:
        answer = STEPS[step](*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return answer if isinstance(answer, tuple) else ("returned", repr(answer))


for line in sys.stdin:
    name, hostile, step, arguments = json.loads(line)
    os.environb[b"HOSTILE"] = hostile.encode("latin-1")
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    kind, text = result(step, arguments)
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps([name, kind, text]), flush=True)
