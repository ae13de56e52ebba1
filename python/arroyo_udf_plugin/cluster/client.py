"""A client of the REST API, for the command line.

    client = Client.of(settings)                     of the cluster with this data folder
    client.ask("GET", "/pipelines")["data"]

The programs that serve the API write its address to `address` in the data folder, beside the token.

Guarantees: what the API refuses is an `Unavailable` or `RequestRefused` with the API's own words. The token is sent to
the address of the data folder, or to the one that the user has named, and in no address or error.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from ..errors import ArroyoUdfError, InvalidArgument
from .configuration import Settings
from .security import is_loopback
from .tokens import Tokens

ADDRESS = "address"
"""The file in the data folder."""
TOKEN_VARIABLE = "ARROYO_UDF_TOKEN"
_TIMEOUT = 130.0
"""Seconds: longer than a function is built."""


class RequestRefused(ArroyoUdfError):
    """The API's answer is no success. answered: its status."""

    def __init__(self, answered: int, text: str) -> None:
        super().__init__(text)
        self.answered = answered


class Unavailable(ArroyoUdfError):
    """No API answers."""


class Client:
    """token: None: the API asks for none."""

    def __init__(self, address: str, token: str | None) -> None:
        self.address, self._token = address.rstrip("/"), token
        host = urllib.parse.urlsplit(address).hostname or ""
        direct = [urllib.request.ProxyHandler({})] if is_loopback(host) else []
        self._opener = urllib.request.build_opener(_NoRedirects, *direct)

    @classmethod
    def of(cls, settings: Settings, url: str | None = None) -> Client:
        """url: of the API; None: of the one that the data folder names. The token is that of the environment, or else
        of the data folder. Raises Unavailable, InvalidState."""
        token = os.environ.get(TOKEN_VARIABLE)
        if token is None and not settings.api.no_token:
            token = Tokens(settings.data).own()
        if url is None:
            try:
                url = (settings.data / ADDRESS).read_text(encoding="ascii").strip()
            except OSError:
                raise Unavailable(
                    f"no cluster has run with the data folder {settings.data}: start `arroyo-udf cluster`, or say "
                    "--url or --data"
                ) from None
        if not url.startswith(("http://", "https://")):
            raise InvalidArgument(f"{url!r} is no address of an API: write http://127.0.0.1:5115")
        return cls(url, token)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """None: an empty answer. Raises Refused, Unavailable."""
        with self._opened(method, path, body) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def pages(self, path: str) -> Iterator[Any]:
        """The items of a list, the newest first, page after page."""
        last: str | None = None
        while True:
            more = "" if last is None else f"&starting_after={last}"
            page = self.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=100{more}")
            yield from page["data"]
            if not page.get("hasMore"):
                return
            last = page["data"][-1]["id"]

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Of a stream: the kind of each event, and its data."""
        kind = "message"
        with self._opened("GET", path, None) as answer:
            for line in answer:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
                    kind = "message"

    def _opened(self, method: str, path: str, body: Any) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(f"{self.address}/api/v1{path}", data, headers, method=method)
        try:
            opened: http.client.HTTPResponse = self._opener.open(request, timeout=_TIMEOUT)
            return opened
        except urllib.error.HTTPError as error:
            with error:
                raise RequestRefused(error.code, _error_text(error.read()) or f"the API answers {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise Unavailable(f"no cluster answers at {self.address} ({reason}): start it, or say --url") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, TypeError, KeyError):
        return ""
