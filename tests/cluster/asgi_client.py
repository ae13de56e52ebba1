"""A client of an ASGI app in this process, for tests that are no coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.security import App
from arroyo_udf_plugin.cluster.tokens import Tokens

Result = TypeVar("Result")


def bearer(data: Path) -> dict[str, str]:
    """The header with the token of a data folder."""
    return {"authorization": f"Bearer {Tokens(data).own()}"}


class Client:
    """All requests run in one event loop, in a thread. An exception of the app is what a server makes of it: a 500.

    data: the data folder of an API that asks for its token. database: that of the app, for tests that look into it.
    """

    database: Database

    def __init__(self, app: App, data: Path | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost:5115", timeout=60)
        if data is not None:
            self.http.headers.update(bearer(data))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.run(self.http.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def patch(self, path: str, **more: Any) -> httpx.Response:
        return self.request("PATCH", path, **more)

    def delete(self, path: str) -> httpx.Response:
        return self.request("DELETE", path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self.http.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
