"""Functions."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from .base import Answer, Asked, Micros

Language = Literal["python", "rust", "c"]
Definition = Annotated[str, pydantic.Field(max_length=1 << 20)]


class Udf(Asked):
    """A function of one pipeline, which travels with it."""

    definition: Definition
    """Its source, with one function."""
    language: Language = "rust"


Prefix = Annotated[str, pydantic.Field(pattern=r"^/([^/]+/)*$", max_length=200)]
"""The folder in which it is shown: "/" or "/a/b/"."""
Description = Annotated[str, pydantic.Field(max_length=10_000)]


class UdfPost(Asked):
    prefix: Prefix = "/"
    definition: Definition
    language: Language = "rust"
    description: Description | None = None


class UdfPatch(Asked):
    """What is not named stays as it is."""

    prefix: Prefix | None = None
    definition: Definition | None = None
    language: Language | None = None
    description: Description | None = None


class ValidateUdfPost(Asked):
    definition: Definition
    language: Language = "rust"


class GlobalUdf(Answer):
    """A function that every query may call."""

    id: str
    prefix: str
    name: str
    language: Language
    created_at: Micros
    updated_at: Micros
    definition: str
    description: str | None
    dylib_url: str | None
    """The library that was built of it."""


class UdfValidationResult(Answer):
    udf_name: str | None
    errors: list[str]
