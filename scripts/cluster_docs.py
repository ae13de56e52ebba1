"""The generated tables of docs/cluster.md: the states of a job, what is done in them, and what can be configured.

python scripts/cluster_docs.py        writes them anew, between their marks
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic

from arroyo_udf_plugin.cluster.configuration import Settings, configured
from arroyo_udf_plugin.cluster.states import actions, table
from arroyo_udf_plugin.engine.attribute_docs import docs_of

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "cluster.md"


def states() -> str:
    rows = [f"| {state} | {event} | {following} |" for state, event, following in table()]
    return "\n".join(["| state | event | next state |", "|---|---|---|", *rows])


def asked() -> str:
    rows = [f"| {state} | {when} | {action} |" for state, when, action in actions()]
    return "\n".join(["| state | when | action |", "|---|---|---|", *rows])


def configuration() -> str:
    # As nobody has set anything. The data folder is the user's.
    defaults = {key: value for key, value, _ in configured(None, {"data": "~/.local/share/arroyo-udf"}, {}).lines()}
    rows = [f"| `{key}` | {defaults[key]} | {text} |" for key, text in _keys(Settings)]
    return "\n".join(["| key | default | what it is |", "|---|---|---|", *rows])


def _keys(model: type[pydantic.BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
            yield from _keys(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, " ".join(docs_of(model).get(name, "").split())


def written(text: str) -> str:
    """The document with its tables as they are now."""
    for name, content in (("states", states()), ("actions", asked()), ("configuration", configuration())):
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda found, content=content: f"{found[1]}{content}\n{found[2]}", text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
