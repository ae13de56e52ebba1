"""The windows that a grouping asks for."""

from __future__ import annotations

import pyarrow as pa

from .grouping import Grouping
from .panes import Windows
from .sessions import Sessions
from .spans import Session
from .storage import Limits


def opened(grouping: Grouping, given: pa.Schema, limits: Limits = Limits()) -> Windows | Sessions:  # noqa: B008 (frozen)
    """given: of the rows. Raises WrongQuery."""
    return (Sessions if isinstance(grouping.window, Session) else Windows)(grouping, given, limits)
