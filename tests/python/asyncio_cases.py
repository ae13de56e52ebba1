"""The cases that test_asyncio.py runs twice: in a plain Task, and as calls of a plugin. Each case returns a text that
depends only on how asyncio behaves. (The subjects are those of CPython's own test_asyncio.)"""

import asyncio
import contextlib
import decimal
import gc
from collections.abc import AsyncIterator
from contextvars import ContextVar, copy_context
from typing import Any

from arroyo_udf_plugin import udf

variable: ContextVar[int] = ContextVar("variable", default=0)


def this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def timeout_expires() -> str:
    try:
        async with asyncio.timeout(0.001) as timeout:
            await asyncio.Event().wait()
    except TimeoutError as error:
        return f"{timeout.expired()} {type(error.__cause__).__name__} {this_task().cancelling()}"
    return "not expired"


async def timeout_not_needed() -> str:
    async with asyncio.timeout(60) as timeout:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    return f"{timeout.expired()} {timeout.when() is None}"


async def timeout_of_the_inner_one() -> str:
    async with asyncio.timeout(60) as outer:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001) as inner:
                await asyncio.Event().wait()
        await asyncio.sleep(0)
    return f"{outer.expired()} {inner.expired()}"


async def timeout_of_the_outer_one() -> str:
    try:
        async with asyncio.timeout(0.001) as outer:
            async with asyncio.timeout(60) as inner:
                await asyncio.Event().wait()
    except TimeoutError:
        return f"{outer.expired()} {inner.expired()}"
    return "not expired"


async def timeout_of_both() -> str:
    try:
        async with asyncio.timeout(0), asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError:
        return str(this_task().cancelling())
    return "not expired"


async def timeout_moved() -> str:
    try:
        async with asyncio.timeout(60) as timeout:
            timeout.reschedule(asyncio.get_running_loop().time())
            await asyncio.Event().wait()
    except TimeoutError:
        return f"expired {timeout.expired()}"
    return "not expired"


async def timeout_around_an_error() -> str:
    async with asyncio.timeout(60):
        raise KeyError("inside")


async def timeout_with_an_outer_cancellation() -> str:
    async def inside() -> None:
        async with asyncio.timeout(60):
            await asyncio.Event().wait()

    task = asyncio.create_task(inside())
    await asyncio.sleep(0)
    task.cancel("why")
    try:
        await task
    except asyncio.CancelledError as error:
        return f"{error.args} {task.cancelled()} {this_task().cancelling()}"
    return "not cancelled"


async def wait_for_times_out() -> str:
    ended = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    try:
        await asyncio.wait_for(slow(), 0.001)
    except TimeoutError:
        return f"{ended} {this_task().cancelling()}"
    return "not timed out"


async def wait_for_returns() -> str:
    return await asyncio.wait_for(asyncio.sleep(0, "value"), 60)


async def group_waits() -> str:
    done = []

    async def child(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(child(number))
    return str(done)


async def group_fails() -> str:
    cancelled = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("child")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            group.create_task(fails())
            await asyncio.Event().wait()
    except* ValueError as errors:
        seen = repr(errors.exceptions)
    return f"{seen} {cancelled} {this_task().cancelling()}"


async def group_error_goes_out() -> str:
    async def fails() -> None:
        raise ValueError("child")

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())
    return "not failed"


async def group_in_group() -> str:
    async def fails() -> None:
        raise OSError(5)

    try:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(asyncio.Event().wait())
            async with asyncio.TaskGroup() as inner:
                inner.create_task(fails())
    except* OSError as errors:
        seen = repr(errors.exceptions)
    return f"{seen} {this_task().cancelling()}"


async def group_in_a_timeout() -> str:
    try:
        async with asyncio.timeout(0.001), asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
    except TimeoutError:
        return str(this_task().cancelling())
    return "not timed out"


async def cancel_swallowed() -> str:
    task = this_task()
    task.cancel()
    task.cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        return f"{task.cancelling()} {task.uncancel()} {task.uncancel()}"
    return "not cancelled"


async def cancel_goes_out() -> str:
    this_task().cancel()
    await asyncio.sleep(0)
    return "not cancelled"


async def cancelled_error_raised() -> str:
    raise asyncio.CancelledError


async def cancel_each_other() -> str:
    tasks: list[asyncio.Task[None]] = []

    async def one(other: int) -> None:
        await asyncio.sleep(0)
        tasks[other].cancel()
        await asyncio.sleep(0)

    tasks += [asyncio.create_task(one(1)), asyncio.create_task(one(0))]
    await asyncio.wait(tasks)
    return str([task.cancelled() for task in tasks])


async def cancel_of_a_child_that_ends() -> str:
    event = asyncio.Event()
    child = asyncio.create_task(event.wait())
    await asyncio.sleep(0)
    event.set()
    child.cancel()
    await asyncio.wait([child])
    return str(child.cancelled())


async def child_cancels_its_parent() -> str:
    parent = this_task()

    async def child() -> None:
        parent.cancel("by the child")

    task = asyncio.create_task(child())
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as error:
        parent.uncancel()
        await task
        return str(error.args)
    return "not cancelled"


async def shield() -> str:
    event = asyncio.Event()
    inner = asyncio.create_task(event.wait())
    try:
        await asyncio.wait_for(asyncio.shield(inner), 0.001)
    except TimeoutError:
        before = inner.done()
        event.set()
        return f"{before} {await inner}"
    return "not timed out"


async def gather_with_errors() -> str:
    async def fails() -> None:
        raise LookupError("one")

    return str(await asyncio.gather(asyncio.sleep(0, 1), fails(), asyncio.sleep(0, 2), return_exceptions=True))


async def current_task() -> str:
    task = this_task()
    await asyncio.sleep(0)
    same = task is asyncio.current_task()
    other = await asyncio.create_task(asyncio.sleep(0, "None"))
    return f"{same} {task in asyncio.all_tasks()} {task.done()} {task.cancelled()} {other}"


async def variables() -> str:
    first = variable.get()
    variable.set(1)
    await asyncio.sleep(0)

    async def child() -> int:
        seen = variable.get()
        variable.set(2)
        return seen

    seen = await asyncio.create_task(child())
    token = variable.set(3)
    in_a_thread = await asyncio.to_thread(variable.get)
    in_a_copy = copy_context().run(variable.get)
    variable.reset(token)
    return f"{first} {seen} {in_a_thread} {in_a_copy} {variable.get()}"


async def variable_in_a_callback() -> str:
    seen = asyncio.get_running_loop().create_future()
    variable.set(4)
    asyncio.get_running_loop().call_soon(lambda: seen.set_result(variable.get()))
    variable.set(5)
    return f"{await seen} {variable.get()}"


async def decimals() -> str:
    before = decimal.getcontext().prec
    with decimal.localcontext() as local:
        local.prec = 5
        await asyncio.sleep(0)
        inside = decimal.Decimal(1) / 3
    decimal.getcontext().prec = 3
    await asyncio.sleep(0)
    return f"{before} {inside} {decimal.Decimal(1) / 3}"


async def generator() -> str:
    closed = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(3):
                variable.set(variable.get() + 1)
                yield number
                await asyncio.sleep(0)
        finally:
            closed.append(variable.get())

    seen = [number async for number in numbers()]
    async for number in (broken := numbers()):
        seen.append(number)
        break
    await broken.aclose()  # type: ignore[attr-defined]
    return f"{seen} {closed}"


async def generator_left_to_the_collector() -> str:
    closed = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.set()

    async for _number in numbers():
        break
    gc.collect()
    await closed.wait()
    return "closed"


async def generator_with_a_throw() -> str:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        except KeyError:
            yield 2

    one = numbers()
    return f"{await anext(one)} {await one.athrow(KeyError)} {await anext(one, 'end')}"  # type: ignore[attr-defined]


async def manager_in_a_timeout() -> str:
    left = []

    @contextlib.asynccontextmanager
    async def entered() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)
            left.append(1)

    try:
        async with asyncio.timeout(0.001), entered():
            await asyncio.Event().wait()
    except TimeoutError:
        return str(left)
    return "not timed out"


async def stop_iteration() -> str:
    raise StopIteration("out of a coroutine")


async def synchronisation() -> str:
    lock, queue, results = asyncio.Lock(), asyncio.Queue[int](1), []

    async def producer() -> None:
        for number in range(4):
            async with lock:
                await queue.put(number)

    task = asyncio.create_task(producer())
    for _ in range(4):
        results.append(await queue.get())
    await task
    barrier = asyncio.Barrier(2)
    places = await asyncio.gather(barrier.wait(), barrier.wait())
    return f"{results} {sorted(places)}"


async def awaits_a_bare_object() -> str:
    class Twice:
        def __await__(self) -> Any:
            yield
            yield
            return "awaited"

    return str(await Twice())


async def awaits_nonsense() -> str:
    class Nonsense:
        def __await__(self) -> Any:
            yield 5

    await Nonsense()
    return "awaited"


CASES = {name: value for name, value in list(globals().items()) if asyncio.iscoroutinefunction(value)}


async def run(program: str, out: list[str]) -> None:
    """Runs a program of letters; some letters run the rest inside a timeout, a group or a Task."""
    for i, letter in enumerate(program):
        more = program[i + 1 :]
        if letter == "z":
            await asyncio.sleep(0)
        elif letter == "s":
            variable.set(len(more) + 1)
        elif letter == "r":
            out.append(str(variable.get()))
        elif letter == "w":
            await asyncio.wait_for(asyncio.sleep(0), 60)
        elif letter == "c":
            this_task().cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                out.append(f"c{this_task().uncancel()}")
        elif letter == "u":
            this_task().cancel()
            await asyncio.sleep(0)
        elif letter == "e":
            raise ValueError(f"e{len(more)}")
        elif letter == "h":
            variable.set(await asyncio.create_task(asyncio.sleep(0, 50)))
        else:
            await around(letter, more, out)
            return


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def around(letter: str, more: str, out: list[str]) -> None:
    if letter == "t":
        async with asyncio.timeout(60):
            await run(more, out)
    elif letter == "T":
        try:
            async with asyncio.timeout(0):
                await run(more, out)
                await turns(3)
            out.append("t")  # the rest has swallowed the cancellation
        except TimeoutError:
            out.append("T")
    elif letter == "g":
        async with asyncio.TaskGroup() as group:
            group.create_task(run(more, out))
    elif letter == "G":
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(run("e", out))
                group.create_task(run(more, out))
                await turns(3)
        except* ValueError as errors:
            out.append(f"G{len(errors.exceptions)}")
    elif letter == "k":
        inner = asyncio.create_task(run(more, out))
        try:
            await asyncio.wait_for(asyncio.shield(inner), 0)
        except TimeoutError:
            out.append("k")
            await inner
    else:
        await asyncio.gather(run(more, out), asyncio.sleep(0))


@udf
async def case(program: str) -> str:
    if not program.startswith("p:"):
        return str(await CASES[program]())
    out: list[str] = []
    await run(program[2:], out)
    return " ".join(out)
