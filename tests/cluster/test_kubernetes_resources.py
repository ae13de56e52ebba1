"""Resources of the Flink Kubernetes Operator: what they say, what is read from them, and jobs whose operator acts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY, posting
from fake_kubernetes import FakeKubernetes

from arroyo_udf_plugin.cluster.configuration import KubernetesSettings, configured
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.program import controlling
from arroyo_udf_plugin.cluster.schedulers.flink.snapshots import StoredSnapshot
from arroyo_udf_plugin.cluster.schedulers.kubernetes import scheduler
from arroyo_udf_plugin.cluster.schedulers.kubernetes.manifest import manifest, name_of
from arroyo_udf_plugin.cluster.schedulers.kubernetes.observed import Observed, stack_in, told_by
from arroyo_udf_plugin.cluster.schedulers.kubernetes.scheduler import KubernetesScheduler
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import Task
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline
from arroyo_udf_plugin.errors import InvalidArgument

SETTINGS = KubernetesSettings(namespace="streams", image="flink:own")
LABELS = {"arroyo-udf/job": "job_1", "arroyo-udf/generation": "3"}
SAVED = "s3://state/job_1/0/flink/g000003/savepoints/savepoint-1"
UNKNOWN = "Job is in terminal state but last checkpoint is unknown, possibly due to an unrecoverable restore error."


def seen(status: object, is_suspending: bool = False, **metadata: Any) -> Observed:
    found = Observed.of(
        {
            "kind": "FlinkDeployment",
            "metadata": {"name": "job-1", "labels": LABELS} | metadata,
            "spec": {"job": {"state": "suspended" if is_suspending else "running"}},
            "status": status,
        }
    )
    assert found is not None
    return found


def of(job: str, cycle: str = "STABLE", savepoint: str = "", **others: str) -> dict[str, Any]:
    return {"lifecycleState": cycle, "jobStatus": {"state": job, "upgradeSavepointPath": savepoint}} | others


@pytest.mark.parametrize(
    ("status", "event"),
    [
        (None, None),  # the operator has not seen it
        ({}, None),
        ({"lifecycleState": 3, "jobStatus": []}, None),
        (of("", "CREATED"), None),
        (of("RECONCILING", "DEPLOYED", jobManagerDeploymentStatus="DEPLOYING"), None),
        (of("CREATED", "DEPLOYED"), None),
        (of("RUNNING", "DEPLOYED"), Event.STARTED),
        (of("RUNNING"), Event.STARTED),
        (of("RESTARTING"), None),  # Flink helps itself
        (of("RECONCILING"), None),  # its JobManager does not answer
        (of("FINISHED"), Event.FINISHED),
        (of("FINISHED", savepoint=SAVED), Event.FINISHED),  # a savepoint that nobody has stopped it with
        (of("FAILED", "FAILED"), Event.LOST),
        (of("", "FAILED", error="spec.job.parallelism is wrong"), Event.LOST),
        (of("RECONCILING", error="Job Not Found"), Event.LOST),  # of a session that was started anew
        (of("RECONCILING", error="HA metadata not available", jobManagerDeploymentStatus="MISSING"), Event.LOST),
        (of("RECONCILING", jobManagerDeploymentStatus="MISSING"), None),
        (of("CANCELED", "SUSPENDED"), Event.CUT_OFF),  # by somebody else
    ],
)
def test_events_of_a_job_that_is_to_run(status: object, event: Event | None) -> None:
    told = told_by(seen(status))
    assert (None if told is None else told.event) is event


@pytest.mark.parametrize(
    ("status", "event"),
    [
        (of("RUNNING"), Event.STARTED),
        (of("FINISHED"), None),  # by the savepoint, or by itself: the operator has yet to see
        (of("FINISHED", error="Timed out stopping the job with savepoint"), None),
        (of("FINISHED", "SUSPENDED", SAVED), Event.SAVED),
        (of("FINISHED", "UPGRADING", SAVED), Event.SAVED),
        (
            {"lifecycleState": "SUSPENDED", "jobStatus": {"savepointInfo": {"lastSavepoint": {"location": SAVED}}}},
            Event.SAVED,
        ),
        # The last checkpoint of a job that has ended by itself, or the savepoint that it went on from.
        (of("FINISHED", "SUSPENDED", "s3://state/job_1/0/flink/g000003/ab/chk-3"), Event.FINISHED),
        (of("FINISHED", "SUSPENDED", SAVED.replace("g000003", "g000002")), Event.FINISHED),
        (of("FINISHED", error=UNKNOWN), Event.FINISHED),
        (of("CANCELED", "SUSPENDED"), Event.CUT_OFF),
        (of("FAILED", "SUSPENDED"), Event.LOST),
    ],
)
def test_events_of_a_job_that_is_to_be_saved(status: object, event: Event | None) -> None:
    told = told_by(seen(status, is_suspending=True))
    assert (None if told is None else told.event) is event


def test_what_is_no_resource_of_ours_is_not_seen() -> None:
    own = {"kind": "FlinkDeployment", "metadata": {"name": "a", "labels": LABELS}}
    assert Observed.of(own) is not None
    for labels in ({}, {"arroyo-udf/job": "job_1"}, LABELS | {"arroyo-udf/generation": "new"}, None):
        assert Observed.of({"kind": "FlinkDeployment", "metadata": {"name": "a", "labels": labels}}) is None
    assert Observed.of(own | {"kind": "Deployment"}) is None
    assert Observed.of({"kind": "FlinkDeployment"}) is None


@pytest.mark.parametrize("error", ["no JSON", "[1]", "3", ""])
def test_an_error_that_is_no_json_is_its_text(error: str) -> None:
    assert stack_in(error) == error


def test_names_are_those_of_kubernetes() -> None:
    """The operator takes 45 characters."""
    ids = ["job_4fGh7Kx9Qz", "job_4fgh7kx9qz", "job_" + "x" * 100]
    names = [name_of(job_id, generation) for job_id in ids for generation in (1, 123_456)]
    assert len(set(names)) == 6
    assert all(re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 45 for name in names)
    assert names[0] == "job-4fgh7kx9qz-4cfe5b31-1"


def test_a_generation_as_a_deployment() -> None:
    task = Task("job_1", 3, EMPTY, 2, 10.0, "s3://state/job_1/0", slices=8)
    made = manifest(task, SETTINGS, StoredSnapshot(2, 7, "s3://state/job_1/0/flink/g000002/savepoints/savepoint-1"))
    assert made["metadata"] == {"name": name_of("job_1", 3), "namespace": "streams", "labels": LABELS}
    spec = made["spec"]
    job, chosen = spec["job"], spec["flinkConfiguration"]
    assert (spec["image"], spec["serviceAccount"], spec["flinkVersion"]) == ("flink:own", "flink", "v2_3")
    assert spec["taskManager"] == spec["jobManager"] == {"resource": {"cpu": 1.0, "memory": "2g"}}
    assert job["args"][:3] == ["-py", "/opt/arroyo-udf/runner.py", "--job"]
    assert json.loads(job["args"][3])["slices"] == 8
    assert (job["state"], job["upgradeMode"], job["parallelism"]) == ("running", "savepoint", 2)
    assert job["initialSavepointPath"] == "s3://state/job_1/0/flink/g000002/savepoints/savepoint-1"
    folder = "s3://state/job_1/0/flink/g000003"
    assert chosen["execution.checkpointing.dir"] == folder
    assert chosen["execution.checkpointing.savepoint-dir"] == f"{folder}/savepoints"
    # A JobManager that is started anew goes on from the newest checkpoint.
    assert (chosen["high-availability.type"], chosen["high-availability.storageDir"]) == ("kubernetes", f"{folder}/ha")
    assert all(isinstance(value, str) for value in chosen.values())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (KubernetesSettings(), "set kubernetes.image"),
        (KubernetesSettings(mode="session", image="flink:own"), "set kubernetes.session"),
    ],
)
def test_settings_that_do_not_say_what_runs_are_refused(settings: KubernetesSettings, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        KubernetesScheduler(lambda report: None, settings)


def test_a_controller_runs_rescales_and_stops_a_job(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the programs make it, with the API server that the environment names."""
    monkeypatch.setattr(scheduler, "LOOK_EVERY", 0.005)
    given = {"data": str(tmp_path), "controller": {"scheduler": "kubernetes"}, "kubernetes": SETTINGS.model_dump()}
    settings = configured(None, given, {}).settings
    cluster = posting(database, tmp_path)

    def saved(number: int) -> str:
        (place,) = (tmp_path / "checkpoints").glob(f"*/0/flink/g{number:06}/savepoints/savepoint-{number}")
        return f"file://{place}"

    with FakeKubernetes() as kubernetes:
        kubernetes.is_operated = True
        monkeypatch.setenv("KUBECONFIG", str(kubernetes.kubeconfig(tmp_path)))
        with controlling(database, settings) as controller:
            pipeline = Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()])
            posted = cluster.post(pipeline, scheduler="flink", slices=8)
            controller.wake()
            job_id = cluster.await_state(posted, "Running").job.id
            cluster.change(posted, parallelism=2)
            controller.wake()
            assert cluster.await_state(posted, "Running", generation=2).status.epoch == 1
            resource = kubernetes.one()
            assert resource["metadata"]["name"] == name_of(job_id, 2)
            assert resource["spec"]["job"]["parallelism"] == 2
            assert resource["spec"]["job"]["initialSavepointPath"] == saved(1)
        assert kubernetes.names() == [name_of(job_id, 2)]  # it goes on without a controller
        with controlling(database, settings) as controller:
            cluster.change(posted, stop="checkpoint")
            controller.wake()
            assert cluster.await_state(posted, "Stopped").status.epoch == 2
            cluster.change(posted, stop="none")
            controller.wake()
            cluster.await_state(posted, "Running", generation=3)
            assert kubernetes.one()["spec"]["job"]["initialSavepointPath"] == saved(2)
            cluster.change(posted, stop="immediate")
            controller.wake()
            cluster.await_state(posted, "Stopped")
        assert kubernetes.names() == []
