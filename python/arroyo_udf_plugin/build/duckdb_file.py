"""What makes a library a file that DuckDB loads: a footer at its end, and a name that fits its entry point.

Loaders of shared libraries do not read the footer.
"""

from __future__ import annotations

import platform
from pathlib import Path

_API = "v1.2.0"
"""DuckDB's C extension API."""
_PLATFORMS = {"x86_64": "linux_amd64", "aarch64": "linux_arm64"}


def footer() -> bytes:
    """Eight fields, the last one first, then room for a signature. Empty where DuckDB has no name for the machine."""
    machine = _PLATFORMS.get(platform.machine())
    if machine is None:
        return b""
    fields = ("", "", "", "C_STRUCT", "1", _API, machine, "4")
    return b"".join(field.encode().ljust(32, b"\0") for field in fields) + bytes(256)


def link_of(library: Path, plugin: str) -> Path:
    """The name by which DuckDB finds the entry point: that of the plugin, whatever the library's file is called."""
    return library.with_name(f"lib{plugin}.duckdb_extension")
