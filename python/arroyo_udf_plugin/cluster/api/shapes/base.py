"""What all shapes have in common."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

import pydantic

Item = TypeVar("Item")

Micros = int
"""Microseconds: since 1970, or a duration."""

MOST_MICROS = 2**63 - 1


class Answer(pydantic.BaseModel):
    """What the API says. Fields that may be missing are null."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True)


class Asked(pydantic.BaseModel):
    """What the API is asked for. Values are not converted between kinds."""

    model_config = pydantic.ConfigDict(strict=True, use_attribute_docstrings=True)


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
