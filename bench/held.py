"""A program: measures the memory of rows in flight without a plugin: a Task, its coroutine and the future it awaits.

Prints {"name": "held", "value": resident bytes per row}, for 100,000 rows at their first `await`.
"""

import asyncio
import json
import resource

import references

ROWS = 100_000


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


async def main() -> None:
    before = resident()
    tasks = [asyncio.create_task(references.parked(row)) for row in range(ROWS)]
    await asyncio.sleep(0)
    print(json.dumps({"name": "held", "value": (resident() - before) / ROWS}))
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)


if __name__ == "__main__":
    asyncio.run(main())
