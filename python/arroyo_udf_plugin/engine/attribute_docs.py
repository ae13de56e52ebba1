'''Models whose JSON schema describes each field with the text below it in the source.

    class Impulse(Documented):
        rows: int | None = None
        """How many rows there are; default: no end."""

    docs_of(Impulse)["rows"]         "How many rows there are; default: no end."

pydantic can do this itself (`use_attribute_docstrings`), but reads the source of each class when it is defined. A
cluster has a hundred such classes, and every start paid a tenth of a second for texts that hardly anyone asked for.

Guarantees: the source is read when a schema is asked for, once for each module. A field without a text, or a class
without a source, has no description. A field that a subclass defines anew has the subclass's text.
'''

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import pydantic


class Documented(pydantic.BaseModel):
    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: Any, handler: pydantic.GetJsonSchemaHandler
    ) -> pydantic.json_schema.JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in docs_of(cls).items():
            field = cls.model_fields.get(name)
            aliases = () if field is None else (field.alias, field.serialization_alias, field.validation_alias)
            for key in {name, *aliases} & {*properties}:
                properties[key].setdefault("description", text)
        return schema


def docs_of(model: type[object]) -> Mapping[str, str]:
    """The text of each attribute, of its bases too."""
    docs: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        for name, text in _docs_in(kind.__module__).get(kind.__qualname__, {}).items():
            if text:
                docs[name] = text
            else:
                docs.pop(name, None)
    return docs


@functools.cache
def _docs_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """The texts of each class of a module, by its qualified name; "" where there is none."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    docs: dict[str, Mapping[str, str]] = {}
    _collect(tree, "", docs)
    return docs


def _collect(owner: ast.AST, prefix: str, docs: dict[str, Mapping[str, str]]) -> None:
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, ast.ClassDef):
            docs[prefix + node.name] = dict(_documented(node))
            _collect(node, f"{prefix}{node.name}.", docs)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _collect(node, f"{prefix}{node.name}.<locals>.", docs)
        else:
            _collect(node, prefix, docs)


def _documented(owner: ast.ClassDef) -> list[tuple[str, str]]:
    texts = []
    for node, after in zip(owner.body, [*owner.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = after.value.value if is_text else ""  # type: ignore[union-attr]
            texts.append((node.target.id, inspect.cleandoc(text) if isinstance(text, str) else ""))
    return texts
