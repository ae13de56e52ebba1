"""The Python host over plugins that break the contract in random ways. broken_plugins.py can do so for longer."""

import broken_plugins
import pytest

pytestmark = pytest.mark.once

SEEDS = 1500  # some ten seconds


def test_the_host_survives_every_case_that_it_once_did_not() -> None:
    assert broken_plugins.failures(broken_plugins.corpus()) == []


@pytest.mark.parametrize("first", range(0, SEEDS, 500))
def test_the_host_survives_broken_plugins(first: int) -> None:
    cases = [broken_plugins.made(seed) for seed in range(first, first + 500)]
    assert broken_plugins.failures(cases) == []


@pytest.mark.parametrize(
    ("case", "kind", "text"),
    [
        (("do same", "stream", [True]), "returned", "[0, 0, 0, 3, 4, 5]"),
        (("do more", "stream", [False]), "returned", "[0, 1, 2, 3, 4, 5, 6]"),
        (("do same", "stream", [True]), "ValueError", "hostile: something"),
        (("do same", "stream", [True]), "InvalidState", "hostile: stopped"),
        (("do fail", "outcomes", []), "returned", "[{'value': 7, 'outcome': 1, 'error': 'no'}] * 3"),
        (("do swallow", "run", ["next", "a"]), "exit 0", "0 rows written of 0 read"),
        (("do swallow", "run", ["next", "a"]), "exit 1", "Traceback (most recent call last)"),
        (("status run 5", "add", [False]), "returned", "[11, 22, 34]"),
    ],
)
def test_what_must_not_happen_is_seen(case: broken_plugins.Case, kind: str, text: str) -> None:
    assert broken_plugins.complaint(case, kind, text)


def test_a_crash_is_seen() -> None:
    """The cases before and after it are judged all the same."""
    crash = ("do crash", "listed", [])
    (found,) = broken_plugins.failures([("", "add", [False]), crash, ("", "add", [True])])
    assert '"do crash"' in found
    assert "ended with -11" in found
