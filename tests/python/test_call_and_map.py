"""Async functions called like sync ones, awaited, and over streams of batches (`map`, `amap`)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import InvalidArgument, InvalidState, RowError, UserCodeError, WouldBlock, load

SOURCE = """
import asyncio
from typing import Annotated

import pyarrow as pa
from arroyo_udf_plugin import udf

@udf(native=False)
def minus(a: int, b: int | None) -> int:
    return a - (b or 0)

@udf
async def half(x: Annotated[int, pa.int8()]) -> float:
    if x == 7:
        raise ValueError("seven")
    await asyncio.sleep(0)
    return x / 2

class Unclosed:
    async def close(self) -> None:
        raise OSError("cannot close")

@udf
async def unclosed(context: Unclosed, x: int) -> int:
    return x

@udf(ordered=False)
async def backwards(x: int) -> int:
    await asyncio.sleep(0.01 if x % 2 else 0)
    return -x
"""


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="door")).functions


def test_an_async_function_can_be_called(functions: Any) -> None:
    half, backwards = functions["half"], functions["backwards"]
    assert half([1, 2, None]).to_pylist() == [0.5, 1.0, None]
    assert half(pa.chunked_array([[1, 2], [], [3]])).equals(pa.chunked_array([[0.5, 1.0], [], [1.5]]))
    assert half(x=pa.table({"x": []})["x"].cast(pa.int8())).to_pylist() == []
    assert backwards(range(50)).to_pylist() == [-x for x in range(50)], "in the order of the rows"
    outcomes = half.outcomes([1, 7, 300])
    assert outcomes.field("outcome").to_pylist() == [0, 1, 1]
    assert outcomes.field("attempts").to_pylist() == [1, 1, 0]
    with pytest.raises(RowError) as caught:
        half([7, 2, 300])
    assert {row: text.splitlines()[0] for row, text in caught.value.errors.items()} == {
        0: "ValueError: seven",
        2: "argument 'x': 300 does not fit int8",
    }


class TooLarge:
    """Columns that do not become one array each, such as more than 2 GiB of text."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches

    def sort_by(self, name: str) -> "TooLarge":
        return self

    def combine_chunks(self) -> "TooLarge":
        return self

    def to_batches(self) -> list[pa.RecordBatch]:
        return [batch.slice(row, 1) for batch in self.batches for row in range(batch.num_rows)]


def test_a_call_loses_no_rows_if_its_results_are_too_large(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    patched = SimpleNamespace(**vars(pa) | {"Table": SimpleNamespace(from_batches=TooLarge)})
    monkeypatch.setattr("arroyo_udf_plugin.host.function.pa", patched)
    with pytest.raises(
        InvalidArgument, match=r"door\.half: the results are too large for one array; use start and map"
    ):
        functions["half"]([1, 2])


def test_an_async_function_can_be_awaited(functions: Any) -> None:
    async def main() -> tuple[pa.Array, pa.Array]:
        return await functions["half"].call_async([1, 2]), await functions["minus"].call_async([1], b=2)

    halves, difference = asyncio.run(main())
    assert (halves.to_pylist(), difference.to_pylist()) == ([0.5, 1.0], [-1])


def pieces(answers: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for rows, results in answers:
        assert len(rows) == len(results)
        yield rows.to_pylist(), results.to_pylist()


def test_map_yields_results_beside_their_rows(functions: Any) -> None:
    table = pa.table({"key": [f"k{i}" for i in range(40_000)], "x": [i % 100 for i in range(40_000)]})
    seen = 0
    with functions["half"].start(max_rows=5000, allowed_in_flight=1000) as runtime:
        for rows, results in runtime.map(table):
            assert rows.column_names == ["key", "x"]
            assert results["id"].to_pylist() == list(range(seen, seen + len(rows)))
            for row, result in zip(rows.to_pylist(), results.to_pylist(), strict=True):
                assert row["key"] == f"k{result['id']}"
                assert result["value"] == (None if row["x"] == 7 else row["x"] / 2)
            seen += len(rows)
        with pytest.raises(InvalidState, match="stop"):
            runtime.send(10**6, [1])
    assert seen == 40_000


def test_outcomes_of_rows_that_fail_and_of_rows_that_do_not_fit_have_one_type(functions: Any) -> None:
    failed, refused, both = (functions["half"].outcomes(rows) for rows in ([7], [300], [7, 300]))
    assert failed.type == refused.type == both.type


def test_batches_of_map_go_into_one_table(functions: Any) -> None:
    """Those with rows that were called, and those with rows that did not fit."""
    with functions["half"].start() as runtime:
        table = pa.Table.from_batches([results for _, results in runtime.map([[1], [300], [2, 300]])])
    assert table["outcome"].to_pylist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["half", "backwards"])
def test_map_answers_rows_that_do_not_fit_in_their_place(functions: Any, name: str) -> None:
    wide = 300 if name == "half" else 2**63
    batches = [[1, wide, 2], [wide], [wide, wide], [], [3, wide]]
    with functions[name].start() as runtime:
        answers = list(pieces(runtime.map([(pa.array(batch, pa.uint64()),) for batch in batches], first_id=5)))
    results = [result for _, results in answers for result in results]
    ids = [result["id"] for result in results]
    assert (ids if name == "half" else sorted(ids)) == list(range(5, 13))
    assert {result["id"] for result in results if result["outcome"] == 0} == {5, 7, 11}
    error = f"door.{name}, row 8: argument 'x': {wide} does not fit {functions[name].arguments.types[0]}"
    assert next(result for result in results if result["id"] == 8)["error"] == error


def test_map_chooses_arguments_and_can_leave_the_runtime_running(functions: Any) -> None:
    batch = pa.record_batch({"n": [1, 2], "x": ["other", "type"]})
    with functions["half"].start() as runtime:
        answers = list(pieces(runtime.map([batch], arguments=lambda rows: [rows["n"]], stop=False)))
        assert [row for rows, _ in answers for row in rows] == batch.to_pylist()
        answers += pieces(runtime.map([[4]], first_id=2))
        assert [result["value"] for _, results in answers for result in results] == [0.5, 1.0, 2.0]
        assert repr(runtime) == "<stopped runtime of door.half>"
    assert repr(runtime) == "<released runtime of door.half>"


def test_map_refuses_rows_that_it_has_not_sent(functions: Any) -> None:
    with functions["half"].start() as runtime:
        runtime.send(0, [1])
        runtime.wait()
        with pytest.raises(InvalidState, match="row 0 comes out, which was not sent from here"):
            list(runtime.map([[4]], first_id=1))
        runtime.stop("cancel")


def test_amap_answers_while_it_waits_for_the_next_batch(functions: Any) -> None:
    """Also a batch of which no row is called."""

    async def main() -> list[Any]:
        answered, seen = asyncio.Event(), []

        async def batches() -> Any:
            for batch in ([1, 2], [300], [3, 300]):
                answered.clear()
                yield pa.array(batch)
                await asyncio.wait_for(answered.wait(), 60)

        async with await functions["half"].start_async() as runtime:
            waiting = {0: 2, 2: 1, 3: 2}
            async for rows, results in runtime.amap(batches()):
                seen += results.to_pylist()
                assert len(rows) == len(results)
                if len(seen) in (2, 3, 5):
                    answered.set()
            assert waiting
        return seen

    seen = asyncio.run(main())
    assert [result["outcome"] for result in seen] == [0, 0, 1, 0, 1]


def test_a_close_that_fails_is_raised_after_the_last_row(functions: Any) -> None:
    async def main(seen: list[int]) -> None:
        async with await functions["unclosed"].start_async() as runtime:
            async for _, results in runtime.amap([[1, 2], [3]]):
                seen += results["value"].to_pylist()

    seen: list[int] = []
    with functions["unclosed"].start() as runtime:
        answers = runtime.map([[1, 2], [3]])
        while len(seen) < 3:
            seen += next(answers).results["value"].to_pylist()
        with pytest.raises(UserCodeError, match="cannot close"):
            next(answers)
    with pytest.raises(UserCodeError, match="cannot close"):
        asyncio.run(main(seen))
    assert seen == [1, 2, 3, 1, 2, 3]


def test_amap_can_leave_the_runtime_running(functions: Any) -> None:
    async def main() -> list[float]:
        values: list[float] = []
        async with await functions["half"].start_async() as runtime:
            for first in (0, 2):
                async for _, results in runtime.amap([[first, 4]], first_id=first, stop=first != 0):
                    values += results["value"].to_pylist()
        return values

    assert asyncio.run(main()) == [0.0, 2.0, 1.0, 2.0]


def test_amap_raises_what_its_input_raises(functions: Any) -> None:
    async def main() -> None:
        async def batches() -> Any:
            yield [1]
            raise OSError("no more")

        async with await functions["half"].start_async() as runtime:
            async for _ in runtime.amap(batches()):
                pass

    with pytest.raises(OSError, match="no more"):
        asyncio.run(main())


def test_results_until_the_stop(functions: Any) -> None:
    async def main() -> list[float]:
        async with await functions["half"].start_async(max_rows=10) as runtime:

            async def send() -> None:
                for first in range(0, 40, 4):
                    await runtime.send_async(first, [first] * 4, timeout=60)
                await runtime.stop_async()

            sending = asyncio.create_task(send())
            values = [value async for batch in runtime.results() for value in batch["value"].to_pylist()]
            await sending
            return values

    assert asyncio.run(main()) == [first / 2 for first in range(0, 40, 4) for _ in range(4)]


def test_a_send_gives_up_after_its_timeout(functions: Any) -> None:
    with functions["half"].start(max_rows=1) as runtime:
        runtime.send(0, [1], timeout=60)
        with pytest.raises(WouldBlock, match=r"has no room after 0\.01 s; drain"):
            runtime.send(1, pa.chunked_array([[1], [2]]), timeout=0.01)
        with pytest.raises(WouldBlock, match="after 0 s"):
            asyncio.run(runtime.send_async(1, [1], timeout=0))
        runtime.stop()
        assert runtime.drain_results()["id"].to_pylist() == [0]


def test_a_second_stop_keeps_the_mark_that_nobody_wants_the_rows(functions: Any) -> None:
    with functions["backwards"].start() as runtime:
        runtime.send(0, [1, 2, 3])
        runtime.stop("cancel")
        runtime.stop()
