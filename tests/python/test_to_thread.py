"""Work in a thread of its own."""

import asyncio

import pytest

from arroyo_udf_plugin.host.to_thread import to_thread


def test_a_stop_iteration_of_the_work_reaches_its_caller() -> None:
    def work() -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        asyncio.run(asyncio.wait_for(to_thread(work, "work"), 60))
    assert isinstance(caught.value.__cause__, StopIteration)
