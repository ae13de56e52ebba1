"""The example of calls that need not be made, over all flights: one call for each plane (R21)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet


def cli(*arguments: object, cwd: Path) -> str:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_plane_is_asked_for_once(examples: Path, flights: Path, tmp_path: Path) -> None:
    source = examples / "cached" / "udf.py"
    assert "\n    async, deterministic, cache 100,000, cache_ttl=3600.0\n" in cli("inspect", source, cwd=tmp_path)
    told = cli("run", source, flights, "--args", "tailnum", "--out", "out.parquet", cwd=tmp_path)
    rows = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    planes = len(set(rows["tailnum"].to_pylist()))  # with those of the flights without one, for which there is no call
    assert f"; {planes:,} different arguments, {len(rows) - planes:,} rows needed no call of their own, " in told
    countries = {"N": "United States", "C": "Canada", "G": "United Kingdom"}
    expected = [tail and countries.get(tail[0], "unknown") for tail in rows["tailnum"].to_pylist()]
    assert rows["country"].to_pylist() == expected
