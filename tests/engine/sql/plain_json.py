"""The functions for JSON by the json module, a text at a time: what the native ones are compared with.

Assumes texts in the way json.dumps writes them without spaces, where values are cut from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.json_values import BY_PATH

Steps = tuple[str | int, ...]
MISSING: Any = object()


def plain(function: Any) -> Callable[..., pa.Array]:
    def call(texts: pa.Array, last: pa.Array | None = None) -> pa.Array:
        steps = [()] * len(texts) if last is None else [(step,) for step in last.to_pylist()]
        answers = [
            plain_answer(function.name, text, function.path, step)
            for text, step in zip(texts.to_pylist(), steps, strict=True)
        ]
        return pa.array(answers, function.returns)

    return call


def plain_answer(name: str, text: str | None, path: Any, last: Steps = ()) -> Any:
    if last == (None,):
        return None
    if name in BY_PATH:
        document = loaded(text, first=False)
        found = [] if document is MISSING else _query(document, re.findall(r"\.(\w+)|\[(-?\d+)\]|(\[\*\]|\.\*)", path))
        if name == "extract_json":
            return None if document is MISSING else list(map(dumped, found))
        value = found[0] if found else MISSING
        if name == "get_first_json_object":
            return None if value is MISSING else dumped(value)
        return _text(value) if isinstance(value, str) else None
    value = _at(loaded(text, first=True), (*path, *last))
    return _BY_KEYS[name](value)


class Object(dict[str, Any]):
    """An object; `keys_written` has equal keys twice."""

    def __init__(self, pairs: list[tuple[str, Any]], first: bool) -> None:
        super().__init__({**dict(pairs), **dict(reversed(pairs))} if first else pairs)
        self.keys_written = [key for key, _ in pairs]


def loaded(text: str | None, first: bool, infinite: bool = False) -> Any:
    """first: of two equal keys the first counts; otherwise the last. infinite: Infinity is a number, too."""

    def constant(word: str) -> float:
        if not infinite or word == "NaN":
            raise ValueError(word)
        return float(word)

    try:
        return json.loads(
            "" if text is None else text,
            parse_constant=constant,
            object_pairs_hook=lambda pairs: Object(pairs, first),
        )
    except ValueError:
        return MISSING


def dumped(value: Any) -> str:
    """Halves of surrogate pairs as escapes: no text can have them."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _at(value: Any, path: Steps) -> Any:
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(step, int) and isinstance(value, list) and 0 <= step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def _query(value: Any, segments: list[tuple[str, str, str]]) -> list[Any]:
    if not segments:
        return [value]
    (name, index, _), rest = segments[0], segments[1:]
    if name:
        inner = [value[name]] if isinstance(value, dict) and name in value else []
    elif index:
        inner = [value[int(index)]] if isinstance(value, list) and -len(value) <= int(index) < len(value) else []
    else:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [found for one in inner for found in _query(one, rest)]


def _text(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _as_text(value: Any) -> str | None:
    if value is MISSING or value is None:
        return None
    return _text(value) if isinstance(value, str) else dumped(value)


def _float(value: Any) -> float | None:
    if not (_is_int(value) or isinstance(value, float)):
        return None
    try:
        return float(value) if abs(float(value)) != float("inf") else None
    except OverflowError:
        return None


def _keys(value: Any) -> list[str] | None:
    if not isinstance(value, Object) or None in map(_text, value):
        return None
    return value.keys_written


def _length(value: Any) -> int | None:
    return len(value.keys_written if isinstance(value, Object) else value) if isinstance(value, (list, dict)) else None


_BY_KEYS: dict[str, Callable[[Any], Any]] = {
    "json_get": lambda value: None if value is MISSING or value is None else dumped(value),
    "json_get_json": lambda value: None if value is MISSING else dumped(value),
    "json_as_text": _as_text,
    "json_get_str": lambda value: _text(value) if isinstance(value, str) else None,
    "json_get_int": lambda value: value if _is_int(value) and -(2**63) <= value < 2**63 else None,
    "json_get_float": _float,
    "json_get_bool": lambda value: value if isinstance(value, bool) else None,
    "json_get_array": lambda value: list(map(dumped, value)) if isinstance(value, list) else None,
    "json_length": _length,
    "json_contains": lambda value: value is not MISSING,
    "json_object_keys": _keys,
}
