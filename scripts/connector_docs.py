"""The generated tables of docs/connectors/: the keys of each source and sink, from the models that read descriptions.

    python scripts/connector_docs.py        writes them anew, between their marks

A mark names the kind and the type in descriptions: `<!-- source kafka -->`. The table ends at `<!-- end -->`.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pydantic
import pydantic_core

from arroyo_udf_plugin.engine.attribute_docs import docs_of
from arroyo_udf_plugin.engine.connectors import described
from arroyo_udf_plugin.engine.connectors.registry import sink_models, source_models

DOCUMENTS = Path(__file__).resolve().parents[1] / "docs" / "connectors"
_MARKED = re.compile(r"(<!-- (source|sink) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_LEFT_OUT = {"type", "after"}  # of all
_NAMES = {"str": "text", "int": "a number", "float": "a number", "bool": "`true` or `false`", "AwareDatetime": "a time"}
_ALIASES = {described.Seconds: "seconds", described.Period: "seconds", described.Bytes: "bytes"}


def models() -> dict[tuple[str, str], type[pydantic.BaseModel]]:
    """By kind and type."""
    both = {"source": source_models(), "sink": sink_models()}
    return {(kind, model.model_fields["type"].default): model for kind, each in both.items() for model in each}


def table(model: type[pydantic.BaseModel]) -> str:
    return "\n".join(["| key | value | default | |", "|---|---|---|---|", *_rows(model)])


def _rows(model: type[pydantic.BaseModel], prefix: str = "") -> Iterator[str]:
    docs, hints = docs_of(model), typing.get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        if name in _LEFT_OUT:
            continue
        inner = _model_in(hints[name])
        text = " ".join(docs.get(name, "").split()).replace("|", r"\|")
        value = "a table" if inner is not None else _value(hints[name])
        yield f"| `{prefix}{field.alias or name}` | {value} | {_default(field)} | {text} |"
        if inner is not None:
            yield from _rows(inner, f"{prefix}{name}.")


def _model_in(hint: typing.Any) -> type[pydantic.BaseModel] | None:
    for each in (hint, *typing.get_args(hint)):
        if isinstance(each, type) and issubclass(each, pydantic.BaseModel):
            return each
    return None


def _value(hint: typing.Any) -> str:
    """What a person may write."""
    if alias := next((text for known, text in _ALIASES.items() if hint == known), None):
        return alias
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _value(inner[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_value(each) for each in inner if each is not type(None)))
    if origin is dict:
        return f"a table of {_value(inner[1])}"
    if origin is tuple:
        return f"a list of {_value(inner[0])}"
    name = getattr(hint, "__name__", str(hint))
    return _NAMES.get(name, name)


def _default(field: pydantic.fields.FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    if field.default in (None, (), pydantic_core.PydanticUndefined):
        return ""
    values = field.default if isinstance(field.default, tuple) else (field.default,)
    return ", ".join(
        f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else '""' for value in values
    )


def written(text: str) -> str:
    """A document with its tables as they are now. Raises KeyError for a mark of no model."""
    known = models()
    return _MARKED.sub(lambda found: f"{found[1]}{table(known[found[2], found[3]])}\n{found[4]}", text)


if __name__ == "__main__":
    for document in sorted(DOCUMENTS.glob("*.md")):
        document.write_text(written(document.read_text()))
