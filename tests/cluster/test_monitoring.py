"""What Prometheus and its Pushgateway see of a cluster: the real programs."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgi_client import bearer
from clusters import posting
from monitors import get, query, value
from programs import SQL, TWICE, Program
from waiting import until

import prometheus
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.monitoring.exposition import Exposition
from arroyo_udf_plugin.cluster.monitoring.metrics import METRICS, Buckets, Families
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.pipeline import Pipeline
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"


@pytest.fixture
def library(build_plugin: Any) -> Path:
    path = build_plugin(TWICE)
    assert isinstance(path, Path)
    return path


@pytest.fixture
def port(start: Callable[..., Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Starts a program with a port for metrics; returns the address of that."""

    def start_one(name: str, *arguments: object) -> str:
        monkeypatch.setenv("ARROYO_UDF__CONTROLLER__METRICS_PORT", "0")
        program = start(name, tmp_path, *arguments)
        (found,) = re.findall(r"metrics of the controller: (\S+)/metrics", "".join(program.said))
        return str(found)

    return start_one


def endless(folder: Path, library: Path) -> Pipeline:
    return Script("query.sql", SQL.format(out=folder / "out"), [str(library)]).pipeline


def configuration(port: str, data: Path) -> str:
    """The one of deploy/, for this port and the token of this data folder; and quick."""
    text = (DEPLOY / "prometheus.yml").read_text()
    assert text.count("127.0.0.1:5114") == 2
    assert text.count("/etc/prometheus/arroyo-udf.token") == 4
    text = text.replace("/etc/prometheus/arroyo-udf.token", str(data / "token"))
    text = text.replace('"alerts.yml"', f'"{DEPLOY / "alerts.yml"}"')
    return re.sub(r"\b(15|5)s\b", "1s", text.replace("127.0.0.1:5114", port.removeprefix("http://")))


def test_prometheus_finds_workers_as_they_come_and_go(
    port: Callable[..., str], database: Database, tmp_path: Path, library: Path
) -> None:
    address = port("controller")
    client = posting(database, tmp_path)
    posted = client.post(endless(tmp_path, library), library, checkpoint_interval_micros=200_000)
    job = client.await_state(posted, "Running").job.id
    rows = f'arroyo_worker_messages_recv{{job="arroyo-udf-workers", job_id="{job}", node_id="1"}}'
    with prometheus.server(configuration(address, tmp_path)) as asked:
        until(lambda: any(float(one["value"][1]) > 0 for one in query(asked, rows)), "rows of the first worker")
        (first,) = query(asked, rows)
        assert first["metric"]["instance"] == f"{job}-1"

        (living,) = worker_files.living(protocol.folder_of(tmp_path), job)
        living.kill()
        until(lambda: [one["metric"]["instance"] for one in query(asked, rows)] == [f"{job}-2"], "the second worker")
        recoveries = 'arroyo_udf_controller_recoveries_total{job="arroyo-udf-controller"}'
        until(lambda: [one["value"][1] for one in query(asked, recoveries)] == ["1"], "the recovery")
        assert [path.name for path in protocol.folder_of(tmp_path).glob("*.sock")] == [f"{job}-2.sock"]
        until(lambda: query(asked, "sum(up)")[0]["value"][1] == "2", "nothing else to scrape")
        panels = json.loads((DEPLOY.parent / "grafana" / "arroyo-udf.json").read_text())["panels"]
        asked_for = [target["expr"] for panel in panels for target in panel.get("targets", ())]
        assert len(asked_for) > 15
        for expression in asked_for:  # an expression that is none is an error here
            query(asked, expression.replace("$__rate_interval", "10s").replace("$job", ".*"))

    (target,) = json.loads(get(f"{address}/targets", **bearer(tmp_path)))
    worker = get(f"{address}{target['labels']['__metrics_path__']}", **bearer(tmp_path))
    assert value(worker, "process_resident_memory_bytes")
    assert prometheus.check_metrics(worker.encode()) == ""
    until(
        lambda: value(get(f"{address}/metrics", **bearer(tmp_path)), "arroyo_udf_controller_checkpoint_seconds_count"),
        "a checkpoint",
    )
    own = get(f"{address}/metrics", **bearer(tmp_path))
    assert prometheus.check_metrics(own.encode()) == ""
    assert value(own, "arroyo_controller_jobs", state="Running") == 1
    assert value(own, "arroyo_udf_controller_leads") == 1
    assert json.loads(get(f"{address}/health/ready", **bearer(tmp_path))) == {"status": "leads"}
    assert json.loads(get(f"{address}/health/live", **bearer(tmp_path))) == {"status": "live"}
    client.change(posted, stop="immediate")
    client.await_state(posted, "Stopped")
    until(lambda: json.loads(get(f"{address}/targets", **bearer(tmp_path))) == [], "no targets")


def test_an_alert_fires_for_a_job_that_fails(
    port: Callable[..., str], database: Database, tmp_path: Path, build_plugin: Callable[..., Path]
) -> None:
    library = build_plugin(
        "from arroyo_udf_plugin import udf\n\n@udf\ndef twice(value: int) -> int:\n    return 1 // 0\n"
    )
    address = port("controller")
    client = posting(database, tmp_path)
    with prometheus.server(configuration(address, tmp_path)) as asked:
        until(lambda: query(asked, 'up{job="arroyo-udf-controller"}')[0:1] != [], "the controller")
        assert query(asked, 'ALERTS{alertname="JobFailed"}') == []
        client.await_state(client.post(endless(tmp_path, library), library), "Failed")
        until(lambda: query(asked, 'ALERTS{alertname="JobFailed", alertstate="firing"}') != [], "the alert")
        told = json.loads(get(f"{asked}/api/v1/alerts"))["data"]["alerts"]
    (alert,) = [one for one in told if one["labels"]["alertname"] == "JobFailed"]
    assert alert["labels"]["state"] == "UserFailed"
    assert alert["annotations"]["summary"].startswith("1 jobs have failed (UserFailed)")


def test_each_alert_is_silent_while_all_is_well_and_fires_when_it_is_not() -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run([prometheus.program("promtool"), *arguments], cwd=DEPLOY, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    names = re.findall(r"- alert: (\w+)", (DEPLOY / "alerts.yml").read_text())
    tested = re.findall(r"alertname: (\w+)\n *exp_alerts", (DEPLOY / "alerts_test.yml").read_text())
    assert set(names) == set(tested)
    manual = (DEPLOY.parents[1] / "docs" / "operate.md").read_text()
    assert [name for name in names if f"\n| `{name}` |" not in manual] == []


def test_alerts_and_dashboard_name_metrics_that_there_are() -> None:
    texts = [DEPLOY / "alerts.yml", DEPLOY.parent / "grafana" / "arroyo-udf.json"]
    named = {name for path in texts for name in re.findall(r"\barroyo_\w+[a-z]\b(?=[^-\w])", path.read_text())}
    known = {*METRICS, *(f"{name}_bucket" for name in METRICS)}
    assert len(named) > 20
    assert named - known == set()


def test_a_controller_that_stands_by_has_no_targets_and_counts_no_jobs(
    port: Callable[..., str], database: Database, tmp_path: Path, library: Path
) -> None:
    first, second = port("controller"), port("controller")
    client = posting(database, tmp_path)
    posted = client.post(endless(tmp_path, library), library)
    job = client.await_state(posted, "Running").job.id
    assert [one["labels"]["instance"] for one in json.loads(get(f"{first}/targets", **bearer(tmp_path)))] == [
        f"{job}-1"
    ]
    assert json.loads(get(f"{second}/targets", **bearer(tmp_path))) == []
    text = get(f"{second}/metrics", **bearer(tmp_path))
    assert value(text, "arroyo_udf_controller_leads") == 0
    assert value(text, "arroyo_controller_jobs", state="Running") is None
    assert json.loads(get(f"{second}/health/ready", **bearer(tmp_path))) == {"status": "stands by"}


def test_one_process_shows_everything_at_both_ports(
    port: Callable[..., str], database: Database, tmp_path: Path, library: Path
) -> None:
    address = port("cluster", "--port", 0, "--scheduler", "embedded")
    client = posting(database, tmp_path)
    posted = client.post(endless(tmp_path, library), library)
    job = client.await_state(posted, "Running").job.id
    rows = "arroyo_worker_messages_recv"
    until(lambda: (value(get(f"{address}/metrics", **bearer(tmp_path)), rows, job_id=job, node_id=1) or 0) > 0, "rows")
    assert json.loads(get(f"{address}/targets", **bearer(tmp_path))) == []


def test_promtool_finds_nothing_wrong_with_any_metric() -> None:
    def tell(families: Families) -> None:
        for name, (kind, _) in METRICS.items():
            if kind == "histogram":
                families.add_buckets(name, Buckets((0.5, 1.0), (1, 2, 3), 4.5), job_id="job_1")
            else:
                families.add(name, 1.5, job_id="job_1", node_id=1)

    text, _ = Exposition([tell]).text()
    assert text.count(b"# TYPE arroyo_") == len(METRICS)
    assert prometheus.check_metrics(text) == ""


def groups(gateway: str) -> set[tuple[str, str]]:
    found = json.loads(get(f"{gateway}/api/v1/metrics"))["data"]
    return {(group["labels"]["job"], group["labels"]["instance"]) for group in found}


def test_a_pushgateway_has_the_groups_of_what_runs(
    start: Callable[..., Program], database: Database, tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with prometheus.pushgateway() as gateway:
        monkeypatch.setenv("ARROYO_UDF__METRICS__PUSHGATEWAY", gateway)
        monkeypatch.setenv("ARROYO_UDF__METRICS__PUSH_INTERVAL", "0.2")
        program = start("controller", tmp_path)
        client = posting(database, tmp_path)
        posted = client.post(endless(tmp_path, library), library)
        job = client.await_state(posted, "Running").job.id
        own = {"job": "arroyo_udf_worker", "instance": f"{job}-1", "node_id": 1}
        until(lambda: (value(get(f"{gateway}/metrics"), "arroyo_worker_messages_recv", **own) or 0) > 0, "rows")
        until(lambda: "arroyo_udf_controller" in {name for name, _ in groups(gateway)}, "the controller's group")

        (living,) = worker_files.living(protocol.folder_of(tmp_path), job)
        living.kill()
        until(lambda: ("arroyo_udf_worker", f"{job}-2") in groups(gateway), "the group of the second worker")
        until(lambda: ("arroyo_udf_worker", f"{job}-1") not in groups(gateway), "no group of the first worker")

        assert program.end(signal.SIGTERM) == 0
        assert groups(gateway) == set()
