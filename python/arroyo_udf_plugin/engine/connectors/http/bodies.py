"""Objects of JSON in a body: one, several in an array, or one in each line; each with its text as it stands there."""

from __future__ import annotations

import json
import re

_decode = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\r\n]*")


def objects_of(body: bytes) -> list[bytes]:
    """Raises ValueError, with the reason, for a body that has anything else."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    found: list[bytes] = []
    at = _after(text, 0)
    is_array = text[at : at + 1] == "["
    at = _after(text, at + 1) if is_array else at
    while at < len(text) and not (is_array and text[at] == "]"):
        end = _object(text, at)
        found.append(text[at:end].encode())
        at = _after(text, end)
        if is_array:
            if text[at : at + 1] not in (",", "]"):
                raise ValueError(f"it is not JSON: an array goes on with , or ] at character {at + 1}")
            is_last = text[at] == "]"
            at = at if is_last else _after(text, at + 1)
            if not is_last and text[at : at + 1] == "]":
                raise ValueError(f"it is not JSON: the array has nothing behind a comma at character {at + 1}")
        elif "\n" not in text[end:at] and at < len(text):
            raise ValueError(f"something is behind an object at character {at + 1}: write each in a line of its own")
    if is_array:
        if at >= len(text):
            raise ValueError("it is not JSON: the array has no end")
        if _after(text, at + 1) < len(text):
            raise ValueError("something is behind the array")
    return found


def _after(text: str, at: int) -> int:
    """Where something is behind white space."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _object(text: str, at: int) -> int:
    """The end of the object that begins there."""
    if text[at] != "{":
        raise ValueError(f"it has no object of JSON at character {at + 1}")
    try:
        return _decode(text, at)[1]
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("its JSON is too deep") from None
