"""Resources of jobs against the schemas of the Flink Kubernetes Operator, which Maven has.

The newest operator that Maven has here is 1.10. Its list of Flink versions ends at 1.20, so it refuses 2.3: the test
shows that, and adds 2.3 to that list. Everything else is validated as it is there, and a field that the schema does not
have is an error.
"""

from __future__ import annotations

import copy
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from arroyo_udf_plugin.cluster.configuration import KubernetesSettings
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.schedulers.flink.snapshots import StoredSnapshot
from arroyo_udf_plugin.cluster.schedulers.kubernetes.manifest import KINDS, manifest, suspended
from arroyo_udf_plugin.cluster.task import Task

ARTIFACT = "org.apache.flink:flink-kubernetes-operator-api:1.10.0"
DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
TASK = Task("job_1", 3, JobProgram({}, {}), 2, 10.0, "s3://state/job_1/0", slices=8)
NEWEST = StoredSnapshot(2, 7, "s3://state/job_1/0/flink/g000002/savepoints/savepoint-1")
SETTINGS = {
    "application": KubernetesSettings(image="flink:own"),
    "session": KubernetesSettings(mode="session", session="shared"),
}


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By kind."""
    folder = tmp_path_factory.mktemp("operator")
    fetch = ["mvn", "-q", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    subprocess.run(fetch, check=True, stdin=subprocess.DEVNULL)
    (jar,) = folder.glob("*.jar")
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for kind in KINDS:
            file = f"META-INF/fabric8/{kind.plural}.flink.apache.org-v1.yml"
            (version,) = yaml.safe_load(archive.read(file))["spec"]["versions"]
            assert version["name"] == "v1beta1"
            found[kind.name] = strict(version["schema"]["openAPIV3Schema"])
    return found


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """As the API server validates: it has checked `metadata` and the like, and unknown fields are errors."""
    for name in ("apiVersion", "kind", "metadata"):
        schema["properties"].setdefault(name, {})
    pending = [schema]
    while pending:
        one = pending.pop()
        pending += [value for value in one.values() if isinstance(value, dict)]
        if isinstance(one.get("properties"), dict) and one.get("type") == "object":
            one.setdefault("additionalProperties", False)
    return schema


def check(schemas: dict[str, dict[str, Any]], resource: dict[str, Any]) -> None:
    jsonschema.validate(resource, schemas[resource["kind"]])


@pytest.fixture
def widened(schemas: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """With Flink 2.3."""
    copied = copy.deepcopy(schemas)
    copied["FlinkDeployment"]["properties"]["spec"]["properties"]["flinkVersion"]["enum"].append("v2_3")
    return copied


def test_the_operator_that_maven_has_does_not_know_flink_2(schemas: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(jsonschema.ValidationError, match=r"'v2_3' is not one of .*'v1_20'"):
        check(schemas, manifest(TASK, SETTINGS["application"], None))


@pytest.mark.parametrize("mode", SETTINGS)
def test_a_job_is_a_valid_resource(widened: dict[str, dict[str, Any]], mode: str) -> None:
    resource = manifest(TASK, SETTINGS[mode], NEWEST)
    check(widened, resource)
    for is_drain in (False, True):
        check(widened, {"kind": resource["kind"], **suspended(is_drain)})
    resource["spec"]["job"]["savepointPath"] = "s3://state"
    with pytest.raises(jsonschema.ValidationError, match="'savepointPath' was unexpected"):
        check(widened, resource)


def test_the_session_of_the_example_is_valid(widened: dict[str, dict[str, Any]]) -> None:
    (session,) = yaml.safe_load_all((DEPLOY / "session.yaml").read_text())
    check(widened, session)
