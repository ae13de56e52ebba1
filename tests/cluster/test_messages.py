"""What workers say to a controller: whatever it is, it changes their own job only, and ends nobody."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY, Cluster, settings_in
from simulations import Simulation
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.monitoring.metrics import Families
from arroyo_udf_plugin.cluster.schedulers import messages, protocol
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline


class Heard:
    """A scheduler with a job, whose worker the test is."""

    def __init__(self, folder: Path) -> None:
        self.told: list[JobReport] = []
        self.scheduler = ProcessScheduler(self.told.append, settings_in(folder))
        self.scheduler._serve()
        for job_id in ("job_1", "job_2"):
            self.scheduler._add(Task(job_id, 3, EMPTY, 1, 10.0, None))
        self._folder = folder

    def say(self, body: Any, what: str = "reports") -> tuple[int, Any]:
        secret = protocol.secret_of(protocol.key_of(self._folder), "job_1", 3)
        return protocol.ask(self._folder, protocol.path_of("job_1", 3, what), secret, body, 10)


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    made = Heard(tmp_path)
    yield made
    made.scheduler.close()


def test_a_worker_reports_for_its_own_job_whatever_it_says(heard: Heard) -> None:
    assert heard.say([{"job_id": "job_2", "generation": 7, "event": "finished"}]) == (200, {})
    assert heard.told == [JobReport("job_1", 3, Event.FINISHED)]


def test_all_that_a_worker_tells_arrives(heard: Heard) -> None:
    """Each field of a report has its type, but for what only a scheduler tells."""
    own = {"job_id", "generation", "parallelism"}
    assert {one.name for one in dataclasses.fields(JobReport)} - own == set(messages.Said.model_fields)
    assert heard.say([{"event": "saved", "epoch": 7, "retained": [5, 7], "outage": "s3://state"}]) == (200, {})
    assert heard.told == [JobReport("job_1", 3, Event.SAVED, epoch=7, retained=(5, 7), outage="s3://state")]


CHECKPOINT = {"epoch": 1, "at": 1.0, "seconds": 1.0}
SHOWN = {"operator_id": "x", "subtask_idx": 0, "start_id": 0, "timestamps": [1], "batch": "[]"}
MALFORMED: dict[str, Any] = {
    "no list": {"event": "lost"},
    "no object": [1],
    "an event of nobody": [{"event": "exploded"}],
    "an event of a user": [{"event": "stop force"}],
    "an event of the scheduler": [{"event": "ready"}],
    "half a checkpoint": [{"checkpoint": {"epoch": 1}}],
    "an epoch too large": [{"checkpoint": {**CHECKPOINT, "epoch": 2**40}}],
    "a time that is none": [{"checkpoint": {**CHECKPOINT, "at": float("nan")}}],
    "a time without an end": [{"checkpoint": {**CHECKPOINT, "seconds": float("inf")}}],
    "operators that are none": [{"checkpoint": {**CHECKPOINT, "operators": [1]}}],
    "numbers that are none": [{"numbers": {"nodes": {"0": {"subtasks": {"0": {"messages_recv": "many"}}}}}}],
    "numbers of an older version": [{"numbers": {"operators": 7}}],
    "rows without a place": [{"shown": [{"batch": "[]"}]}],
    "rows before the first": [{"shown": [{**SHOWN, "start_id": -1}]}],
    "a domain of its own": [{"event": "lost", "domain": "mine"}],
    "a text that is none": [{"message": ["a"]}],
    "an epoch before the first": [{"epoch": -1}],
    "epochs that are none": [{"retained": ["a"]}],
    "too many tasks": [{"event": "started", "tasks": 2**40}],
    "nothing": None,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_message_that_is_not_understood_is_refused_and_counted(heard: Heard, name: str) -> None:
    """With good ones before it, of which none is taken."""
    body = MALFORMED[name]
    status, answer = heard.say([{"event": "started"}, *body] if isinstance(body, list) else body)
    assert (status, heard.told, heard.scheduler.refused) == (400, [], 1)
    assert answer["error"].startswith("this message is not understood: ")
    assert heard.say([{"message": "output"}])[0] == 200


def test_text_that_no_database_takes_is_mended(heard: Heard) -> None:
    """It may be of a user's function."""
    shown = {**SHOWN, "batch": '["\ud800"]'}
    assert heard.say([{"event": "lost", "message": "a\0b\ud800"}, {"shown": [shown]}])[0] == 200
    assert heard.told[0].message == "a\N{REPLACEMENT CHARACTER}b?"


@pytest.mark.parametrize("seen", [-1, "a", None, 2**70])
def test_orders_are_asked_for_by_a_number(heard: Heard, seen: Any) -> None:
    assert heard.say({"of": "", "seen": seen}, "orders")[0] == 400
    assert heard.say([], "orders")[0] == 400
    assert heard.scheduler.refused == 2


def test_a_report_that_cannot_be_taken_ends_no_controller(migrated: Path) -> None:
    """As one that the types above have let pass."""
    with contextlib.closing(Simulation(migrated)) as simulation:
        made = simulation.start()
        posted = simulation.post()
        simulation.settle(2)
        job = simulation.get(posted).job.id
        broken: Any = {"epoch": 1}
        made._words.put(JobReport(job, 1, checkpoint=broken))
        made._words.put(JobReport(job, 1, Event.FINISHED))
        simulation.settle(2)
        assert simulation.get(posted).status.state == "Finished"


def test_a_controller_that_ends_by_a_bug_gives_the_lead_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(contextlib.closing(Cluster(database, settings_in(tmp_path)))) for _ in range(2)
        )
        posted = first.post(Pipeline(name="p", source=Impulse(rate=10), sinks=[Blackhole()]))
        first.await_state(posted, "Running")

        def fail(now: float) -> Any:
            raise RuntimeError("a bug")

        monkeypatch.setattr(first.controller._timers, "due", fail)
        first.controller.wake()
        until(lambda: not first.controller.is_alive, "the end of the thread")
        assert not first.controller.leads
        second.await_state(posted, "Running", generation=2)


def test_refused_messages_are_told(heard: Heard, database: Database, tmp_path: Path) -> None:
    with contextlib.closing(Cluster(database, settings_in(tmp_path))) as cluster:
        families = Families()
        cluster.controller.tell(families)
        assert families._samples["arroyo_udf_controller_refused_messages_total"][0][2] == 0
