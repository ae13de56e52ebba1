"""A pipeline on Apache Flink, one of whose TaskManagers is killed on the way: `make flink-demo`.

`arroyo-udf flink up` starts a session cluster of two TaskManagers on this machine. The pipeline is query.sql, with an
async Python function and a window. First the embedded engine runs it, then Flink; the last line says whether the rows
are the same, and the exit status is 1 if they are not.

Needs Java 17. FLINK_PYTHON names the Python that has apache-flink; the functions are built for it.
Guarantees: when it ends, and after Ctrl-C or SIGTERM, no process and no folder of it is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
FLINK_PYTHON = os.environ.get("FLINK_PYTHON", sys.executable)
CLI = ("-m", "arroyo_udf_plugin.cli")
PATIENCE = 300.0  # seconds: longer than anything takes here, on any machine
SLICES = 8

DESCRIBE = """
import json, sys
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
print(json.dumps(described(Script("query.sql", sys.stdin.read(), sys.argv[1:]).pipeline)))
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-flink-") as name:
        folder = Path(name)
        library = built(folder)
        say("the embedded engine runs the pipeline")
        environment = {**os.environ, "OUT": str(folder / "embedded")}
        run([FLINK_PYTHON, *CLI, "run", HERE / "query.sql", "--udf", library], env=environment)
        with session(folder / "flink") as about:
            on_flink(about, described(library, folder / "on-flink"))
        expected, found = rows(folder / "embedded"), rows(folder / "on-flink")
        say(f"{len(expected)} rows of the embedded engine, {len(found)} rows of Flink")
        say("the rows are the same" if found == expected else "THE ROWS DIFFER")
        return 0 if found == expected else 1


def on_flink(about: dict[str, Any], pipeline: dict[str, Any]) -> None:
    """Submits the pipeline, kills a TaskManager after two checkpoints, and waits for the end."""
    with httpx.Client(base_url=about["url"], timeout=60, trust_env=False) as flink:
        job = submitted(flink, about, pipeline)

        def asked(what: str = "") -> dict[str, Any]:
            content: dict[str, Any] = flink.get(f"/jobs/{job}{what}").raise_for_status().json()
            return content

        def is_running() -> bool:
            state = asked()
            if state["state"] in ("FAILED", "CANCELED", "FINISHED"):
                sys.exit(f"the job is {state['state']} too early: {asked('/exceptions')}")
            tasks = [(vertex["tasks"], vertex["parallelism"]) for vertex in state["vertices"]]
            return all(counts["RUNNING"] + counts["FINISHED"] == number for counts, number in tasks)

        awaited(is_running, "a job that runs")
        say(f"job {job} runs with two tasks of each kind")
        awaited(lambda: asked("/checkpoints")["counts"]["completed"] >= 2, "two checkpoints")
        os.kill(about["pids"]["taskmanager-0"], signal.SIGKILL)
        began = time.monotonic()
        say("after two checkpoints, a TaskManager is killed")
        awaited(lambda: not is_running(), "a job that notices")
        awaited(is_running, "a job that runs again")
        say(f"{time.monotonic() - began:.1f} s later all tasks run again")
        awaited(lambda: asked()["state"] == "FINISHED", "the end of the job")
        say("the job has finished")


def submitted(flink: httpx.Client, about: dict[str, Any], pipeline: dict[str, Any]) -> str:
    with open(about["python_jar"], "rb") as jar:
        uploaded = flink.post("/jars/upload", files={"jarfile": ("flink-python.jar", jar)}).raise_for_status().json()
    job = {"version": 1, "pipeline": pipeline, "slices": SLICES, "checkpoint_interval": 1.0}
    request = {
        "entryClass": "org.apache.flink.client.python.PythonDriver",
        "programArgsList": ["-py", about["runner"], "--job", json.dumps(job)],
        "parallelism": 2,
        "jobId": uuid.uuid4().hex,
    }
    answer = flink.post(f"/jars/{Path(uploaded['filename']).name}/run", json=request)
    if not answer.is_success:
        sys.exit(f"the job was not taken: {answer.text}")
    return str(request["jobId"])


@contextlib.contextmanager
def session(folder: Path) -> Iterator[dict[str, Any]]:
    """A session cluster; yields what its flink.json says."""
    say("a session cluster starts")
    options = ("--folder", folder, "--python", FLINK_PYTHON, "--taskmanagers", "2", "--port", "0", "--detach")
    try:
        run([sys.executable, *CLI, "flink", "up", *options])
        yield json.loads((folder / "flink.json").read_text())
    finally:
        run([sys.executable, *CLI, "flink", "down", "--folder", folder])


def built(folder: Path) -> Path:
    source = folder / "functions.py"
    source.write_text((HERE / "functions.py").read_text())
    run([FLINK_PYTHON, *CLI, "build", source], stdout=subprocess.DEVNULL)
    return folder / "libfunctions.so"


def described(library: Path, out: Path) -> dict[str, Any]:
    """The query as a pipeline. Flink's programs have no variable OUT, so it is replaced here."""
    query = (HERE / "query.sql").read_text().replace("${OUT}", str(out))
    done = run([FLINK_PYTHON, "-c", DESCRIBE, library], input=query, text=True, stdout=subprocess.PIPE)
    pipeline: dict[str, Any] = json.loads(done.stdout)
    return pipeline


def rows(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("part-*") for line in file.read_text().splitlines())


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(list(map(str, command)), check=True, **options)


def awaited(condition: Callable[[], bool], what: str) -> None:
    late = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > late:
            sys.exit(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.05)  # between two looks


def say(text: str) -> None:
    print(f"flink-demo: {text}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
