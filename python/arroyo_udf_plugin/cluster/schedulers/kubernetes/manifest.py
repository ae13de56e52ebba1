"""A generation of a job as a resource of the Flink Kubernetes Operator.

    manifest(task, settings, newest_of(task.place))     FlinkDeployment, or FlinkSessionJob
    name_of("job_4fGh7Kx9Qz", 3)                        job-4fgh7kx9qz-4cfe5b31-3

Guarantees: the name follows from the job and the generation, so whoever knows these finds the resource; it is one that
the operator takes. The resource has no secrets: variables of pipelines are in the Secret `VARIABLES`, whose keys are
environment variables of Flink's processes.
Assumes: the image has Flink 2.3 and `RUNNER` (see deploy/flink/Dockerfile).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...configuration import FlinkSettings, KubernetesSettings
from ...task import Task
from ..flink.snapshots import StoredSnapshot, folder_of
from ..flink.submission import savepoints_of, submission

API_VERSION = "flink.apache.org/v1beta1"
JOB, GENERATION = "arroyo-udf/job", "arroyo-udf/generation"
"""Labels. What has none is never touched."""
VARIABLES = "arroyo-udf-variables"
RUNNER = "/opt/arroyo-udf/runner.py"
_JAR = "local:///opt/flink/opt/flink-python-2.3.0.jar"
_LONGEST = 20  # of the part of a name that is there for people: the operator takes 45 characters in all


class ResourceKind(NamedTuple):
    name: str
    plural: str


DEPLOYMENT = ResourceKind("FlinkDeployment", "flinkdeployments")
SESSION_JOB = ResourceKind("FlinkSessionJob", "flinksessionjobs")
KINDS = (DEPLOYMENT, SESSION_JOB)


def name_of(job_id: str, generation: int) -> str:
    """Names have lower-case letters only, and job ids have others, too: the digest tells two of them apart."""
    readable = re.sub("[^a-z0-9]+", "-", job_id.lower())[:_LONGEST].strip("-")
    return f"{readable}-{hashlib.sha256(job_id.encode()).hexdigest()[:8]}-{generation}"


def kind_of(settings: KubernetesSettings) -> ResourceKind:
    return DEPLOYMENT if settings.mode == "application" else SESSION_JOB


def manifest(task: Task, settings: KubernetesSettings, newest: StoredSnapshot | None) -> dict[str, Any]:
    """newest: what it goes on from."""
    kind = kind_of(settings)
    asked = submission(task, FlinkSettings(runner=RUNNER), newest)
    job = {
        "entryClass": asked["entryClass"],
        "args": asked["programArgsList"],
        "parallelism": task.parallelism,
        "state": "running",
        "upgradeMode": "stateless" if task.place is None else "savepoint",
        "allowNonRestoredState": False,
    }
    if newest is not None:
        job["initialSavepointPath"] = newest.url
    spec = _application(job, settings) if kind is DEPLOYMENT else {"deploymentName": settings.session, "job": job}
    return {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {
            "name": name_of(task.job_id, task.generation),
            "namespace": settings.namespace,
            "labels": {JOB: task.job_id, GENERATION: str(task.generation)},
        },
        "spec": spec | {"flinkConfiguration": _configuration(task, settings, asked["flinkConfiguration"])},
    }


def suspended(is_drain: bool) -> dict[str, Any]:
    """The change of a resource that stops it with a savepoint. is_drain: windows are closed before."""
    spec: dict[str, Any] = {"job": {"state": "suspended"}}
    if is_drain:  # the operator asks for it at each stop, whatever the option's name says
        spec["flinkConfiguration"] = {"kubernetes.operator.job.drain-on-savepoint-deletion": "true"}
    return {"spec": spec}


def _application(job: Mapping[str, Any], settings: KubernetesSettings) -> dict[str, Any]:
    """A Flink cluster of its own, with a TaskManager for each slot."""
    resource = {"cpu": settings.cpu, "memory": settings.memory}
    variables = {"secretRef": {"name": VARIABLES, "optional": True}}
    return {
        "image": settings.image,
        "flinkVersion": "v2_3",
        "serviceAccount": settings.service_account,
        "jobManager": {"resource": resource},
        "taskManager": {"resource": resource},
        "podTemplate": {"spec": {"containers": [{"name": "flink-main-container", "envFrom": [variables]}]}},
        "job": {
            "jarURI": _JAR,
            **job,
        },  # of a session job, the operator sends an empty one: Flink finds this one itself
    }


def _configuration(task: Task, settings: KubernetesSettings, asked: Mapping[str, str]) -> dict[str, str]:
    chosen = {
        **asked,
        # What is lost is started again by the controller, and from the newest snapshot.
        "kubernetes.operator.job.restart.failed": "false",
        # Suspended is then a job that has a savepoint, or has ended by itself.
        "kubernetes.operator.job.upgrade.last-state-fallback.enabled": "false",
    }
    if task.place is not None:
        chosen |= {
            "execution.checkpointing.savepoint-dir": savepoints_of(task),
            "execution.state-recovery.claim-mode": "CLAIM",
        }
    if settings.mode == "application":
        chosen["taskmanager.numberOfTaskSlots"] = "1"
        if task.place is not None:  # without it, a JobManager that is started anew would run the job from its begin
            chosen |= {
                "high-availability.type": "kubernetes",
                "high-availability.storageDir": f"{folder_of(task.place, task.generation)}/ha",
            }
    return chosen
