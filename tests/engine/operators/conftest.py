from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gates
import pytest

from arroyo_udf_plugin import load


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(gates.build(build_plugin)).functions


@pytest.fixture
def opened() -> gates.Gates:
    """Gates for this test alone."""
    return gates.new_gates()
