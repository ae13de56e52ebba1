"""Functions whose calls are in flight at a checkpoint (O3, O4)."""

from __future__ import annotations

from pathlib import Path

import inflight
import pytest
from scenarios import of_kind

from arroyo_udf_plugin.testing import World

pytestmark = pytest.mark.once


def test_rows_that_were_in_flight_are_called_again(folder: Path) -> None:
    """Else the schedules of `calls` would show nothing. The third epoch has read two of three files."""
    scenario = of_kind("calls", folder)
    for number in range(100):
        world = World(scenario)
        world.phase(0)
        world.run(world.disk.process(stop_at=number))
        if (folder / "state" / "epochs" / "0000000003.json").exists():
            break
    inflight.keys.clear()
    world.run()
    waited = {("held", n) for n in (5, 6)}  # of the second file, for 7
    assert inflight.keys.keys() >= waited | {("held", 7)}
    world.check(0)
