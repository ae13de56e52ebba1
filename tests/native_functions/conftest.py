"""Sources that are built twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from comparing import Pair

HEAD = "import math\n\nfrom arroyo_udf_plugin import udf\n\n"


@pytest.fixture
def pair(tmp_path: Path) -> Callable[[str], Pair]:
    """Builds a source, below the imports that all need."""
    return lambda source: Pair(tmp_path, HEAD + source)
