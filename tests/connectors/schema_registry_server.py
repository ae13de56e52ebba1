"""A small schema registry for tests, with the few questions of Confluent's protocol that clients ask.

    with registry(user="me:secret") as server:
        server.address                          http://127.0.0.1:PORT
        server.add("flights-value", text)       somebody registers a schema; returns its id
        server.stop(); server.start()           it is away for a while; it keeps its schemas and its address
        server.kill(); server.start()           it is killed while it answers

A schema of Avro is compatible if a reader with it can read what the subject's newest one has written, as far as the
fields of records go; one of another kind if it has no other types for the same properties or numbers. `asked` counts
the questions for schemas by their ids, `broken` those that were broken off.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import re
import socket
import struct
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2

_Answer = tuple[int, dict[str, Any]]
_PATIENCE = 60.0  # seconds for a question
_AT_ONCE = struct.pack("ii", 1, 0)  # the other side sees a reset, as after SIGKILL


class RegistryServer:
    """user: "NAME:PASSWORD" that clients must know; None: anybody may ask."""

    def __init__(self, user: str | None) -> None:
        self.user, self.asked, self.broken = user, 0, 0
        self.subjects: dict[str, list[int]] = {}
        self._schemas: list[dict[str, Any]] = []
        self._reserved = socket.socket()  # never listens: it keeps the port
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self._port = self._reserved.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self._server: http.server.ThreadingHTTPServer | None = None
        self._is_dying, self._breaks = threading.Event(), threading.Event()
        self.start()

    def start(self) -> None:
        registry = self
        self._is_dying.clear()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._handle(self, None)

            def do_POST(self) -> None:
                registry._handle(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *arguments: Any) -> None:
                """Not to standard error."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def kill(self) -> None:
        """Breaks the next question off, and answers none after it."""
        self._breaks.clear()
        self._is_dying.set()
        assert self._breaks.wait(_PATIENCE), "nobody asks"
        self.stop()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def close(self) -> None:
        self.stop()
        self._reserved.close()

    def add(self, subject: str, text: str, kind: str = "AVRO", references: tuple[dict[str, Any], ...] = ()) -> int:
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        known = [id for id, schema in enumerate(self._schemas, 1) if schema == body]
        if not known:
            self._schemas.append(body)
            known = [len(self._schemas)]
        versions = self.subjects.setdefault(subject, [])
        if known[0] not in versions:
            versions.append(known[0])
        return known[0]

    def schema(self, id: int) -> dict[str, Any]:
        return self._schemas[id - 1]

    def _handle(self, request: http.server.BaseHTTPRequestHandler, body: Any) -> None:
        if self._is_dying.is_set():
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            request.connection.close()
            self.broken += 1
            self._breaks.set()
            return
        status, answer = self._answer(request.path.partition("?")[0], body, request.headers.get("Authorization"))
        data = json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _answer(self, path: str, body: Any, authorization: str | None) -> _Answer:
        if self.user is not None and authorization != "Basic " + base64.b64encode(self.user.encode()).decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            self.asked += 1
            if not 1 <= int(match[1]) <= len(self._schemas):
                return 404, {"error_code": 40403, "message": "Schema not found"}
            return 200, self.schema(int(match[1]))
        if match := re.fullmatch(r"(/compatibility)?/subjects/([^/]+)/versions(?:/(\w+))?", path):
            subject = urllib.parse.unquote(match[2])
            versions = self.subjects.get(subject, [])
            if body is None or match[1]:
                if not versions:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                at = len(versions) if match[3] == "latest" else int(match[3])
                there = self.schema(versions[at - 1])
                if match[1]:
                    return 200, {"is_compatible": _fits(body["schema"], there["schema"])}
                return 200, {"subject": subject, "version": at, "id": versions[at - 1], **there}
            kind = body.get("schemaType", "AVRO")
            if versions and not _fits(body["schema"], self.schema(versions[-1])["schema"]):
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
            return 200, {"id": self.add(subject, body["schema"], kind, tuple(body.get("references", ())))}
        if match := re.fullmatch(r"/subjects/([^/]+)", path):
            subject = urllib.parse.unquote(match[1])
            for version, id in enumerate(self.subjects.get(subject, []), 1):
                if self.schema(id)["schema"] == body["schema"]:
                    return 200, {"subject": subject, "version": version, "id": id, **self.schema(id)}
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


def _fits(new: str, old: str) -> bool:
    if not new.startswith("{"):
        one, other = _numbers(new), _numbers(old)
        return all(one[number] == other[number] for number in one.keys() & other.keys())
    reader, writer = json.loads(new), json.loads(old)
    if "properties" in writer:
        both = reader["properties"].keys() & writer["properties"].keys()
        return all(reader["properties"][name] == writer["properties"][name] for name in both)
    ours = {field["name"]: field for field in writer["fields"]}
    return _full_name(reader) == _full_name(writer) and all(
        _branches(ours[field["name"]]) <= _branches(field) if field["name"] in ours else "default" in field
        for field in reader["fields"]
    )


def _numbers(text: str) -> dict[tuple[str, int], tuple[int, str]]:
    """The types of a file of Protobuf, by message and number."""
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    return {
        (message.name, field.number): (field.type, field.type_name)
        for message in file.message_type
        for field in message.field
    }


def _full_name(schema: dict[str, Any]) -> str:
    return f"{schema['namespace']}.{schema['name']}" if "namespace" in schema else str(schema["name"])


def _branches(field: dict[str, Any]) -> set[str]:
    """The types that its values may have."""
    own = field["type"]
    return {json.dumps(branch, sort_keys=True) for branch in (own if isinstance(own, list) else [own])}


@contextlib.contextmanager
def registry(user: str | None = None) -> Iterator[RegistryServer]:
    with contextlib.closing(RegistryServer(user)) as server:
        yield server
