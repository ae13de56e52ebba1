"""The scheduler `kubernetes`, against an API server whose operator the test drives (see fake_kubernetes.py)."""

import json
import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY
from fake_flink import write_snapshot
from fake_kubernetes import FakeKubernetes
from lightkube import Client
from waiting import until

from arroyo_udf_plugin.cluster.configuration import KubernetesSettings
from arroyo_udf_plugin.cluster.schedulers.kubernetes import deployed, scheduler
from arroyo_udf_plugin.cluster.schedulers.kubernetes.manifest import name_of
from arroyo_udf_plugin.cluster.schedulers.kubernetes.scheduler import KubernetesScheduler
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task

RUNNING = {"lifecycleState": "STABLE", "jobManagerDeploymentStatus": "READY", "jobStatus": {"state": "RUNNING"}}
USERS = "Error received from SDK harness: Traceback (most recent call last):\n  File x\n{}: no tail"


class Turned:
    """Schedulers of one fake API server; the latest is asked. now: the time of their clocks."""

    def __init__(self, kubernetes: FakeKubernetes, folder: Path) -> None:
        self.kubernetes, self.place, self.now = kubernetes, str(folder / "job_1" / "0"), 0.0
        self._told: queue.SimpleQueue[JobReport] = queue.SimpleQueue()
        self.all: list[KubernetesScheduler] = []
        self.scheduler = self.another()

    def another(self, **settings: Any) -> KubernetesScheduler:
        chosen = KubernetesSettings(**{"namespace": "streams", "image": "flink:own"} | settings)
        client = Client(config=self.kubernetes.config)
        self.scheduler = KubernetesScheduler(self._told.put, chosen, client, clock=lambda: self.now)
        self.all.append(self.scheduler)
        return self.scheduler

    def task(self, generation: int = 1, **changes: Any) -> Task:
        given: dict[str, Any] = {"parallelism": 2, "checkpoint_interval": 10.0, "place": self.place, "slices": 8}
        return Task("job_1", generation, EMPTY, **given | changes)

    def start(self, generation: int = 1, **changes: Any) -> str:
        """Until it is told to be started. Returns the resource's name."""
        self.scheduler.start(self.task(generation, **changes))
        name = name_of("job_1", generation)
        until(lambda: name in self.kubernetes.names(), "the resource")
        self.kubernetes.tell(name, status=RUNNING)
        assert self.told(Event.STARTED).tasks == 2
        return name

    def stop(self, how: Any, generation: int = 1) -> None:
        self.scheduler.stop("job_1", generation, how)

    def told(self, event: Event | None) -> JobReport:
        report = self._told.get(timeout=60)
        assert (report.job_id, report.event) == ("job_1", event), report
        return report

    def looks(self) -> None:
        """Some more, after which nothing is told that was not before."""
        seen = self.kubernetes.looked
        until(lambda: self.kubernetes.looked >= seen + 6, "three looks")
        assert self._told.empty()


@pytest.fixture
def turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Turned]:
    monkeypatch.setattr(scheduler, "LOOK_EVERY", 0.005)
    with FakeKubernetes() as kubernetes:
        turned = Turned(kubernetes, tmp_path)
        try:
            yield turned
        finally:
            for one in turned.all:
                one.close()


def is_suspending(turned: Turned) -> bool:
    return bool(turned.kubernetes.one()["spec"]["job"]["state"] == "suspended")


def is_going(turned: Turned) -> bool:
    return "deletionTimestamp" in turned.kubernetes.one()["metadata"]


def gone(turned: Turned) -> None:
    """The operator removes what is to be deleted."""
    until(lambda: is_going(turned), "a delete")
    turned.kubernetes.operate()


def savepoint(turned: Turned, generation: int, number: int) -> str:
    folder = Path(turned.place) / "flink" / f"g{generation:06}" / "savepoints" / f"savepoint-{number}"
    write_snapshot(folder, number)
    return f"file:{folder}"  # as Flink writes it


def test_a_job_stops_with_a_savepoint_and_goes_on_from_it(turned: Turned) -> None:
    name = turned.start()
    assert "initialSavepointPath" not in turned.kubernetes.one()["spec"]["job"]
    turned.stop("save")
    until(lambda: is_suspending(turned), "the patch")
    turned.kubernetes.tell(name, status={"jobStatus": {"state": "FINISHED"}})  # it has yet to look for the savepoint
    turned.looks()
    place = savepoint(turned, 1, 7)
    turned.kubernetes.tell(name, status={"lifecycleState": "SUSPENDED", "jobStatus": {"upgradeSavepointPath": place}})
    assert turned.told(Event.SAVED).epoch == 7
    turned.scheduler.clear("job_1", 1)
    until(lambda: is_going(turned), "a delete")
    turned.looks()  # not ready yet
    turned.kubernetes.operate()
    assert turned.told(Event.READY).generation == 1
    turned.start(2, resume_at=7)
    assert turned.kubernetes.one()["spec"]["job"]["initialSavepointPath"] == place.replace("file:", "file://")
    assert turned.kubernetes.changes == [
        ("create", name),
        ("patch", name),
        ("delete", name),
        ("create", name_of("job_1", 2)),
    ]


def test_a_graceful_stop_drains(turned: Turned) -> None:
    turned.start()
    turned.stop("drain")
    until(lambda: is_suspending(turned), "the patch")
    chosen = turned.kubernetes.one()["spec"]["flinkConfiguration"]
    assert chosen["kubernetes.operator.job.drain-on-savepoint-deletion"] == "true"
    assert chosen["taskmanager.numberOfTaskSlots"] == "1"  # what was there stays


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_a_cancelled_job_has_ended_when_its_resource_is_gone(turned: Turned, how: str) -> None:
    name = turned.start()
    turned.stop("save")
    turned.stop(how)
    until(lambda: is_going(turned), "a delete")
    turned.stop("save")  # softer
    turned.kubernetes.tell(
        name, status={"jobStatus": {"state": "FINISHED"}}
    )  # the operator writes it of whatever it stops
    turned.looks()
    turned.kubernetes.operate()
    turned.told(Event.CUT_OFF)


def test_a_job_without_a_place_is_cut_off(turned: Turned) -> None:
    turned.start(place=None)
    assert turned.kubernetes.one()["spec"]["job"]["upgradeMode"] == "stateless"
    turned.stop("save")
    gone(turned)
    turned.told(Event.CUT_OFF)


def test_a_stop_of_what_does_not_run_is_answered(turned: Turned) -> None:
    turned.stop("save")
    assert turned.told(Event.LOST).message == "nothing of it runs"
    turned.scheduler.clear("job_1", 3)
    assert turned.told(Event.READY).generation == 3


def test_the_reason_of_a_failure_is_told(turned: Turned) -> None:
    name = turned.start()
    turned.kubernetes.tell(name, status={"error": "TaskManager lost"})  # the operator goes on
    assert turned.told(None).details == "TaskManager lost"
    message = USERS.format("arroyo_udf_plugin.errors.RowError")
    error = {"type": "JobException", "message": "Recovery is suppressed", "throwableList": [{"message": message}]}
    turned.kubernetes.tell(name, status={"error": json.dumps(error), "jobStatus": {"state": "FAILED"}})
    assert turned.told(None).details.startswith("JobException: Recovery is suppressed\nCaused by: Error received")
    assert turned.told(Event.WRONG).message == "RowError: no tail"
    gone(turned)  # nobody needs to ask


def test_a_resource_that_somebody_deletes_is_a_lost_job(turned: Turned) -> None:
    name = turned.start()
    turned.kubernetes.tell(name, metadata={"deletionTimestamp": "2026-11-28T16:00:00Z"})
    turned.looks()  # it still runs
    turned.kubernetes.operate()
    assert turned.told(Event.LOST).message == f"its resource {name} was deleted by somebody else"


# ---- Creates that fail ----


def test_a_create_that_was_not_answered_is_found(turned: Turned) -> None:
    turned.kubernetes.faults = ["lost"]
    name = turned.start()
    assert turned.kubernetes.changes == [("create", name)]


def test_a_create_is_repeated_until_the_resource_is_there(turned: Turned) -> None:
    turned.kubernetes.faults = [503, 429, "late"]
    name = turned.start()
    turned.kubernetes.land()
    turned.looks()
    assert turned.kubernetes.names() == [name]


def test_a_job_that_may_still_appear_has_not_ended(turned: Turned) -> None:
    turned.kubernetes.faults = ["late", *[503] * 1000]
    turned.scheduler.start(turned.task())
    until(lambda: len(turned.kubernetes.faults) < 1000, "a second create")
    turned.stop("cancel")
    turned.looks()
    turned.scheduler.clear("job_1", 1)
    turned.looks()
    turned.kubernetes.land()  # now
    turned.kubernetes.faults = []
    gone(turned)
    turned.looks()  # another one may come
    turned.now += deployed.LANDS_IN
    turned.told(Event.READY)


def test_a_job_that_is_stopped_before_its_start_is_cut_off(turned: Turned) -> None:
    turned.kubernetes.looks = 503, b"{}"
    turned.scheduler.start(turned.task())
    turned.stop("save")
    turned.kubernetes.looks = None
    turned.told(Event.CUT_OFF)
    assert turned.kubernetes.changes == []


@pytest.mark.parametrize(("code", "event"), [(422, Event.WRONG), (403, Event.LOST), (404, Event.LOST)])
def test_a_refused_create_is_told(turned: Turned, code: int, event: Event) -> None:
    turned.kubernetes.faults = [code]
    turned.scheduler.start(turned.task())
    assert turned.told(event).message == f"create FlinkDeployment {name_of('job_1', 1)}: {code}: so the test wants it"


def test_what_has_no_labels_of_ours_is_not_touched(turned: Turned) -> None:
    name = name_of("job_1", 1)
    turned.kubernetes.resources["flinkdeployments", name] = {"kind": "FlinkDeployment", "metadata": {"name": name}}
    turned.scheduler.start(turned.task())
    assert "is there, and is not of this job" in turned.told(Event.WRONG).message
    turned.scheduler.clear("job_1", 1)
    turned.told(Event.READY)
    assert turned.kubernetes.changes == []


# ---- What it goes on from ----


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"resume_at": 5}, "must have checkpoint 5 of this job"),
        ({"restore": {"epoch": 1}}, "does not go back to another"),
    ],
)
def test_what_it_cannot_go_on_from_is_wrong(turned: Turned, changes: dict[str, Any], told: str) -> None:
    savepoint(turned, 1, 4)
    turned.scheduler.start(turned.task(2, **changes))
    assert told in turned.told(Event.WRONG).message
    assert turned.kubernetes.changes == []


def test_an_older_generation_that_appears_is_deleted_and_those_of_others_are_not(turned: Turned) -> None:
    for job_id, generation in (("job_1", 1), ("job_2", 1)):
        labels = {"arroyo-udf/job": job_id, "arroyo-udf/generation": str(generation)}
        name = name_of(job_id, generation)
        own = {
            "kind": "FlinkDeployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {"job": {"state": "running"}},
        }
        turned.kubernetes.resources["flinkdeployments", name] = own
    turned.start(2)
    until(lambda: ("delete", name_of("job_1", 1)) in turned.kubernetes.changes, "a delete")
    turned.kubernetes.operate()
    turned.looks()
    assert turned.kubernetes.names() == [name_of("job_2", 1), name_of("job_1", 2)]


# ---- Controllers that come and go ----


def test_a_job_goes_on_without_its_controller_and_is_found_by_the_next_one(turned: Turned) -> None:
    name = turned.start()
    turned.scheduler.close()
    turned.another()
    assert turned.scheduler.take_over(turned.task())
    turned.told(Event.STARTED)
    turned.stop("kill")
    gone(turned)
    turned.told(Event.CUT_OFF)
    assert turned.kubernetes.changes == [("create", name), ("delete", name)]


def test_what_another_controller_has_not_created_is_orphaned_but_not_too_soon(turned: Turned) -> None:
    assert turned.scheduler.take_over(turned.task())
    turned.looks()
    turned.now += deployed.LANDS_IN
    turned.told(Event.ORPHANED)


def test_who_leads_no_more_says_and_does_nothing(turned: Turned) -> None:
    name = turned.start()
    turned.scheduler.let_go()
    turned.kubernetes.tell(name, status={"jobStatus": {"state": "FAILED"}})
    turned.stop("cancel")
    assert turned.told(Event.LOST).message == "nothing of it runs"
    assert turned.kubernetes.changes == [("create", name)]


@pytest.mark.parametrize(
    "answer",
    [
        (503, b"{}"),
        (410, b'{"kind": "Status", "code": 410, "message": "too old"}'),
        (403, b'{"kind": "Status", "code": 403, "message": "no rights"}'),
        (200, b"{"),
        (200, b'{"items": 3}'),
        (200, b'{"items": [3]}'),
    ],
)
def test_nothing_is_concluded_while_the_api_does_not_answer(
    turned: Turned, caplog: pytest.LogCaptureFixture, answer: tuple[int, bytes]
) -> None:
    turned.start()
    with caplog.at_level(logging.INFO, scheduler.__name__):
        turned.kubernetes.looks = answer
        turned.stop("save")
        turned.scheduler.clear("job_2", 1)
        turned.looks()
        turned.kubernetes.looks = None
        until(lambda: is_suspending(turned), "the patch")
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "the Kubernetes API cannot be asked",
        "the Kubernetes API answers again",
    ]


def test_a_job_runs_in_a_session(turned: Turned) -> None:
    turned.scheduler.close()
    turned.another(mode="session", session="shared", image=None)
    turned.start()
    ((plural, _),) = turned.kubernetes.resources
    spec = turned.kubernetes.one()["spec"]
    assert (plural, spec["deploymentName"]) == ("flinksessionjobs", "shared")
    assert sorted(spec) == ["deploymentName", "flinkConfiguration", "job"]
    assert "jarURI" not in spec["job"]
    turned.stop("cancel")
    gone(turned)
    turned.told(Event.CUT_OFF)
