"""One schedule: a folder that is simulated, and the engines that run in it one after another.

    world = World(scenario)               empties the folder
    world.phase(0)                        brings the input
    world.run(world.disk.process(stop_at=7))
    world.lose("power")
    world.run()
    world.check(0)                        raises Broken

Guarantees: when `run` returns, the engine's threads have ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from ..engine.connectors.disk import using
from ..engine.execution.progress import Ended, Progress
from ..engine.execution.restoring import Restored, Restoring, checkpoints_in, planned_restore, restore
from ..engine.execution.runner import run
from ..engine.execution.stopping import StopRequest
from ..engine.execution.store import Store, open_store
from ..engine.pipeline.plan import Planned as PlannedPipeline
from ..engine.pipeline.replayed import Choice, replaying
from .disk import ProcessDisk, SimulatedDisk
from .elsewhere import Elsewhere, ObjectsElsewhere
from .scenario import Scenario
from .turns import InTurn, ReadTurns

_Result = TypeVar("_Result")

Loss = Literal["kill", "power", "torn"]
"""What a crash leaves: all that was done; what is durable; this, and something of the rest, perhaps torn."""

LOSSES: tuple[Loss, ...] = ("kill", "power", "torn")
_THREADS = ("arroyo-udf-slice", "arroyo-udf-epoch", "arroyo-udf-store")
_PATIENCE = 60.0  # seconds for a thread of a stopped engine, which has nothing to wait for, and for missing rows


class Broken(AssertionError):
    """A promise that was not kept. The text has the schedule."""


@dataclasses.dataclass(frozen=True)
class KeptFiles:
    """What was there. files: by name, with their times of change. elsewhere: of each `Elsewhere`, by its name."""

    files: dict[str, tuple[bytes, int]]
    elsewhere: dict[str, dict[str, bytes]]


class World:
    """start: what is there at first; None: nothing."""

    def __init__(self, scenario: Scenario, start: KeptFiles | None = None) -> None:
        self.scenario = scenario
        self.history: list[str] = [scenario.name]
        shutil.rmtree(scenario.folder, ignore_errors=True)
        self._elsewhere: list[Elsewhere] = [*map(ObjectsElsewhere, scenario.urls), *scenario.elsewhere]
        for other in self._elsewhere:
            other.clear()
        scenario.folder.mkdir(parents=True)
        if start is not None:
            for name, (data, time) in start.files.items():
                path = scenario.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                os.utime(path, ns=(time, time))
            for other in self._elsewhere:
                for name, data in start.elsewhere[other.name].items():
                    other.put(name, data)
        self.disk = SimulatedDisk(scenario.folder)
        self._phase = self._running = 0

    # ---- What happens ----

    def phase(self, number: int) -> None:
        self.scenario.phases[number].prepare()
        self._phase = number
        self.history.append(f"input {number}")

    def run(self, process: ProcessDisk | None = None, width: int = 1, is_replay: bool | None = None) -> Ended | None:
        """An engine begins, or goes on where the last one has stopped. None: it was stopped at a step, or another one
        has taken over. is_replay: it replays dead letters; None: as its phase does. Raises what it raises."""
        if is_replay is None:
            is_replay = self.scenario.phases[self._phase].is_replay
        self.history.append(f"a replay in {width} slices" if is_replay else f"an engine of {width} slices")
        return self._in(process or self.disk.process(), lambda: self._run(width, is_replay))

    def restore(
        self, epoch: int, process: ProcessDisk | None = None, width: int = 1, doubles: Collection[str] = ()
    ) -> Restored | None:
        """Somebody goes back to a checkpoint. None: stopped at a step. Raises what it raises."""
        self.history.append(f"back to checkpoint {epoch}")

        def restored() -> Restored:
            with self.scenario.opened(width) as planned:
                return restore(planned, self._store(), epoch, doubles=doubles)

        return self._in(process or self.disk.process(), restored)

    def planned_restore(self, epoch: int, width: int = 1) -> Restoring:
        """What becomes of later rows."""
        with using(self.disk.process()), self.scenario.opened(width) as planned:
            return planned_restore(planned, self._store(), epoch)

    def checkpoints(self) -> list[int]:
        """Those to go back to, the oldest first."""
        with using(self.disk.process()):
            return [checkpoint.epoch for checkpoint in checkpoints_in(self._store()) if checkpoint.problem is None]

    def _store(self) -> Store:
        assert self.scenario.place is not None
        return open_store(self.scenario.place)

    def _in(self, process: ProcessDisk, call: Callable[[], _Result]) -> _Result | None:
        before = set(threading.enumerate())
        self._running += 1
        try:
            with using(process):
                return call()
        except BaseException:
            if not process.is_stopped:
                raise
            self.history.append(f"stopped at {process.reached}")
            return None
        finally:
            self._running -= 1
            if not self._running:  # else an engine is held, whose threads wait
                self._join(set(threading.enumerate()) - before)

    def _join(self, threads: Iterable[threading.Thread]) -> None:
        for thread in threads:
            if thread.name.startswith(_THREADS):
                thread.join(_PATIENCE)
                if thread.is_alive():
                    raise self.broken(f"the thread {thread.name} of an engine has not ended")

    def _run(self, width: int, is_replay: bool) -> Ended:
        scenario, stop = self.scenario, StopRequest()
        turns = ReadTurns(is_free=scenario.place is None)

        def hear(progress: Progress) -> None:
            turns.hear(progress)
            if scenario.until is not None and not stop.requests and scenario.until():
                stop.request()

        patience = threading.Timer(_PATIENCE, stop.request)  # else an engine that lacks rows would wait for ever
        if scenario.until is not None:
            patience.start()
        with contextlib.ExitStack() as ending:
            ending.callback(patience.cancel)
            planned = ending.enter_context(scenario.opened(width))
            if is_replay:
                assert isinstance(planned, PlannedPipeline), "a pipeline with dead letters is described"
                stop.timeout = math.inf
                planned, _ = replaying(planned, Choice.of((), again=False), stop.request)
            inputs = [_in_turn(source, turns) for source in planned.inputs]
            return run(
                _with_inputs(planned, inputs),
                checkpoints=None if scenario.place is None else self._store(),
                interval=turns.INTERVAL if scenario.until is None else turns.UNENDING,
                replays=is_replay,
                stop=stop,
                progress=hear,
            ).ended

    def lose(self, what: Loss, seed: int = 0) -> None:
        """After a stop."""
        if what != "kill":
            self.history.append(f"loses {what}, seed {seed}")
            self.disk.lose_power(random.Random(seed) if what == "torn" else None)

    # ---- What there is ----

    def kept(self) -> KeptFiles:
        """A copy of everything."""
        folder = self.scenario.folder
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
        return KeptFiles(files, {other.name: dict(other.contents()) for other in self._elsewhere})

    def has_begun(self) -> bool:
        """Whether there are checkpoints to go on from."""
        place = self.scenario.place
        return place is not None and any(name.endswith(".json") for name in open_store(place).names("epochs/"))

    def files(self) -> dict[str, bytes]:
        """Everything, by name."""
        folder = self.scenario.folder
        contents = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for other in self._elsewhere:
            contents |= {f"{other.name}/{name}": data for name, data in other.contents().items()}
        return contents

    def put_back(self, files: dict[str, bytes], below: str = "") -> None:
        """Makes everything as it was, or what has names that begin so."""
        for name in self.files().keys() - files.keys():
            if name.startswith(below):
                self.change(name, None)
        for name, data in files.items():
            if name.startswith(below):
                self.change(name, data)

    def change(self, name: str, data: bytes | None) -> None:
        """Somebody changes a file, or removes it."""
        for other in self._elsewhere:
            if name.startswith(f"{other.name}/"):
                own = name.removeprefix(f"{other.name}/")
                if data is None:
                    other.delete(own)
                elif other.contents().get(own) != data:
                    other.put(own, data)
                return
        path = self.scenario.folder / name
        if data is None:
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.disk.settle()

    def of_place(self) -> str:
        """How names of the checkpoints' files begin."""
        assert self.scenario.place is not None
        place = Path(self.scenario.place)
        return f"{place.relative_to(self.scenario.folder)}/" if place.is_absolute() else f"{self.scenario.place}/"

    # ---- What must be so ----

    def check(self, phase: int) -> None:
        """After a run to the end: each row is there once."""
        shown, expected = self._shown(), list(self.scenario.phases[phase].expected)
        if self.scenario.is_ordered and shown != expected:
            raise self.broken(_difference(shown, expected) or f"the rows have another order: {shown}")
        if difference := _difference(shown, expected):
            raise self.broken(difference)

    def check_checkpoints(self) -> None:
        """After a run to the end: one can go back to each checkpoint that is listed."""
        if self.scenario.place is None:
            return
        with using(self.disk.process()):
            problems = [one.problem for one in checkpoints_in(self._store()) if one.problem is not None]
        if problems:
            raise self.broken(f"a checkpoint cannot be restored: {problems[0]}")

    def check_doubled(self, phase: int) -> None:
        """After a run to the end that was allowed to double rows: each row is there at least once, and no other."""
        shown, expected = Counter(self._shown()), Counter(self.scenario.phases[phase].expected)
        if missing := expected - shown:
            raise self.broken(f"missing: {dict(missing)}")
        if wrong := shown.keys() - expected.keys():
            raise self.broken(f"too many: {wrong}")

    def check_crashed(self) -> None:
        """Between a crash and the next start: no row that is not expected, and none twice. Without checkpoints: all of
        them, or none."""
        shown, expected = Counter(self._shown()), Counter(self.scenario.phases[self._phase].expected)
        if more := shown - expected:
            raise self.broken(f"after the crash there are rows too many: {dict(more)}")
        if self.scenario.place is None and shown and shown != expected:
            raise self.broken(f"after the crash there is a part of the rows: {dict(shown)}")

    def _shown(self) -> list[Any]:
        try:
            return self.scenario.shown()
        except (ValueError, pa.ArrowException) as error:
            raise self.broken(f"the rows that are shown cannot be read: {error}") from error
        except AssertionError as error:
            raise self.broken(str(error)) from error

    def broken(self, text: str) -> Broken:
        return Broken(f"{text}\nthe schedule: " + "; ".join(self.history))


def _difference(shown: list[Any], expected: list[Any]) -> str:
    missing, more = Counter(expected) - Counter(shown), Counter(shown) - Counter(expected)
    return f"missing: {dict(missing)}; too many: {dict(more)}" if missing or more else ""


def _in_turn(input: Any, turns: ReadTurns) -> Any:
    return dataclasses.replace(input, source=InTurn(input.source, turns))


def _with_inputs(planned: Any, inputs: list[Any]) -> Any:
    """The same pipeline with other inputs; its own remain those that are closed."""
    if dataclasses.is_dataclass(planned):
        return dataclasses.replace(planned, inputs=inputs)  # type: ignore[type-var]
    planned.inputs = inputs
    return planned
