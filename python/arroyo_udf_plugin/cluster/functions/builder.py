"""What the API asks for: functions built and tried, queries planned, dead letters replayed.

    folder/builds/<key>.json                         a function that was built, by the hash of its text
    folder/libraries/<sha256>/libplane.so            its library
    folder/cache                                     what compilers keep
    folder/child-...                                 private folders of children

Several processes may share the folder, and build the same function at once: what one has answered stays as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pydantic

from ...abi import ABI_VERSION
from ...engine.execution.store import LocalStore
from ...errors import ArroyoUdfError
from ...version import PLUGIN_FORMAT, __version__
from .artifacts import LIBRARIES, copied, new_place, store, verified
from .children import ChildFailed, ChildLimits, Children
from .fair_queue import Turns
from .messages import (
    Build,
    Built,
    Diagnostic,
    Language,
    PlanRequest,
    PlanResult,
    PluginReference,
    ReplayRequest,
    ReplayResult,
    SavedTable,
    TryRequest,
)
from .trial import Trial, attended

_PATIENCE = 10.0
"""Seconds for a store that does not answer while somebody waits for the API."""


@dataclass(frozen=True)
class BuiltFunction:
    """library: the path of its plugin, whose hash is sha256."""

    name: str
    language: Language
    signature: str
    library: str
    sha256: str


class InvalidFunction(Exception):
    """A definition that cannot be built. errors: why."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = list(errors)


class Builder:
    """folder: is made, for this user only. cache: of compilers. roots: the folders in which files of queries may be.

    artifacts: where functions are stored that pipelines have; None: in the folder, too.
    """

    def __init__(
        self,
        folder: Path,
        limits: ChildLimits | None = None,
        cache: Path | None = None,
        roots: Sequence[str] | None = None,
        artifacts: str | None = None,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._builds = LocalStore(folder / "builds")
        self._libraries = folder / LIBRARIES
        self._artifacts = artifacts or str(folder / "artifacts")
        self._children = Children(folder, cache or folder / "cache", limits or ChildLimits())
        self._building: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._roots = None if roots is None else list(roots)

    @property
    def turns(self) -> Sequence[Turns]:
        """Of builds, and of plans."""
        return self._children.builds, self._children.plans

    def prepare(self) -> None:
        """Starts a child ahead, so that the first job does not wait for its imports."""
        self._children.prepare()

    async def close(self) -> None:
        await self._children.close()

    async def function(self, definition: str, language: Language) -> BuiltFunction:
        """Builds a definition that is new. Raises InvalidFunction, Busy."""
        key = _key(definition, language)
        async with self._building[key]:
            if (built := await asyncio.to_thread(self._cached, key)) is None:
                built = await self._built(definition, language, key)
        if not self._building[key].locked():
            del self._building[key]
        return built

    async def _built(self, definition: str, language: Language, key: str) -> BuiltFunction:
        async with self._children.working(self._children.builds) as child:
            out = child.folder / "out"
            out.mkdir()
            try:
                line = await child.answer(Build(definition=definition, language=language, out=str(out)))
                answer = Built.model_validate_json(line)
            except (ChildFailed, pydantic.ValidationError) as error:
                raise InvalidFunction([str(error)]) from None
            libraries = list(out.glob("lib*.so"))
            if answer.errors or answer.name is None or len(libraries) != 1:
                raise InvalidFunction(answer.errors or ["the build made no library"])
            kept, sha256 = await asyncio.to_thread(copied, libraries[0], self._libraries)
        function = BuiltFunction(answer.name, language, answer.signature, str(kept), sha256)
        await asyncio.to_thread(self._builds.put, f"{key}.json", json.dumps(asdict(function)).encode())
        return function

    def _cached(self, key: str) -> BuiltFunction | None:
        """A function that was built, and is still whole."""
        try:
            built = BuiltFunction(**json.loads(self._builds.get(f"{key}.json")))
            verified(Path(built.library), built.sha256)
        except (ArroyoUdfError, OSError, ValueError, TypeError):
            return None
        return built

    async def tried(self, definition: str, language: Language, rows: Sequence[Sequence[Any]], seconds: float) -> Trial:
        """Builds a definition, and calls its function for some rows of JSON values. What is wrong is in the answer.
        Raises Busy."""
        try:
            function = await self.function(definition, language)
        except InvalidFunction as error:
            return Trial(errors=error.errors)
        plugin = PluginReference(name=function.name, library=function.library, sha256=function.sha256)
        async with self._children.working(self._children.builds) as child:
            asked = TryRequest.model_validate({"plugin": plugin, "rows": rows, "seconds": seconds})
            return await attended(child, asked, function.signature)

    def new_place(self, function: BuiltFunction) -> str:
        """Where a function can be stored."""
        return new_place(self._artifacts, function.sha256)

    def store(self, function: BuiltFunction, place: str) -> str:
        """Stores a function there, if it is not. Returns what programs call it. Raises InvalidArgument."""
        return store(Path(function.library), place, _PATIENCE)

    async def plan(
        self,
        name: str,
        query: str,
        functions: Mapping[str, BuiltFunction],
        tables: Sequence[SavedTable] = (),
        parallelism: int = 1,
        sinks: str = "own",
        environment: Mapping[str, str] | None = None,
        state_url: str | None = None,
        known: Sequence[str] = (),
        slices: int | None = None,
        sample: bool = False,
        sample_rows: int = 0,
        connect: bool = False,
    ) -> PlanResult:
        """functions: by name. known: names to propose. slices: on Flink. sample: tell the first source's fields, and so
        many of its first rows. connect: ask the first source what it has. What is wrong is in the answer. Raises
        Busy."""
        plugins = [
            PluginReference(name=plugin_name, library=f.library, sha256=f.sha256)
            for plugin_name, f in functions.items()
        ]
        async with self._children.working(self._children.plans) as child:
            asked = PlanRequest.model_validate(
                {
                    "name": name,
                    "query": query,
                    "plugins": plugins,
                    "slices": slices,
                    "tables": list(tables),
                    "parallelism": parallelism,
                    "sinks": sinks,
                    "environment": dict(environment or {}),
                    "roots": self._roots,
                    "state_url": state_url,
                    "known": list(known),
                    "sample": sample,
                    "sample_rows": sample_rows,
                    "connect": connect,
                }
            )
            try:
                return PlanResult.model_validate_json(await child.answer(asked))
            except (ChildFailed, pydantic.ValidationError) as error:
                return PlanResult(errors=[Diagnostic(message=f"the query cannot be planned: {error}")])

    async def replay(self, asked: Callable[[], ReplayRequest]) -> ReplayResult:
        """asked: called in a thread when its turn has come; what it raises is raised. What is wrong with the replay is
        in the answer. Raises Busy."""
        async with self._children.working(self._children.plans) as child:
            job = await asyncio.to_thread(asked)
            job = job.model_copy(update={"libraries": str(self._libraries), "roots": self._roots})
            try:
                return ReplayResult.model_validate_json(await child.answer(job))
            except (ChildFailed, pydantic.ValidationError) as error:
                return ReplayResult(error=f"the replay has not ended: {error}; what was done stays: replay again")


def _key(definition: str, language: str) -> str:
    parts = [definition, language, __version__, ABI_VERSION, PLUGIN_FORMAT, sys.version, sys.platform]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]
