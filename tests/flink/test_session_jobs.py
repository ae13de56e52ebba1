"""Session jobs on a real Flink. The API server is the tests' own, and so is its operator: it asks Flink for what the
Flink Kubernetes Operator would ask for, with nothing but what the resource says, and uploads a jar that is empty."""

from __future__ import annotations

import contextlib
import io
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from clusters import posting
from fake_kubernetes import FakeKubernetes, Resource
from sessions import FlinkJob
from test_flink_scheduler import await_more_rows, check, counting
from waiting import until

from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.program import controlling
from arroyo_udf_plugin.cluster.schedulers.kubernetes import manifest

if TYPE_CHECKING:
    from sessions import Session


class Operated(FakeKubernetes):
    def __init__(self, cluster: Session) -> None:
        super().__init__()
        self._cluster, self.is_operated = cluster, True

    def operate(self) -> None:
        for key, resource in list(self.resources.items()):
            asked, chosen = resource["spec"]["job"], resource["spec"]["flinkConfiguration"]
            status: dict[str, Any] = resource.setdefault("status", {"jobStatus": {}})
            job = self._job(key[1])
            state = job.state()
            if resource["metadata"].get("deletionTimestamp"):
                job.cancel()
                del self.resources[key]
            elif state is None:
                self._submit(job.id, asked, chosen)
            elif asked["state"] == "suspended" and state == "RUNNING":
                location = job.stop_with_savepoint(chosen["execution.checkpointing.savepoint-dir"])
                status["jobStatus"] |= {"state": "FINISHED", "upgradeSavepointPath": location}
                status["lifecycleState"] = "SUSPENDED"
            else:
                status["jobStatus"]["state"] = state

    def await_tasks(self, generation: int) -> None:
        """It takes a Python program of its own, and a minute on a machine that has much to do. So do its tasks."""
        until(lambda: generation in self._submitted(), "a submit")
        with self._lock:
            (name,) = self.names()
        self._job(name).await_running()

    def _submitted(self) -> list[int]:
        with self._lock:
            submitted = [own["metadata"]["labels"] for own in self.resources.values() if own.get("status")]
            return [int(labels["arroyo-udf/generation"]) for labels in submitted]

    def _job(self, name: str) -> FlinkJob:
        return FlinkJob(self._cluster, uuid.uuid5(uuid.NAMESPACE_OID, name).hex, {})  # only the operator submits it

    def _submit(self, job_id: str, asked: Resource, chosen: Resource) -> None:
        empty = io.BytesIO()
        with zipfile.ZipFile(empty, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        sent = self._cluster.send("POST", "/jars/upload", files={"jarfile": ("empty.jar", empty.getvalue())})
        request = {
            "entryClass": asked["entryClass"],
            "programArgsList": asked["args"],
            "parallelism": asked["parallelism"],
            "jobId": job_id,
            "allowNonRestoredState": asked["allowNonRestoredState"],
            "savepointPath": asked.get("initialSavepointPath"),
            "flinkConfiguration": chosen,
        }
        self._cluster.send("POST", f"/jars/{Path(sent['filename']).name}/run", json=request)


def test_a_job_is_rescaled_and_stopped_and_has_each_row_once(
    session_cluster: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "RUNNER", str(session_cluster.runner))
    settings = configured(
        None,
        {
            "data": str(tmp_path),
            "controller": {"scheduler": "kubernetes"},
            "kubernetes": {"namespace": "streams", "mode": "session", "session": "shared"},
        },
        {},
    ).settings
    address = f"sqlite:///{tmp_path / 'cluster.sqlite'}"
    with Operated(session_cluster) as kubernetes, contextlib.closing(Database.open(address)) as database:
        database.migrate()
        cluster = posting(database, tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(kubernetes.kubeconfig(tmp_path)))
        with controlling(database, settings) as controller:
            posted = cluster.post(counting(tmp_path), scheduler="flink", slices=4, checkpoint_interval_micros=1_000_000)
            controller.wake()
            kubernetes.await_tasks(1)
            cluster.await_state(posted, "Running")
            await_more_rows(tmp_path)
            cluster.change(posted, parallelism=2)
            controller.wake()
            kubernetes.await_tasks(2)
            rescaled = cluster.await_state(posted, "Running", generation=2)
            assert rescaled.status.epoch > 0
            assert kubernetes.one()["spec"]["job"]["initialSavepointPath"]
            await_more_rows(tmp_path)
            cluster.change(posted, stop="checkpoint")
            controller.wake()
            stopped = cluster.await_state(posted, "Stopped").status
            assert (stopped.restarts, stopped.epoch > rescaled.status.epoch) == (0, True)
            until(lambda: not kubernetes.names(), "no resources")
    check(tmp_path)
