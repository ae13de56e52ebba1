"""The base of everything that a person may write in a pipeline's description."""

from __future__ import annotations

import pydantic


class Described(pydantic.BaseModel):
    """A part of a description: unknown keys are refused, values are not converted between kinds, and nothing changes
    after it has been checked."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)
