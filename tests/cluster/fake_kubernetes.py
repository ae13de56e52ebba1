"""A Kubernetes API server for tests, with the resources of the Flink operator, and what that operator does with them.

    with FakeKubernetes() as kubernetes:
        Client(config=kubernetes.config)
        kubernetes.operate()                     the operator takes one step with each resource
        kubernetes.tell(name, status={...})      or says what the test wants

It knows no other calls than those that our Role allows: list, create, patch and delete.
"""

import json
import threading
import urllib.parse
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fake_flink import write_snapshot
from lightkube import KubeConfig
from lightkube.config.models import Cluster, User

_ROOT = "/apis/flink.apache.org/v1beta1/namespaces/streams/"
_KINDS = {"flinkdeployments": "FlinkDeployment", "flinksessionjobs": "FlinkSessionJob"}
Resource = dict[str, Any]


class FakeKubernetes:
    """resources: by kind and name. faults: of the next calls that are no looks: a code; "lost": it is done, and not
    answered; "late": it is not answered, and done by `land`. looks: what all lists are answered with instead; looked:
    how many there were.
    is_operated: the operator takes a step before each list."""

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], Resource] = {}
        self.faults: list[int | str] = []
        self.looks: tuple[int, bytes] | None = None
        self.is_operated = False
        self.changes: list[tuple[str, str]] = []
        self.looked = self.number = 0
        self._late: list[tuple[str, str, Resource]] = []
        self._lock = threading.RLock()

    def __enter__(self) -> "FakeKubernetes":
        handler = type("Handler", (_Handler,), {"kubernetes": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.config = KubeConfig.from_one(cluster=Cluster(server=self.url), user=User(token="a token"))
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, folder: Path) -> Path:
        """A file, as `kubectl` has it."""
        named = {"context": {"cluster": "test", "user": "test"}}
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", **named}],
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": {"token": "a token"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def names(self) -> list[str]:
        with self._lock:
            return [name for _, name in self.resources]

    def one(self) -> Resource:
        """The only one."""
        with self._lock:
            (resource,) = deepcopy(list(self.resources.values()))
            return resource

    def tell(self, name: str, **changes: Any) -> None:
        with self._lock:
            resource = next(resource for (_, own), resource in self.resources.items() if own == name)
            _merge(resource, changes)

    def land(self) -> None:
        """Creates that were not answered."""
        for plural, name, resource in self._late:
            self.resources[plural, name] = resource

    def operate(self) -> None:
        with self._lock:
            for key, resource in list(self.resources.items()):
                if resource["metadata"].get("deletionTimestamp"):
                    del self.resources[key]
                elif resource["spec"]["job"]["state"] == "running":
                    _merge(resource, {"status": {"lifecycleState": "STABLE", "jobStatus": {"state": "RUNNING"}}})
                else:
                    self._suspend(resource)

    def _suspend(self, resource: Resource) -> None:
        folder = resource["spec"]["flinkConfiguration"]["execution.checkpointing.savepoint-dir"].removeprefix("file://")
        if Path(folder).exists():
            return
        self.number += 1
        place = Path(folder) / f"savepoint-{self.number}"
        write_snapshot(place, self.number)
        job = {"state": "FINISHED", "upgradeSavepointPath": f"file:{place}"}
        _merge(resource, {"status": {"lifecycleState": "SUSPENDED", "jobStatus": job}})

    # ---- Calls ----

    def call(self, method: str, path: str, query: str, kind: str, body: Resource) -> tuple[int, object] | None:
        """None: it is not answered."""
        with self._lock:
            plural, _, name = path.removeprefix(_ROOT).partition("/")
            if not path.startswith(_ROOT) or plural not in _KINDS:
                return 404, _status(404, "the server could not find the requested resource")
            if method == "GET" and not name and urllib.parse.parse_qs(query) == {"labelSelector": ["arroyo-udf/job"]}:
                return self._list(plural)
            fault = self.faults.pop(0) if self.faults else None
            if isinstance(fault, int):
                return fault, _status(fault, "so the test wants it")
            if fault == "late":
                self._late.append((plural, body["metadata"]["name"], body))
                return None
            answer = self._change(method, plural, name, kind, body)
            return None if fault == "lost" else answer

    def _list(self, plural: str) -> tuple[int, object]:
        self.looked += 1
        if self.looks is not None:
            return self.looks
        if self.is_operated:
            self.operate()
        labelled = [one for (own, _), one in self.resources.items() if own == plural and one["metadata"].get("labels")]
        return 200, {"kind": f"{_KINDS[plural]}List", "metadata": {"resourceVersion": "7"}, "items": labelled}

    def _change(self, method: str, plural: str, name: str, kind: str, body: Resource) -> tuple[int, object]:
        if method == "POST" and not name:
            key = plural, body["metadata"]["name"]
            if key in self.resources:
                return 409, _status(409, "already exists")
            assert body["kind"] == _KINDS[plural]
            self.changes.append(("create", key[1]))
            self.resources[key] = deepcopy(body)
            return 201, body
        if (plural, name) not in self.resources:
            return 404, _status(404, "not found")
        resource = self.resources[plural, name]
        if method == "PATCH" and kind == "application/merge-patch+json":
            self.changes.append(("patch", name))
            _merge(resource, body)
        elif method == "DELETE":
            self.changes.append(("delete", name))
            _merge(resource, {"metadata": {"deletionTimestamp": "2026-11-28T16:00:00Z"}})  # until the operator is done
        else:
            return 403, _status(403, "forbidden")
        return 200, resource


def _merge(into: Resource, changes: Resource) -> None:
    for name, value in changes.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def _status(code: int, message: str) -> Resource:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}


class _Handler(BaseHTTPRequestHandler):
    kubernetes: FakeKubernetes
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Not on standard error."""

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        answer = self.kubernetes.call(self.command, path, query, self.headers.get("Content-Type", ""), body)
        if answer is None:
            self.close_connection = True
            return
        code, content = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer
