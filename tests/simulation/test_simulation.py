"""Engines that fail at every step, over simulated disks: nothing is lost, and nothing comes twice (O3, O4).

SCHEDULES: random ones for each scenario. With it, every step of a scenario has its crashes, and not only some of each
line (make simulate).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios import SCENARIOS, of_kind
from windowed import PHASES

from arroyo_udf_plugin.testing import Report, Simulation
from arroyo_udf_plugin.testing.world import LOSSES, Loss

pytestmark = [pytest.mark.once, pytest.mark.timeout(7200)]

SCHEDULES = int(os.environ.get("SCHEDULES", "0"))
MOST = None if SCHEDULES else 1
LOST: tuple[Loss, ...] = LOSSES if SCHEDULES else ("torn",)
ONE_SLICE = ("windows", "windows and more")  # with several, other rows are late
RESUMED = [kind for kind in SCENARIOS if kind != "one file"]


def kinds(*quick: str) -> list[str]:
    """Of scenarios with checkpoints: some; with SCHEDULES, all."""
    return RESUMED if SCHEDULES else list(quick)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    made = Report()
    yield made
    if SCHEDULES:
        print(f"\n{made.text()}")


def simulation(kind: str, folder: Path, report: Report, width: int = 1) -> Simulation:
    return Simulation(of_kind(kind, folder), report, width, MOST)


@pytest.mark.parametrize(
    "kind",
    [
        "one file",
        *kinds(
            "parts of parquet",
            "parts that wait",
            "sqlite",
            "objects",
            "watched",
            "calls",
            "calls and windows",
            "windows and more",
            "kept windows",
        ),
    ],
)
def test_crashes_at_every_step(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).stop_everywhere(LOST)


@pytest.mark.parametrize("kind", [kind for kind in kinds("parts of csv", "join") if kind not in ONE_SLICE])
def test_crashes_of_two_slices(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report, width=2).stop_everywhere(LOST)


@pytest.mark.parametrize("kind", kinds("parts of csv", "parts that wait", "objects", "calls", "kept windows"))
def test_each_step_fails_once(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).fail_everywhere()


@pytest.mark.parametrize("kind", ["late rows", "late rows of a join"])
def test_late_rows_are_late_in_any_slice(kind: str, folder: Path, report: Report) -> None:
    """An engine of two slices is stopped after each phase of the input, and in the last one loses power, too."""
    simulation(kind, folder, report, width=2).lose_at_end(len(PHASES) - 1, "torn")


@pytest.mark.parametrize("kind", kinds("parts of csv", "objects that wait", "sqlite", "objects", "kept windows"))
def test_an_engine_sleeps_while_another_one_goes_on(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).two_engines()


@pytest.mark.parametrize("kind", kinds("parts of csv", "sqlite", "objects"))
def test_damaged_checkpoints_are_refused_or_do_no_harm(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).damage()


@pytest.mark.parametrize("kind", kinds("parts of csv", "sqlite", "objects"))
def test_older_checkpoints_are_refused_however_often(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).older()


@pytest.mark.parametrize(
    "kind", kinds("parts of csv", "parts that wait", "sqlite by key", "objects", "windows", "kept windows")
)
def test_an_older_checkpoint_is_restored(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).restore(LOST)


@pytest.mark.parametrize("kind", kinds("parts of csv", "parts that wait", "sqlite"))
def test_an_older_checkpoint_is_restored_while_an_engine_sleeps(kind: str, folder: Path, report: Report) -> None:
    simulation(kind, folder, report).restore_beside()


@pytest.mark.parametrize("kind", kinds("parts of csv", "sqlite", "objects", "calls and windows", "replayed"))
def test_several_crashes(kind: str, folder: Path, report: Report) -> None:
    for seed in range(SCHEDULES or 1):
        simulation(kind, folder, report).random(seed, (1,) if kind in ONE_SLICE else (1, 2, 3))
