"""A pipeline: sources, operators in a row or a tree, one or more sinks. As it is written, checked and planned.

    TOML, JSON ──read──► Pipeline ──plan──► Planned ──► engine
    Python     ──────────►  │
                            └──► JSON, schema

description.py   the models: `Pipeline` and its parts; those of connectors are beside their connectors
kinds/           the kinds of operators, one file each
document.py      a TOML or JSON text as a `Pipeline`; errors with paths and lines
lines.py         where keys are in a TOML text
problems.py      all that is wrong, in one error
variables.py     `${NAME}`: environment variables in texts
calls.py         calls as a person writes them
checks.py        calls against plugins, columns and types
chain.py         operators in their places, and the columns between them
queries.py       what is wrong with expressions in SQL
plan.py          opens source and plugins, and checks all: what the engine needs
routing.py       which operators follow which
inputs.py        the sources, open
replayed.py      a pipeline whose source is its own dead letters
edits.py         values that were changed in them before they run again
hidden.py        a source whose partitions' names have no values of variables
explain.py       the chain with its schemas, for people

Guarantees: an error names the path of its key and says what to write instead; several are told together; nothing
outside has changed by then. The value of a variable is in no description, error, log line or checkpoint.
Importing this room is cheap: the models are looked up when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..connectors.blackhole import Blackhole
    from ..connectors.files import Files
    from ..connectors.impulse import Impulse
    from ..connectors.parts import Parts
    from ..connectors.single import File
    from ..connectors.standard_input import StandardInput
    from ..connectors.standard_output import StandardOutput
    from ..connectors.table import Table
    from .description import Checkpoints, EventTime, NamedSource, Pipeline
    from .document import Document
    from .kinds import (
        Deduplicate,
        FollowTable,
        Functions,
        Join,
        LatestRows,
        LookBack,
        Lookup,
        Sql,
        Union,
        Updating,
        UpdatingJoin,
        WholeQuery,
        Windows,
    )
    from .problems import InvalidPipeline, Problem

__all__ = [
    "Blackhole",
    "Checkpoints",
    "Deduplicate",
    "Document",
    "EventTime",
    "File",
    "Files",
    "FollowTable",
    "Functions",
    "Impulse",
    "InvalidPipeline",
    "Join",
    "LatestRows",
    "LookBack",
    "Lookup",
    "NamedSource",
    "Parts",
    "Pipeline",
    "Problem",
    "Sql",
    "StandardInput",
    "StandardOutput",
    "Table",
    "Union",
    "Updating",
    "UpdatingJoin",
    "WholeQuery",
    "Windows",
]

_AT_FIRST_USE = {
    "connectors.blackhole": ("Blackhole",),
    "connectors.files": ("Files",),
    "connectors.impulse": ("Impulse",),
    "connectors.parts": ("Parts",),
    "connectors.single": ("File",),
    "connectors.standard_input": ("StandardInput",),
    "connectors.standard_output": ("StandardOutput",),
    "connectors.table": ("Table",),
    "pipeline.description": ("Checkpoints", "EventTime", "NamedSource", "Pipeline"),
    "pipeline.document": ("Document",),
    "pipeline.kinds": (
        "Deduplicate",
        "FollowTable",
        "Functions",
        "Join",
        "LatestRows",
        "LookBack",
        "Lookup",
        "Sql",
        "Union",
        "Updating",
        "UpdatingJoin",
        "WholeQuery",
        "Windows",
    ),
    "pipeline.problems": ("InvalidPipeline", "Problem"),
}


def __getattr__(name: str) -> Any:
    for module, names in _AT_FIRST_USE.items():
        if name in names:
            return getattr(importlib.import_module(f"..{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
