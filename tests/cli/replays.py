"""Functions whose odd rows fail until a file exists, and short words for runs of them and for replays."""

from pathlib import Path
from typing import Any

from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.connectors.source import FileSource
from arroyo_udf_plugin.engine.file_run import Call, Summary, run
from arroyo_udf_plugin.engine.file_run.replay import Replayed, note_of_run, replay

SOURCE = '''
import asyncio
import pathlib
from arroyo_udf_plugin import udf

def mended(path: str) -> bool:
    return pathlib.Path(path).exists()

@udf
def half(mend: str, x: int) -> int:
    """Odd numbers have a half once the file `mend` exists, but 7 never has."""
    if x % 2 and (x == 7 or not mended(mend)):
        raise ValueError(f"{x} is odd")
    return x // 2

@udf
async def half_later(mend: str, x: int) -> int:
    if x % 2 and (x == 7 or not mended(mend)):
        raise ValueError(f"{x} is odd")
    return x // 2

@udf(ordered=False, allowed_in_flight=64)
async def half_as_it_comes(mend: str, x: int) -> int:
    for _ in range(x % 5):
        await asyncio.sleep(0)
    if x % 2 and not mended(mend):
        raise ValueError(f"{x} is odd")
    return x // 2

@udf
def tenfold(half: int) -> int:
    return half * 10
'''


def csv(path: Path, mend: Path, *numbers: object) -> Path:
    path.write_text("id,mend,x\n" + "".join(f"{i:03},{mend},{x}\n" for i, x in enumerate(numbers, 1)))
    return path


def failing(calls: list[Call], inputs: list[Path], target: Path, dead: Path, **how: Any) -> Summary:
    return run(calls, inputs, target, on_error="dead_letter", dead_letter=dead, **how)


def again(calls: list[Call], dead: Path, target: Path) -> Replayed:
    return replay(dead, target, calls, note_of_run(target))


def rows(path: Path, format: str | None = None) -> list[dict[str, Any]]:
    with FileSource([path], Reading(format=format)) as source:
        return [row for batch in source for row in batch.batch.to_pylist()]
