"""What a job runs, as the API has planned it, the database keeps it, and workers get it.

    program = JobProgram(pipeline, {"/functions/libgeo.so": sha256}, {"TOKEN": "..."})
    program.as_json()                     for the database and for workers; JobProgram.of_json reads it
    program.moved({"/functions/libgeo.so": "s3://bucket/libgeo.so"})

Guarantees: nothing else builds a program or takes one apart. The job decides about checkpoints, parallelism and
environment (see `task.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidState

if TYPE_CHECKING:
    from ..engine.pipeline.description import Pipeline

_VERSION = 1


@dataclass(frozen=True)
class JobProgram:
    """A pipeline with its libraries."""

    pipeline: Mapping[str, Any]
    """The description, as JSON."""
    artifacts: Mapping[str, str]
    """The path or URL of each library that the description names, with the SHA-256 of its bytes."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Secrets of connection profiles, by the names that the description has for them."""

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> JobProgram:
        """Secrets that no key opens are left out: `sealing.opened` finds them. Raises InvalidState for a program of a
        newer toolkit."""
        if stored.get("version", _VERSION) > _VERSION:
            raise InvalidState(f"the program of this job has version {stored['version']}: upgrade arroyo_udf_plugin")
        variables = stored.get("variables", {})
        return cls(
            stored.get("pipeline", {}), stored.get("artifacts", {}), variables if isinstance(variables, dict) else {}
        )

    def as_json(self) -> dict[str, Any]:
        stored = {"version": _VERSION, "pipeline": dict(self.pipeline), "artifacts": dict(self.artifacts)}
        return stored | ({"variables": dict(self.variables)} if self.variables else {})

    def moved(self, places: Mapping[str, str]) -> JobProgram:
        """With libraries at other places. places: by the names that they have here."""

        def at(name: str) -> str:
            return places.get(name, name)

        operators = [_with_libraries(operator, at) for operator in self.pipeline["operators"]]
        artifacts = {at(name): sha256 for name, sha256 in self.artifacts.items()}
        return replace(self, pipeline={**self.pipeline, "operators": operators}, artifacts=artifacts)

    def means_the_same(self, other: JobProgram) -> bool:
        """Whether the descriptions are equal, whatever libraries their functions are in."""
        return bool(_without_libraries(self.pipeline) == _without_libraries(other.pipeline))

    @property
    def parallelism(self) -> int:
        """With which the job was created."""
        return int(self.pipeline.get("parallelism", 1))

    def description(self) -> Pipeline:
        """Raises pydantic.ValidationError."""
        from ..engine.pipeline.description import Pipeline

        return Pipeline.model_validate_json(json.dumps(self.pipeline))


def libraries_in(pipeline: Mapping[str, Any]) -> set[str]:
    """Those that a description names."""
    libraries: set[str] = set()

    def note(name: str) -> str:
        libraries.add(name)
        return name

    for operator in pipeline.get("operators", ()):
        _with_libraries(operator, note)
    return libraries


def _with_libraries(operator: Mapping[str, Any], at: Callable[[str], str]) -> Mapping[str, Any]:
    """An operator as JSON: `Functions` has one library, a `WholeQuery` one for each function."""
    changed = dict(operator)
    if "plugin" in operator:
        changed["plugin"] = at(operator["plugin"])
    if "functions" in operator:
        changed["functions"] = {name: at(library) for name, library in operator["functions"].items()}
    return changed


def _without_libraries(pipeline: Mapping[str, Any]) -> Any:
    operators = [_with_libraries(operator, lambda name: "") for operator in pipeline["operators"]]
    return json.loads(json.dumps({**pipeline, "operators": operators}))
