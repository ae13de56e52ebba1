"""Many callers over one runtime: `Runtime.call`, and `Function.call_async`, which shares one."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance

from arroyo_udf_plugin import Function, InvalidArgument, InvalidState, RowError, UserCodeError, load
from arroyo_udf_plugin.host.batches import Drained

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

made = 0

class Counted:
    async def init(self) -> None:
        global made
        await asyncio.sleep(0)
        made += 1

@udf
async def half(context: Counted, x: int, y: str | None) -> str:
    if x == 7:
        raise ValueError("seven")
    await asyncio.sleep(0)
    return f"{x / 2} {y}"

@udf
async def waits(x: int) -> int:
    if x:
        await asyncio.get_running_loop().create_future()
    return x

@udf
async def total(items: list[int]) -> int:
    return sum(items)

@udf(native=False)
def contexts(x: int) -> int:
    return made

class Broken:
    async def init(self) -> None:
        raise OSError("no network")

@udf
async def broken(context: Broken, x: int) -> int:
    return x
"""


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> dict[str, Function]:
    return dict(load(build_plugin(SOURCE, name="called")).functions)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


@pytest.mark.parametrize("ordered", [False, True])
def test_many_callers_share_a_runtime(functions: dict[str, Function], ordered: bool) -> None:
    async def main() -> None:
        async with await functions["half"].start_async(ordered=ordered, max_rows=100) as runtime:
            calls = [runtime.call(x, y=None if x % 3 else "y") for x in range(8, 1000)]
            found = await asyncio.gather(*calls)
            assert found == [f"{x / 2} {None if x % 3 else 'y'}" for x in range(8, 1000)]
            assert await runtime.call(1, "z") == "0.5 z"
            assert await runtime.stop_async()
            assert runtime.statistics().values == 993

    run(main())


def test_a_row_that_fails_touches_no_other(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["half"].start_async(ordered=False) as runtime:
            calls = [runtime.call(x, "y") for x in (1, 7, "text", 2**63, 3)]
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert [found[0], found[4]] == ["0.5 y", "1.5 y"]
            seven, text, large = found[1:4]
            assert isinstance(seven, RowError)
            ((id, why),) = seven.errors.items()
            assert str(seven).startswith(f"called.half, row {id}: ValueError: seven")
            assert why.startswith("ValueError: seven")
            assert isinstance(text, InvalidArgument)
            assert isinstance(large, RowError | InvalidArgument)
            with pytest.raises(InvalidArgument, match="takes 2 arguments"):
                await runtime.call(1)
            with pytest.raises(InvalidArgument, match="has no argument 'z'"):
                await runtime.call(1, z=2)

    run(main())


def test_a_result_that_is_no_value_of_python_is_an_error_of_its_row(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with await functions["total"].start_async() as runtime:
            drain = runtime._drain

            def days() -> Drained | None:
                if (drained := drain()) is None:
                    return None
                results = drained.results
                at = results.schema.get_field_index("value")
                seconds = results.column(at).cast(pa.timestamp("s"))
                return drained._replace(results=results.set_column(at, "value", seconds))

            monkeypatch.setattr(runtime, "_drain", days)
            calls = (runtime.call([x]) for x in (0, 10**15, 1))
            found: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
            first, second, third = found
            assert [first.second, third.second] == [0, 1]
            assert isinstance(second, RowError)
            assert str(second).startswith("called.total, row 1: its result, timestamp[s], is no value of Python: ")

    run(main())


def test_results_that_cannot_be_taken_fail_their_own_request(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async(ordered=False) as runtime:
            held = asyncio.create_task(runtime.call(1))
            await until(lambda: runtime.statistics().running == 1)
            calls = runtime._calls
            assert calls is not None

            def refuse(results: pa.RecordBatch) -> None:
                raise ValueError("cannot be taken")

            request = await calls._send(calls._arguments.of_rows([[0]]), refuse)
            with pytest.raises(ValueError, match="cannot be taken"):
                await request.ended
            assert await runtime.call(0) == 0
            assert not held.done()
            held.cancel()

    run(main())


def test_a_row_that_is_cancelled_while_it_waits_for_room_is_not_called(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async(ordered=False, max_rows=1) as runtime:
            held = asyncio.create_task(runtime.call(1))
            await until(lambda: runtime.statistics().running == 1)
            first, second, third = (asyncio.create_task(runtime.call(x)) for x in (2, True, 0))  # sent one by one
            for _ in range(10):
                await asyncio.sleep(0)
            first.cancel()
            second.cancel()
            await asyncio.sleep(0)
            held.cancel()
            assert await third == 0
            assert runtime.statistics().running == 0

    run(main())


def test_arguments_that_are_lists(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["total"].start_async() as runtime:
            assert await asyncio.gather(*(runtime.call(list(range(n))) for n in range(5))) == [0, 0, 1, 3, 6]

    run(main())


def test_a_caller_that_is_cancelled_cancels_its_row(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async(ordered=False) as runtime:
            tasks = [asyncio.create_task(runtime.call(x)) for x in (1, 0, 2)]
            assert await tasks[1] == 0
            await until(lambda: runtime.statistics().running == 2)
            tasks[0].cancel()
            await until(lambda: runtime.statistics().running == 1)
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]
            assert await runtime.call(0) == 0
            assert not tasks[2].done()
            await runtime.stop_async("cancel")
            with pytest.raises(RowError, match=r"called\.waits, row 2: ") as caught:
                await tasks[2]
            assert list(caught.value.errors) == [2]

    run(main())


def test_a_row_that_times_out(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async(ordered=False, timeout=1000, max_attempts=1) as runtime:
            task = asyncio.create_task(runtime.call(1))

            def is_late() -> bool:
                advance(1000)  # the clock of an attempt begins with its call, which may be later in a worker process
                return task.done()

            await until(is_late)
            with pytest.raises(RowError, match="time"):
                await task

    run(main())


def test_a_runtime_serves_callers_or_sends(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async() as runtime:
            assert await runtime.call(0) == 0
            for use in (lambda: runtime.send(0, pa.array([1])), runtime.drain_results, runtime.wait):
                with pytest.raises(InvalidState, match="this runtime answers `call`"):
                    use()
            with pytest.raises(InvalidState, match="this runtime answers `call`"):
                next(runtime.map([pa.array([1])]))

            def in_another_loop() -> None:
                with pytest.raises(InvalidState, match="are in one event loop"):
                    asyncio.run(runtime.call(0))

            await asyncio.to_thread(in_another_loop)
        async with await functions["waits"].start_async() as runtime:
            runtime.send(0, pa.array([0]))
            with pytest.raises(InvalidState, match="start another one for `call`"):
                await runtime.call(0)
            await runtime.stop_async("cancel")

    run(main())


def test_callers_of_a_runtime_that_is_released_get_an_error(functions: dict[str, Function]) -> None:
    async def main() -> None:
        async with await functions["waits"].start_async() as runtime:
            task = asyncio.create_task(runtime.call(1))
            await until(lambda: runtime.statistics().running == 1)
        with pytest.raises((InvalidState, RowError)):
            await task
        with pytest.raises(InvalidState, match="was released"):
            await runtime.call(1)

    run(main())


class Untouched(ThreadPoolExecutor):
    def submit(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the application's executor is not ours")


def test_awaited_calls_share_a_context_and_take_no_threads_of_the_application(functions: dict[str, Function]) -> None:
    def contexts() -> int:
        return functions["contexts"](pa.array([0]))[0].as_py()  # type: ignore[no-any-return]

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(Untouched())
        before, half = contexts(), functions["half"]
        found = await asyncio.gather(*(half.call_async([x, x], ["a", None]) for x in range(8, 48)))
        assert [one.to_pylist() for one in found] == [[f"{x / 2} a", f"{x / 2} None"] for x in range(8, 48)]
        assert contexts() == before + 1
        chunked = pa.chunked_array([[1, 2], [], [3]])
        assert (await half.call_async(chunked, "b")).to_pylist() == ["0.5 b", "1.0 b", "1.5 b"]
        assert contexts() == before + 2, "one for those that are under way"
        with pytest.raises(RowError) as caught:
            await half.call_async([1, 7, 2, None, "x"][:4], "c")
        assert {row: text.splitlines()[0] for row, text in caught.value.errors.items()} == {1: "ValueError: seven"}

    run(main())


def test_errors_of_awaited_calls_are_their_own(functions: dict[str, Function]) -> None:
    async def main() -> None:
        half = functions["half"]
        answers: tuple[Any, ...] = await asyncio.gather(
            half.call_async([1, 2], "g"), half.call_async([2**62, 7], "b"), return_exceptions=True
        )
        good, bad = answers
        assert isinstance(good, pa.Array)
        assert isinstance(bad, RowError)
        assert {row: text.splitlines()[0] for row, text in bad.errors.items()} == {1: "ValueError: seven"}
        broken = functions["broken"]
        for failed in await asyncio.gather(*(broken.call_async([1]) for _ in range(3)), return_exceptions=True):
            assert isinstance(failed, UserCodeError)

    run(main())


def test_an_awaited_call_can_be_cancelled(functions: dict[str, Function]) -> None:
    async def main() -> None:
        waits = functions["waits"]
        first, second = (asyncio.create_task(waits.call_async([1, x])) for x in (2, 3))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await waits.call_async([0, 0])).to_pylist() == [0, 0]
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second

    run(main())
