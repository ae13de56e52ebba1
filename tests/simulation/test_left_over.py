"""An engine that another one has shut out leaves nothing behind (O4): the next start may never come."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from scenarios import of_kind

from arroyo_udf_plugin.errors import Fenced, InvalidArgument
from arroyo_udf_plugin.testing import Simulation, Step, World

pytestmark = pytest.mark.once


@pytest.mark.parametrize("kind", ["parts of csv", "sqlite", "objects"])
def test_of_rows_that_nobody_will_show(kind: str, folder: Path) -> None:
    scenario = of_kind(kind, folder)
    phase, steps = next(iter(Simulation(scenario, most=1).steps()))

    def suspended_at(step: Step) -> World:
        world = World(scenario)
        world.phase(phase)
        with contextlib.suppress(Fenced, InvalidArgument):
            world.run(world.disk.process(stop_at=step, hold=lambda: world.run() and None))
        world.check(phase)
        return world

    assert steps
    for step in steps:
        if step.operation != "commit":  # a transaction that is open would hold up the other engine
            left = [name for name in suspended_at(step).files() if "/.staged-" in name or "/rows/" in name]
            assert not left, step
