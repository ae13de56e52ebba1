"""Public ids, such as `pl_4fGh7Kx9Qz`: a prefix that says what it is of, and ten characters."""

from __future__ import annotations

import hashlib
import secrets
import string
from typing import Literal

Prefix = Literal["pl", "job", "js", "chk", "jlm", "ct", "ctp", "cp", "udf", "ak", "ci", "sch"]

_CHARACTERS = string.digits + string.ascii_letters
_LENGTH = 10


def new_id(prefix: Prefix) -> str:
    """A random one."""
    return f"{prefix}_{''.join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))}"


def id_of(prefix: Prefix, *parts: str) -> str:
    """The same one for the same parts, and another one for others."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")
    size = len(_CHARACTERS)
    return f"{prefix}_{''.join(_CHARACTERS[number // size**place % size] for place in range(_LENGTH))}"
