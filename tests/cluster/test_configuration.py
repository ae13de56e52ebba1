"""What can be set: sources, their order, refusals, secrets."""

import re
from pathlib import Path

import pytest

from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.errors import InvalidArgument


def test_a_later_source_wins_and_each_value_says_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(
        '[api]\nhttp-port = 1\ntoken = "s3cret"\n[pipeline]\nallowed-restarts = 2\nstop-time = "500ms"\n'
        '[controller]\nscheduler = "process"\n'
    )
    environment = {
        "ARROYO_UDF__PIPELINE__ALLOWED_RESTARTS": "3",
        "ARROYO_UDF__DATA": str(tmp_path),
        "ARROYO_UDF__FILES__ROOTS": '["/a", "/b"]',
        "ARROYO_UDF_SOMETHING": "else",
    }
    found = configured(file, {"api": {"http_port": 4}}, environment)
    settings = found.settings
    assert (settings.api.http_port, settings.pipeline.allowed_restarts, settings.pipeline.stop_time) == (4, 3, 0.5)
    assert settings.database_url == f"sqlite:///{tmp_path}/cluster.sqlite"
    told = {key: (value, place) for key, value, place in found.lines()}
    assert told["api.http_port"] == ("4", "flags")
    assert told["pipeline.allowed_restarts"] == ("3", "environment")
    assert told["controller.scheduler"] == ("process", str(file))
    assert told["files.roots"] == ("/a, /b", "environment")
    assert told["pipeline.healthy_duration"] == ("120.0", "default")
    assert told["api.token"] == ("**********", str(file))
    assert "s3cret" not in str(told)


def test_the_variable_scheduler_chooses_the_scheduler() -> None:
    assert configured(None, {}, {"SCHEDULER": "process"}).settings.controller.scheduler == "process"
    both = {"SCHEDULER": "process", "ARROYO_UDF__CONTROLLER__SCHEDULER": "embedded"}
    assert configured(None, {}, both).settings.controller.scheduler == "embedded"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[api]\nport = 1", "api.port: Extra inputs are not permitted"),
        ("[controller]\nscheduler = 'nomad'", "scheduler: Input should be 'embedded', 'process', 'flink' or"),
        ("[api]\ntoken = ''", "api.token: Value should have at least 1 item"),  # anybody could guess it
        (
            "[pipeline]\ncheckpoint-interval = 0",
            "pipeline.checkpoint_interval: Input should be greater than or equal to 1",
        ),
        ("[pipeline]\ncheckpoint-interval = 1e9", "Input should be less than or equal to 86400"),
        ("checkpoint-url = 's3://bucket/state?region=eu-west-1'", "leave out '?' and what follows it"),
        ("artifact-url = 's3://bucket/functions#1'", "leave out '#' and what follows it"),
        ("[api", "cluster.toml: "),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=re.escape(told)):
        configured(file, {}, {})
    with pytest.raises(InvalidArgument, match="there is no such file"):
        configured(tmp_path / "other.toml", {}, {})
