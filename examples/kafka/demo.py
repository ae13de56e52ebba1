"""A pipeline from one topic of Kafka to another, exactly once, which is killed on the way: `make kafka-demo`.

A broker is started on this machine, with a topic of 200,000 orders. The pipeline is query.sql, with an async Python
function. It is killed (SIGKILL) twice between checkpoints, and resumed. The last line says whether readers of committed
messages see each order once, in its town; exit status 1 if they do not.

Needs Java 17. KAFKA_JARS names the folder with the broker's jars.
Guarantees: when it ends, and after Ctrl-C or SIGTERM, no process and no folder of it is left.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tests" / "connectors"))

import kafka_broker  # noqa: E402

ORDERS = 200_000
KILLS = 2
EPOCHS = 2  # before each kill
PATIENCE = 300.0  # seconds: longer than anything takes here, on any machine


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="arroyo-udf-kafka-") as name,
        kafka_broker.broker(Path(name)) as kafka,
    ):
        orders, deliveries = kafka.topic(partitions=4), kafka.topic(partitions=2)
        for partition in range(4):
            numbers = range(partition, ORDERS, 4)
            kafka.write(orders, [b'{"number": %d, "zip": %d}' % (n, n * 7 % 10_000) for n in numbers], partition)
        say(f"{ORDERS:,} orders are in a topic")
        os.environ |= {"KAFKA": kafka.address, "ORDERS": orders, "DELIVERIES": deliveries}
        run(Path(name) / "state")
        return compare(kafka, deliveries)


def run(state: Path) -> None:
    """Kills the pipeline, and lets the last one end."""
    resume: tuple[str, ...] = ()
    for kill in range(1, KILLS + 1):
        before = epochs(state)
        with started(state, resume) as pipeline:
            late = time.monotonic() + PATIENCE
            while epochs(state) < before + EPOCHS:
                if pipeline.poll() is not None or time.monotonic() > late:
                    pipeline.kill()
                    sys.exit("the pipeline ended before it was killed")
                time.sleep(0.005)  # between two looks
            pipeline.kill()
        say(f"kill {kill}: after epoch {epochs(state)}")
        resume = ("--resume",)
    with started(state, resume) as pipeline:
        if pipeline.wait(PATIENCE) != 0:
            sys.exit("the pipeline has failed")


def started(state: Path, resume: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """The query as a description, because that says how often there are checkpoints."""
    pipeline = Script.read(str(HERE / "query.sql"), [str(HERE / "functions.py")]).pipeline
    checkpoints = Checkpoints(place=str(state), every=0.2)
    description = state.with_name("pipeline.json")
    description.write_text(json.dumps(described(pipeline.model_copy(update={"checkpoints": checkpoints}))))
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", str(description)]
    return subprocess.Popen([*command, *resume])


def epochs(state: Path) -> int:
    """The number of the latest; 0: there is none."""
    return max((int(path.stem) for path in (state / "epochs").glob("*.json")), default=0)


def compare(kafka: kafka_broker.Broker, deliveries: str) -> int:
    expected = collections.Counter((n, f"town {n * 7 % 10_000 % 100}") for n in range(ORDERS))
    found: collections.Counter[tuple[int, str]] = collections.Counter()
    for messages in kafka.messages(deliveries).values():
        for message in messages:
            row = json.loads(message.value() or b"{}")
            found[row["number"], row["town"]] += 1
    say(f"{found.total():,} deliveries are in the other topic")
    say("each order is there once" if found == expected else "ORDERS ARE MISSING, OR THERE TWICE")
    return 0 if found == expected else 1


def say(text: str) -> None:
    print(f"kafka-demo: {text}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
