"""Packages as pip leaves them behind, in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def install(site: Path, name: str, entry_points: Mapping[str, Mapping[str, str]], files: Mapping[str, str]) -> None:
    """entry_points: by their group."""
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def environment(site: Path) -> dict[str, str]:
    """For programs that find the folder's packages."""
    others = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": str(site) if others is None else f"{site}{os.pathsep}{others}"}
