"""What requests and answers of the REST API look like: Arroyo's names and types, field by field.

__init__.py      what all have in common: times, ids, pages, errors
pipelines.py     pipelines, their graphs, what is wrong with a query; functions
jobs.py          jobs, their errors, checkpoints, metrics and rows; savepoints, and what a restore asks
connections.py   connectors, profiles, tables and their schemas

Guarantees: a time is a whole number of microseconds since 1970; names are in snake_case, but for `hasMore`; a request
with a key that is not known here is refused by its name.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import pydantic
from pydantic_core import PydanticCustomError

from ....engine.attribute_docs import Documented

Item = TypeVar("Item")

Micros = int
"""Microseconds: since 1970, or a duration."""

MOST_MICROS = 2**63 - 1


class Answer(Documented):
    """What the API says. Fields that may be missing are null."""


def wrong_shape(message: str) -> PydanticCustomError:
    """To be raised while a request is read, if it has another shape than is asked for."""
    return PydanticCustomError(WRONG_SHAPE, "{told}", {"told": message})


WRONG_SHAPE = "wrong_shape"
"""The type of that error."""


class Asked(Documented):
    """What the API is asked for. Values are not converted between kinds. Unknown keys are refused: a wish that nobody
    reads must not look like one that was heard."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, given: Any) -> Any:
        if isinstance(given, dict) and cls.model_config.get("extra") == "forbid":
            keys = [field.alias or name for name, field in cls.model_fields.items()]
            for name in given:
                if name not in keys and name not in cls.model_fields:
                    raise wrong_shape(_unknown_key(str(name), keys))
        return given


def _unknown_key(name: str, keys: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, keys, 1)
    return f"there is no key {name[:100]!r}: " + (f"write {near[0]!r}" if near else f"there are {', '.join(keys)}")


class Listed(Answer, Generic[Item]):
    """A list that is complete."""

    data: list[Item]


class Page(Answer, Generic[Item]):
    """A part of a list, the newest first."""

    data: list[Item]
    has_more: Annotated[bool, pydantic.Field(alias="hasMore", serialization_alias="hasMore")]
    """Whether there are more items: ask again, with the id of the last one as `starting_after`."""

    model_config = pydantic.ConfigDict(populate_by_name=True)


class Failure(Answer):
    """Each answer that is no success."""

    error: str
    """What is wrong, and what to do instead."""


class Login(Answer):
    path: str
    """Behind the address of the API: opened in a browser, it logs it in."""
