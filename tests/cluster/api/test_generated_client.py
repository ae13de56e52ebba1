"""A client that is generated from the OpenAPI document, by openapi-python-client, talks to the API."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client as AsgiClient
from test_openapi import Quick

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.security import Security
from arroyo_udf_plugin.cluster.serving import Server, listening
from arroyo_udf_plugin.cluster.tokens import Tokens

pytestmark = [pytest.mark.cluster, pytest.mark.once]


@pytest.fixture
def address(database: Database, records: Records, tmp_path: Path) -> Iterator[str]:
    tokens = Tokens(tmp_path)
    tokens.make()
    parts = ApiParts(database, Quick(tmp_path / "functions"), records, security=Security(tokens=tokens))
    own = listening("127.0.0.1", 0)
    with Server(create_app(parts), own):
        yield f"http://127.0.0.1:{own.getsockname()[1]}/api"


@pytest.fixture
def generated(database: Database, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package. A document with which the generator has any trouble is wrong."""
    with AsgiClient(create_app(ApiParts(database, Quick(tmp_path / "functions"), records))) as api:
        document = api.get("/api/v1/api-docs/openapi.json").json()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "config.yml").write_text("package_name_override: generated_arroyo_client\npost_hooks: []\n")
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--config", "config.yml",
         "--meta", "none", "--output-path", "generated_arroyo_client", "--fail-on-warning"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module


def test_a_generated_client_makes_a_pipeline_and_is_told_what_is_wrong(
    generated: Any, address: str, tmp_path: Path
) -> None:
    models = generated("generated_arroyo_client.models")
    client_module = generated("generated_arroyo_client.client")
    pipelines = "generated_arroyo_client.api.pipelines"
    client = client_module.AuthenticatedClient(base_url=address, token=Tokens(tmp_path).own())
    with client as api:
        posted = models.PipelinePost(name="generated", query="SELECT 1")
        made = generated(f"{pipelines}.create_v1_pipelines_post").sync(client=api, body=posted)
        assert isinstance(made, models.Pipeline)
        assert (made.name, made.action_text) == ("generated", "Stop")
        listed = generated(f"{pipelines}.listed_v1_pipelines_get").sync(client=api)
        assert [one.id for one in listed.data] == [made.id]
        patched = generated(f"{pipelines}.patch_v1_pipelines_id_patch").sync(
            made.id, client=api, body=models.PipelinePatch(parallelism=0)
        )
        assert isinstance(patched, models.Failure)
        assert "parallelism" in patched.error
    with client_module.AuthenticatedClient(base_url=address, token="wrong") as api:
        refused = generated(f"{pipelines}.listed_v1_pipelines_get").sync(client=api)
        assert isinstance(refused, models.Failure)
        assert "token" in refused.error
