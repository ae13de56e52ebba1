"""What passes the layer before the API, and what does not."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_client import Client
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.program import serving
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.security import COOKIE, Guard, Message, Receive, Scope, Security, Send, check_exposed
from arroyo_udf_plugin.cluster.tokens import CONFIGURED, Caller, Tokens
from arroyo_udf_plugin.errors import InvalidArgument

TOKEN = "a token that nobody guesses"
HOST = "localhost:5115"
ADMIN = Caller(CONFIGURED, "admin")


@pytest.fixture
def guarded(tmp_path: Path) -> Security:
    """Asks for TOKEN."""
    return Security(tokens=Tokens(tmp_path, TOKEN), origins=["http://localhost:3000"])


def cookie_of(security: Security, caller: Caller = ADMIN) -> str:
    """As a browser sends it."""
    return (security.session_cookie(caller, HOST) or "").partition(";")[0]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers the body."""
    message = await receive()
    body = message.get("body", b"") or b"passed"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Sender:
    """Sends requests through the guard, each in an event loop of its own."""

    def __init__(self, security: Security) -> None:
        self._app: Any = Guard(echo, security)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:5115") as sender:
                return await sender.request(method, path, **more)

        return asyncio.run(run())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)


def error_of(answer: httpx.Response) -> str:
    told = answer.json()
    assert list(told) == ["error"]
    return str(told["error"])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:5115", "[::1]:5115", "LOCALHOST:80"])
def test_the_api_answers_under_its_own_names(host: str) -> None:
    assert Sender(Security()).get("/", headers={"host": host}).text == "passed"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:5115"])
def test_a_foreign_name_that_points_to_this_machine_is_refused(host: str) -> None:
    answer = Sender(Security()).get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "api.hosts" in error_of(answer)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:3000", "null"])
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    answer = Sender(Security()).post("/", headers={"origin": origin}, json={})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_page_of_the_api_itself_and_of_the_allow_list_passes(guarded: Security) -> None:
    security = Security(origins=["http://localhost:3000"])
    assert Sender(security).post("/", headers={"origin": "http://localhost:5115"}, json={}).status_code == 200
    answer = Sender(security).post("/", headers={"origin": "http://localhost:3000"}, json={})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "http://localhost:3000")
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "PATCH"}
    assert Sender(guarded).request("OPTIONS", "/", headers=asked).status_code == 204


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_of_a_foreign_page_can_send_is_refused(method: str, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = Sender(Security()).request(method, "/", content=b"{}", headers=headers)
    assert answer.status_code == 415
    assert "application/json" in error_of(answer)


def test_json_with_a_charset_passes() -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    assert Sender(Security()).post("/", content=b"{}", headers=headers).text == "{}"


def test_a_body_that_is_too_long_is_refused_whether_it_says_so_or_not() -> None:
    security = Security(body_limit=100)
    headers = {"content-type": "application/json"}
    assert Sender(security).post("/", content=b"x" * 100, headers=headers).text == "x" * 100
    assert Sender(security).post("/", content=b"x" * 101, headers=headers).status_code == 413

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10

    answer = Sender(security).post("/", content=parts(), headers=headers)
    assert answer.status_code == 413
    assert "100 bytes" in error_of(answer)


def test_a_token_is_needed_everywhere_but_for_probes(guarded: Security) -> None:
    sender = Sender(guarded)
    answer = sender.get("/api/v1/ping")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert TOKEN not in error_of(answer)
    assert "arroyo-udf login" in error_of(answer)
    assert sender.get("/health/live").status_code == 200
    for wrong in ("Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer ä".encode()):
        assert sender.get("/api", headers={"authorization": wrong}).status_code == 401
    assert sender.get("/api", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_probes_are_answered_under_any_name(guarded: Security, path: str) -> None:
    """Kubernetes asks under the address of the pod."""
    assert Sender(guarded).get(path, headers={"host": "10.0.0.7:5115"}).status_code == 200
    assert Sender(guarded).get("/health", headers={"host": "10.0.0.7:5115"}).status_code == 403


def test_a_cookie_reads_and_changes_only_from_the_own_page(guarded: Security) -> None:
    told = guarded.session_cookie(ADMIN, HOST) or ""
    assert TOKEN not in told
    assert {"HttpOnly", "SameSite=Strict"} <= set(told.split("; "))
    assert "Secure" in (Security(tokens=guarded.tokens, tls=True).session_cookie(ADMIN, HOST) or "")
    value, sender = cookie_of(guarded), Sender(guarded)
    name = value.partition("=")[0]
    assert name == f"{COOKIE}_5115", "two clusters on one machine do not log each other's browsers out"
    assert sender.get("/api", headers={"cookie": value}).status_code == 200
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        own = {"cookie": value, "origin": "http://localhost:5115"}
        assert sender.request(method, "/api", headers=own, json={}).status_code == 200
        assert sender.request(method, "/api", headers={"cookie": value}, json={}).status_code == 401
        listed = {"cookie": value, "origin": "http://localhost:3000"}
        assert sender.request(method, "/api", headers=listed, json={}).status_code == 401, (
            "pages elsewhere need the token"
        )
    assert sender.get("/api", headers={"cookie": value, "authorization": "Bearer x"}).status_code == 401
    other = cookie_of(Security(tokens=Tokens(Path("nowhere"), "another")))
    for wrong in (f"{name}=", f"{name}={TOKEN}", "x", f"{value}0", other, value.replace("configured", "owner")):
        assert sender.get("/api", headers={"cookie": wrong}).status_code == 401


def test_an_address_with_nul_is_refused() -> None:
    assert Sender(Security()).get("/api/v1/pipelines?starting_after=%00").status_code == 400
    assert Sender(Security()).get("/api/v1/pipelines/%00").status_code == 400


def test_origins_of_the_settings_may_use_the_api(tmp_path: Path, database: Database) -> None:
    api = {"origins": ["http://localhost:3000", "https://Board.example"]}
    settings = configured(None, {"data": str(tmp_path / "data"), "api": api}, {}).settings
    with Client(create_app(ApiParts.configured(database, settings, lambda: None)), tmp_path / "data") as client:
        for origin in ("http://localhost:3000", "https://board.example"):
            answer = client.get("/api/v1/jobs", headers={"origin": origin})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
        answer = client.get("/api/v1/jobs", headers={"origin": "http://localhost:3001"})
        assert (answer.status_code, "api.origins" in error_of(answer)) == (403, True)
    with pytest.raises(InvalidArgument, match=r"api\.origins"):
        configured(None, {"api": {"origins": ["localhost:3000"]}}, {})


def test_only_loopback_is_open_without_token_and_tls(guarded: Security) -> None:
    for address in ("127.0.0.1", "::1", "localhost", "127.3.2.1"):
        check_exposed(address, Security())
    for address in ("0.0.0.0", "::", "192.168.1.5", "cluster.example"):
        with pytest.raises(ValueError, match=r"api\.no_token"):
            check_exposed(address, Security())
        with pytest.raises(ValueError, match="--insecure"):
            check_exposed(address, guarded)
        check_exposed(address, guarded, insecure=True)
        check_exposed(address, Security(tokens=guarded.tokens, tls=True))


def test_the_token_is_not_in_a_text_of_the_settings(guarded: Security) -> None:
    assert TOKEN not in repr(guarded)


def test_what_comes_after_the_body_comes_through() -> None:
    """An app that waits for the client's end, as event streams do, hears of it."""
    heard: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([await receive(), await receive()])

    async def run() -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": json.dumps({}).encode(), "more_body": False},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return messages.pop(0)

        async def send(message: Message) -> None: ...

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
        await Guard(app, Security())(scope, receive, send)

    asyncio.run(run())
    assert [one["type"] for one in heard] == ["http.request", "http.disconnect"]


def test_a_client_that_shows_the_token_gets_a_cookie(tmp_path: Path, database: Database, guarded: Security) -> None:
    """As a page does before it opens an event stream."""
    parts = ApiParts(database, Builder(tmp_path / "functions"), Records(tmp_path), security=guarded)
    with Client(create_app(parts)) as api:
        assert api.get("/api/v1/jobs").status_code == 401
        assert api.post("/api/v1/session", json={}).status_code == 401
        made = api.post("/api/v1/session", json={}, headers={"authorization": f"Bearer {TOKEN}"})
        assert (made.status_code, made.content) == (200, b"")
        cookie = made.headers["set-cookie"].partition(";")[0]
        assert api.get("/api/v1/jobs", headers={"cookie": cookie}).json() == {"data": []}
        assert api.get("/health/ready").status_code == 200
        assert api.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Files of a certificate for localhost, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def test_with_a_certificate_the_api_speaks_tls_only(tmp_path: Path, database: Database) -> None:
    cert, key = self_signed(tmp_path)
    api = {"http_port": 0, "tls_cert": str(cert), "tls_key": str(key), "token": TOKEN}
    settings = configured(None, {"data": str(tmp_path / "data"), "api": api}, {}).settings
    with serving(database, settings, lambda: None) as (address, login):
        assert login is not None
        assert login.startswith(f"{address}/api/v1/login?code=")
        assert address.startswith("https://127.0.0.1:")
        port = address.rpartition(":")[2]
        context = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=f"https://localhost:{port}", verify=context) as client:
            assert client.get("/api/v1/ping").status_code == 401
            client.headers["authorization"] = f"Bearer {TOKEN}"
            assert client.get("/api/v1/ping").json() == "Pong"
            assert "Secure" in client.post("/api/v1/session", json={}).headers["set-cookie"].split("; ")
        with httpx.Client(base_url=f"http://localhost:{port}") as plain, pytest.raises(httpx.HTTPError):
            plain.get("/api/v1/ping")
