"""deploy/kubernetes: valid, with the rights that are needed and no others, and settings that are ours."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.schedulers.kubernetes.manifest import KINDS, VARIABLES

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSION = "1.37"


def resources(*names: str) -> list[dict[str, Any]]:
    return [one for name in names for one in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text())]


def one(kind: str, name: str) -> dict[str, Any]:
    everything = resources("namespace", "rbac", "cluster")
    (found,) = (own for own in everything if (own["kind"], own["metadata"]["name"]) == (kind, name))
    return found


def test_the_manifests_are_valid() -> None:
    """Strictly: a field that is not there is an error. The session is no resource of Kubernetes itself."""
    everything = resources("namespace", "rbac", "cluster")
    for resource in everything:
        kubernetes_validate.validate(resource, VERSION, strict=True)
    namespaced = [resource["metadata"].get("namespace") for resource in everything if resource["kind"] != "Namespace"]
    assert set(namespaced) == {one("Namespace", "arroyo-udf")["metadata"]["name"]}


def test_the_controller_may_do_what_it_does_and_nothing_else() -> None:
    """Those are the calls that the API server of the tests knows."""
    assert one("Role", "arroyo-udf")["rules"] == [
        {
            "apiGroups": ["flink.apache.org"],
            "resources": [kind.plural for kind in KINDS],
            "verbs": ["list", "create", "patch", "delete"],
        }
    ]
    (subject,) = one("RoleBinding", "arroyo-udf")["subjects"]
    assert one("Deployment", "arroyo-udf")["spec"]["template"]["spec"]["serviceAccountName"] == subject["name"]


def test_the_settings_of_the_deployment_are_ours() -> None:
    (container,) = one("Deployment", "arroyo-udf")["spec"]["template"]["spec"]["containers"]
    given = {variable["name"]: variable.get("value", "the namespace") for variable in container["env"]}
    settings = configured(None, {}, given).settings
    assert settings.controller.scheduler == "kubernetes"
    assert settings.kubernetes.image
    assert settings.kubernetes.service_account == one("ServiceAccount", "flink")["metadata"]["name"]
    assert settings.pipeline.worker_startup_time == 600.0
    assert container["envFrom"] == [{"secretRef": {"name": VARIABLES, "optional": True}}]
    (session,) = resources("session")
    (own,) = session["spec"]["podTemplate"]["spec"]["containers"]
    assert own["envFrom"] == container["envFrom"]
    assert session["spec"]["image"] == settings.kubernetes.image
