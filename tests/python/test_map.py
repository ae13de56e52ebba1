"""What `map` and `amap` do when something is wrong around them: no row is lost, and none is thrown away."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin import InvalidArgument, InvalidState, Runtime, UserCodeError, load

SOURCE = """
import asyncio
import threading
from typing import Annotated

import pyarrow as pa
from arroyo_udf_plugin import udf

gate = threading.Event()

class Unclosed:
    async def close(self) -> None:
        raise OSError("cannot close")

@udf
async def unclosed(context: Unclosed, x: int) -> int:
    return x

@udf(ordered=False)
async def waits(x: Annotated[int, pa.int8()]) -> int:
    '''0 waits for `opens`.'''
    if x == 0:
        await asyncio.to_thread(gate.wait)
    return x

@udf(native=False)
def opens(x: int) -> int:
    gate.set()
    return x

@udf(native=False)
def closes(x: int) -> int:
    gate.clear()
    return x
"""
REFUSED = 300  # by `waits`


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="mapped")).functions


@pytest.fixture
def functions(plugin: Any) -> Iterator[Any]:
    """With a closed gate."""
    plugin["closes"]([0])
    yield plugin
    plugin["opens"]([0])


def test_amap_yields_all_rows_before_a_close_that_fails(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop fails while results still wait for their drain."""
    seen: list[int] = []

    async def main() -> None:
        answered, stopped = asyncio.Event(), asyncio.Event()
        stop = Runtime.stop_async

        async def noted(*arguments: Any) -> None:
            try:
                await stop(*arguments)
            finally:
                stopped.set()

        async def batches() -> Any:
            yield [1, 2]
            await answered.wait()
            yield [3, 4]

        monkeypatch.setattr(Runtime, "stop_async", noted)
        async with await functions["unclosed"].start_async() as runtime:
            async for _, results in runtime.amap(batches()):
                seen.extend(results["value"].to_pylist())
                if 2 in seen:
                    answered.set()
                    await asyncio.wait_for(stopped.wait(), 60)

    with pytest.raises(UserCodeError, match="cannot close"):
        asyncio.run(main())
    assert seen == [1, 2, 3, 4]


def test_map_does_not_throw_away_rows_that_were_sent_before(functions: Any) -> None:
    """Row 0 ends after all rows of `map`."""
    with functions["waits"].start() as runtime:
        runtime.send(0, [0])
        answers = runtime.map([[1]], first_id=1)
        assert next(answers).results["id"].to_pylist() == [1]
        functions["opens"]([0])
        with pytest.raises(InvalidState, match="row 0 comes out, which was not sent from here; first drain"):
            next(answers)


def test_amap_does_not_throw_away_rows_that_were_sent_before(functions: Any) -> None:
    seen: list[int] = []

    async def main() -> None:
        async with await functions["waits"].start_async() as runtime:
            runtime.send(0, [0])
            async for _, results in runtime.amap([[1]], first_id=1):
                seen.extend(results["id"].to_pylist())
                functions["opens"]([0])

    with pytest.raises(InvalidState, match="row 0 comes out, which was not sent from here; first drain"):
        asyncio.run(main())
    assert seen == [1]


def test_a_row_that_map_has_not_sent_is_told_also_if_map_has_sent_none(functions: Any) -> None:
    """It was an IndexError."""

    async def main() -> None:
        async with await functions["waits"].start_async() as runtime:
            runtime.send(0, [5])
            runtime.wait()
            async for _ in runtime.amap([[REFUSED]], first_id=1):
                pass

    said = "row 0 comes out, which was not sent from here"
    with functions["waits"].start() as runtime:
        runtime.send(0, [5])
        runtime.wait()
        with pytest.raises(InvalidState, match=said):
            list(runtime.map([[REFUSED]], first_id=1))
        runtime.stop("cancel")
    with pytest.raises(InvalidState, match=said):
        asyncio.run(main())


@pytest.mark.parametrize("first_id", [-1, 2**64 - 1])
def test_ids_that_there_are_not_are_refused_also_for_rows_that_are_not_called(functions: Any, first_id: int) -> None:
    """It was an OverflowError."""

    async def main() -> None:
        async with await functions["waits"].start_async() as runtime:
            async for _ in runtime.amap([[REFUSED, REFUSED]], first_id=first_id):
                pass

    said = rf"row ids are from 0 to 2\*\*64 - 1, not {first_id} to {first_id + 1}"
    with functions["waits"].start() as runtime, pytest.raises(InvalidArgument, match=said):
        list(runtime.map([[REFUSED, REFUSED]], first_id=first_id))
    with pytest.raises(InvalidArgument, match=said):
        asyncio.run(main())


def test_amap_answers_refused_rows_before_it_reads_on(functions: Any) -> None:
    """Else a long input without a row to call would fill the memory."""
    n_batches = 50
    ahead: list[int] = []

    async def main() -> None:
        read = answered = 0

        def batches() -> Iterator[list[int]]:
            nonlocal read
            for _ in range(n_batches):
                read += 1
                yield [REFUSED, REFUSED]

        async with await functions["waits"].start_async() as runtime:
            async for rows, results in runtime.amap(batches()):
                assert results["outcome"].to_pylist() == [1] * len(rows)
                answered += len(rows)
                ahead.append(read - answered // 2)
        assert answered == 2 * n_batches

    asyncio.run(main())
    assert max(ahead) <= 1
