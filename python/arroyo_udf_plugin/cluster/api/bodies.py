"""JSON that every part behind the API can hold.

Python reads more than JSON: NaN, half of a surrogate pair. PostgreSQL keeps no text with a NUL character. Such a body
is refused like any other that is no JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import fastapi
from fastapi.routing import APIRoute

Handler = Callable[[fastapi.Request], Coroutine[Any, Any, fastapi.Response]]


class _JsonRequest(fastapi.Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = _read(await self.body())
        return self._json


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def with_json(request: fastapi.Request) -> fastapi.Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return with_json


def _read(body: bytes) -> Any:
    """Raises JSONDecodeError."""
    try:
        read = json.loads(body.decode(), parse_constant=_no_constant, parse_int=_int, parse_float=_float)
        _check_texts(read)
        return read
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
    except UnicodeError:
        raise json.JSONDecodeError("a text is not Unicode", "", 0) from None
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from None


def _check_texts(read: Any) -> None:
    """Raises ValueError for a text that cannot be stored."""
    left = [read]
    while left:
        value = left.pop()
        if isinstance(value, str):
            value.encode()
            if "\0" in value:
                raise ValueError("a text has a NUL character")
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _int(text: str) -> int:
    if len(text) > 40:
        raise ValueError("a number has too many digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is too large")
    return value
