"""Prints the OpenAPI document of the API, from which the types of the web page are generated.

python web/tools/openapi.py > web/openapi.json
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records


async def document() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.closing(Database.open(f"sqlite:///{folder / 'cluster.sqlite'}")) as database:
            database.migrate()
            app = create_app(ApiParts(database, Builder(folder / "functions"), Records(folder), security=None))
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                answer = await client.get("/api/v1/api-docs/openapi.json")
            found: dict[str, Any] = answer.raise_for_status().json()
            return found


print(json.dumps(asyncio.run(document()), indent=1))
