"""Every part of a cluster is killed or suspended at random, while users change their wishes (see `fault_world.py`).

SEEDS=3-12 runs those seeds, STEPS=100 so many steps with each.
"""

import os
from pathlib import Path

import pytest
from fault_world import World

pytestmark = pytest.mark.cluster

STEPS = int(os.environ.get("STEPS", "20"))
_FIRST, _, _LAST = os.environ.get("SEEDS", "1-2").partition("-")


@pytest.mark.parametrize("seed", range(int(_FIRST), int(_LAST or _FIRST) + 1))
def test_jobs_survive_faults_of_every_part(tmp_path: Path, seed: int) -> None:
    with World(tmp_path, seed) as world:
        for _ in range(STEPS):
            world.step()
        world.end()
