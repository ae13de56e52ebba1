"""Delta tables as tests see them: their rows, read with DataFusion, as deltalake has it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa


def rows_of(place: str | Path, select: str = "*", where: str = "TRUE") -> list[dict[str, Any]]:
    """None if there is no table."""
    with contextlib.suppress(deltalake.exceptions.TableNotFoundError):
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(place)))
        found: pa.Table = pa.table(query.execute(f"SELECT {select} FROM t WHERE {where}").read_all())
        return [dict(row) for row in found.to_pylist()]
    return []


def numbers_of(place: str | Path) -> list[int]:
    return sorted(row["n"] for row in rows_of(place, "n"))
