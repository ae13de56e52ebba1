"""Work in a thread aside."""

import asyncio

import pytest

from arroyo_udf_plugin.host.aside import aside


def test_a_stop_iteration_of_the_work_reaches_its_caller() -> None:
    def work() -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        asyncio.run(asyncio.wait_for(aside(work, "work"), 60))
    assert isinstance(caught.value.__cause__, StopIteration)
