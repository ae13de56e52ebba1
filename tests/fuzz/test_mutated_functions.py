"""Mutated functions that are compiled to C do what Python does. mutated_functions.py can look for longer."""

from __future__ import annotations

import sys

import mutated_functions
import pytest

pytestmark = pytest.mark.once

PLANTED = """
from arroyo_udf_plugin import udf

@udf(native="auto")
def same(a: int) -> int:
    return a + 1

@udf(native="auto")
def differs(a: int, text: str) -> int:
    return a + len('native="auto"')
"""
"""Of the second function, Python gets another text than C."""


def test_mutated_functions_do_what_python_does() -> None:
    counted, found = mutated_functions.rounds(0, 3)
    assert found == []
    assert counted["programs"] == 3
    assert counted["functions"] > 15
    assert 0.1 < counted["deferred"] / counted["rows"] < 0.9, "rows must try both ways"


def test_most_functions_of_a_round_are_changed() -> None:
    written = [mutated_functions.program(seed) for seed in range(20)]
    assert len(set(written)) == 20


def test_a_difference_is_seen() -> None:
    counted, found = mutated_functions.differences(7, PLANTED)
    assert counted["functions"] == 2
    assert counted["rows"] >= 40 * 64
    assert len(found) == 1
    assert found[0].startswith("differs, row 0 of [")


def test_a_crash_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    _, found = mutated_functions.rounds(5, 1)
    assert found == ["seed 5: the process ended with 1: "]
