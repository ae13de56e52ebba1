"""The commands of docs/cluster_api.md print what stands below them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, settings_in

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.serving import Server, listening

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the commands use curl"),
]

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "cluster_api.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The user's default."""
    return tmp_path / "share" / "arroyo-udf"


@pytest.fixture
def address(data: Path) -> Iterator[str]:
    settings = settings_in(data)
    database = Database.open(settings.database_url)
    database.migrate()
    cluster = Cluster(database, settings)
    own = listening("127.0.0.1", 0)
    with Server(create_app(ApiParts.configured(database, settings, cluster.controller.wake)), own):
        yield f"127.0.0.1:{own.getsockname()[1]}"
    cluster.close()
    database.close()


def test_its_commands_print_what_it_says(address: str, data: Path, tmp_path: Path) -> None:
    script, expected = ["set -e"], []
    for kind, text in BLOCK.findall(DOCUMENT.read_text()):
        if kind == "sh":
            script.append(text.replace("127.0.0.1:5115", address))
        else:
            expected.append(text)
            script.append("printf '\\n---\\n'")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={
            **os.environ,
            "XDG_DATA_HOME": str(data.parent),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told = [part.strip() for part in done.stdout.split("\n---\n")]
    assert told[:-1] == [text.strip() for text in expected]
    assert told[-1] == ""
