"""A description as TOML or JSON: read, and checked as far as it goes by itself.

document = Document.read("pipeline.toml")
with document.located():              # errors of later checks get the file and the line, too
    planned = plan(document.pipeline)
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pydantic
from pydantic.fields import FieldInfo

from ...errors import InvalidArgument, nearest
from ..attribute_docs import docs_of
from ..connectors.described import Described
from ..connectors.registry import broken
from .description import Pipeline
from .lines import Key, lines_of
from .problems import InvalidPipeline, Problem

ENDINGS = (".toml", ".json")

_WRITE = {
    "string_type": "write a text",
    "int_type": "write a whole number",
    "float_type": "write a number",
    "bool_type": "write true or false",
    "list_type": "write a list",
    "tuple_type": "write a list",
    "dict_type": "write a table",
    "model_type": "write a table",
    "model_attributes_type": "write a table",
}


def text_of(file: str) -> str:
    """Raises InvalidArgument for a file that cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidArgument(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read: {error}") from error


class Document:
    """file: its name. pipeline: what it says. lines: where its keys are; none for JSON."""

    explain = False
    """As of a query: whether the text itself asks to be explained, not run."""

    def __init__(self, file: str, data: Any, lines: Mapping[Key, int], is_json: bool) -> None:
        self.file = file
        self.lines = lines
        with self.located():
            self.pipeline = pipeline_of(data, is_json)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Document:
        """Raises InvalidArgument, also InvalidPipeline."""
        file = os.fspath(path)
        if not file.endswith(ENDINGS):
            raise InvalidArgument(
                f"{file}: a pipeline is described in a file that ends in {' or '.join(ENDINGS)}; a query's ends in .sql"
            )
        text = text_of(file)
        try:
            if file.endswith(".json"):
                return cls(file, json.loads(text), {}, is_json=True)
            return cls(file, tomllib.loads(text), lines_of(text), is_json=False)
        except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidArgument(f"{file}: {error}") from None

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Adds the file and lines to an InvalidPipeline."""
        try:
            yield
        except InvalidPipeline as error:
            raise InvalidPipeline(error.problems, self.file, self.lines) from error.__cause__


def pipeline_of(data: Any, is_json: bool = False) -> Pipeline:
    """The pipeline that data describes. is_json: it comes from JSON, where a time is a text. Raises InvalidPipeline."""
    try:
        return Pipeline.model_validate_json(json.dumps(data)) if is_json else Pipeline.model_validate(data)
    except pydantic.ValidationError as error:
        problems = [
            _problem(data, detail["loc"], detail["type"], detail.get("ctx", {}), detail["msg"])
            for detail in error.errors()
        ]
        by_key = {problem.key: problem for problem in problems if problem is not None}
        raise InvalidPipeline(list(by_key.values())) from None


def _problem(data: Any, loc: Key, kind: str, context: Mapping[str, Any], message: str) -> Problem | None:
    """An error of pydantic in our words; None: it only follows from another one."""
    key, owner, models = _walk(loc)
    if kind == "extra_forbidden":
        known = [name for name in _keys(owner) if name not in _at(data, key[:-1])]
        return Problem(key, f"there is no such key: {nearest(str(key[-1]), known)}")
    if kind == "missing":
        help_ = docs_of(owner).get(str(key[-1]), "it").split(". ")[0].rstrip(".")
        begins_a_sentence = help_.split()[0].istitle()  # other than NAME = FUNCTION(COLUMN)
        return Problem(key, f"is missing; write {help_[0].lower() if begins_a_sentence else help_[0]}{help_[1:]}")
    while _at(data, key) is None and key:
        key = key[:-1]  # pydantic's way also has the alternatives of a union
    value = _at(data, key)
    if kind == "union_tag_not_found":
        types = ", ".join(repr(_type_of(model)) for model in models)
        return Problem((*key, "type"), f"is missing; write one of {types}")
    if kind == "union_tag_invalid":
        instead = broken().get(str(value["type"])) or nearest(str(value["type"]), map(_type_of, models))
        return Problem((*key, "type"), f"there is no type {value['type']!r}: {instead}")
    if kind == "too_short":
        least = context["min_length"]
        is_enough = isinstance(value, Mapping | list | tuple) and len(value) >= least
        return None if is_enough else Problem(key, f"write at least {'one' if least == 1 else least}")
    if kind == "value_error":
        text = str(context["error"])
    elif kind == "literal_error":
        text = f"write {context['expected']}"
    elif kind == "string_pattern_mismatch":
        text = "write letters, digits, '_', '.' and '-' only"
    elif kind in ("list_type", "tuple_type") and isinstance(value, Mapping):
        text = f"write a list; in TOML, each of its parts begins with [[{key[-1]}]]"
    else:
        text = _WRITE.get(kind, message.replace("Input should", "it must"))
    return Problem(key, text if isinstance(value, Mapping | list) else f"{text}, not {value!r}")


def _walk(loc: Key) -> tuple[Key, type[Described], list[type[Described]]]:
    """The key of an error of pydantic, the model that has this key, and the models that its value may be.

    pydantic's way to an error also has the types of sources and sinks on it.
    """
    key: Key = ()
    owner: type[Described] = Pipeline
    models: list[type[Described]] = [Pipeline]
    for part in loc:
        if isinstance(part, str) and len(models) > 1:
            models = [model for model in models if _type_of(model) == part]
            continue
        key = (*key, part)
        if isinstance(part, str):
            owner = models[0] if models else owner
            field = _keys(owner).get(part) if models else None
            models = _models(field.annotation) if field else []
    return key, owner, models


def _keys(model: type[Described]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _models(annotation: Any) -> list[type[Described]]:
    if isinstance(annotation, type) and issubclass(annotation, Described):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _type_of(model: type[Described]) -> str:
    return str(model.model_fields["type"].default)


def _at(data: Any, key: Key) -> Any:
    for part in key:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return None
    return data
