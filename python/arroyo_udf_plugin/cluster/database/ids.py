"""Public ids, such as `pl_4fGh7Kx9Qz`: a prefix that says what it is of, and ten random characters."""

from __future__ import annotations

import secrets
import string
from typing import Literal

Prefix = Literal["pl", "job", "js", "chk", "jlm", "ct", "ctp", "cp", "udf", "ak", "ci", "sch"]

_CHARACTERS = string.digits + string.ascii_letters
_LENGTH = 10


def new_id(prefix: Prefix) -> str:
    return f"{prefix}_{''.join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))}"
