"""Schedules of an engine that fails at every step.

    simulation = Simulation(scenario)
    simulation.stop_everywhere()          stopped before and after each step, and resumed
    simulation.fail_everywhere()          each step fails once: the disk is full, an answer gets lost
    simulation.two_engines()              held at each step, while another engine goes on
    simulation.restore()                  gone back to older checkpoints, stopped before and after each step of that
    simulation.restore_beside()           the same, while an engine is held at each step
    simulation.damage()                   files of the checkpoints are lost, older, flipped, truncated
    simulation.random(seed)               all of that at any step, with slices that become more and fewer
    print(simulation.report.text())

Each raises `Broken` with the schedule if a row is lost or doubled, if a checkpoint cannot be restored, if a refusal
changes anything, or does not say what it refuses.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from random import Random

from ..errors import ArroyoUdfError, Fenced, InvalidArgument
from .disk import OF_OBJECTS, ProcessDisk, Step
from .report import Report
from .scenario import Scenario
from .world import LOSSES, Broken, KeptFiles, Loss, World

_REFUSALS = 3  # how often a start is repeated that was refused
_RUNS = 30  # of a random schedule; then it runs to the end
_GOES_BACK, _SLEEPS = 0.15, 0.3  # of these runs, so many go back to a checkpoint; those up to there, sleep meanwhile


class Simulation:
    """width: the number of slices. most: of the steps that one line takes, so many are chosen; None: all."""

    def __init__(
        self, scenario: Scenario, report: Report | None = None, width: int = 1, most: int | None = None
    ) -> None:
        self.scenario, self.report, self._width, self._most = scenario, report or Report(), width, most
        self._ends: list[KeptFiles] = []  # what is there after each phase

    def _to(self, phase: int) -> World:
        """A world just before the engine of a phase starts."""
        while len(self._ends) < phase:
            earlier = self._to(len(self._ends))
            self._finish(earlier, len(self._ends))
            self._ends.append(earlier.kept())
        self.report.schedules += 1
        world = World(self.scenario, self._ends[phase - 1] if phase else None)
        world.phase(phase)
        return world

    def _finish(self, world: World, phase: int, width: int | None = None, doubled: bool = False) -> None:
        """Runs to the end. doubled: rows may be there more than once."""
        self._run(world, width, is_replay=False)
        if self.scenario.phases[phase].is_replay:
            self._run(world, width, is_replay=True)
        if doubled:
            world.check_doubled(phase)
        else:
            world.check(phase)
        world.check_checkpoints()

    def _run(self, world: World, width: int | None, is_replay: bool) -> None:
        wanted = "resumable" if is_replay or self.scenario.until is not None else "finished"
        try:
            ended = world.run(width=width or self._width, is_replay=is_replay)
        except (ArroyoUdfError, OSError) as error:
            raise world.broken(f"an engine could not go on: {error}") from error
        if ended != wanted:
            raise world.broken(f"an engine ended as {ended}, not {wanted}")

    def steps(self) -> Iterator[tuple[int, Sequence[Step]]]:
        """Those that an undisturbed engine takes in each phase."""
        for phase in range(len(self.scenario.phases)):
            world = self._to(phase)
            process = world.disk.process()
            world.run(process, self._width)
            world.check(phase)
            yield phase, self._chosen(process.steps)

    def _chosen(self, steps: Sequence[Step]) -> Sequence[Step]:
        lines: dict[tuple[str, str], list[Step]] = {}
        for step in steps:
            lines.setdefault((step.operation, step.caller), []).append(step)
        if self._most is None:
            return steps
        chosen = {
            line[(2 * place + 1) * len(line) // (2 * self._most)]
            for line in lines.values()
            for place in range(self._most)
        }
        return [step for step in steps if step in chosen]

    # ---- Crashes ----

    def stop_everywhere(self, losses: Sequence[Loss] = LOSSES) -> None:
        """A crash before and after each step that an undisturbed engine takes, and after its end, in each phase."""
        for phase, steps in list(self.steps()):
            for step in steps:
                for loss in losses:
                    self.stop(phase, step, after=False, loss=loss)
                self.stop(phase, step, after=True, loss="kill")
            for loss in losses:
                self.lose_at_end(phase, loss)

    def stop(self, phase: int, step: Step, after: bool, loss: Loss, seed: int = 0) -> None:
        world = self._to(phase)
        process = world.disk.process(stop_at=step, after=after)
        world.run(process, self._width)
        if process.reached is not None:  # an engine of several slices may have been in another order
            self.report.faults[f"crash: {loss}"] += 1
            self.report.points[step.caller, step.operation] += 1
            world.lose(loss, seed)
            world.check_crashed()
        self._finish(world, phase)

    def lose_at_end(self, phase: int, loss: Loss, seed: int = 0) -> None:
        """What has been shown is there, or comes back when the pipeline goes on; without checkpoints it is there."""
        world = self._to(phase)
        self._finish(world, phase)
        self.report.faults[f"after the end: {loss}"] += 1
        world.lose(loss, seed)
        world.check_crashed()
        if self.scenario.place is not None:
            self._finish(world, phase)
        else:
            world.check(phase)

    # ---- Errors ----

    def fail_everywhere(self) -> None:
        """Each step fails once, before or after it has had its effect. The engine goes on, or the next one does."""
        for phase, steps in list(self.steps()):
            for step in steps:
                if step.operation != "commit":  # databases have errors of their own
                    for after in (False, True):
                        self.fail(phase, step, after)

    def fail(self, phase: int, step: Step, after: bool) -> None:
        world = self._to(phase)
        world.history.append(f"an error {'after' if after else 'at'} {step}")
        process = world.disk.process(stop_at=step, after=after, error=_error_of(step))
        try:
            world.run(process, self._width)
        except (ArroyoUdfError, OSError) as error:
            world.history.append(f"failed: {error}")
            world.check_crashed()
        if process.reached is not None:
            self.report.faults["error after" if after else "error"] += 1
        self._finish(world, phase)

    # ---- Two engines ----

    def two_engines(self) -> None:
        """An engine is suspended at each step, another one takes over and ends, and the first one wakes up."""
        for phase, steps in list(self.steps()):
            for step in steps:
                if step.operation != "commit":  # a transaction that is open would hold up the other engine
                    self.hold(phase, step)

    def hold(self, phase: int, step: Step) -> None:
        world = self._to(phase)
        process = world.disk.process(stop_at=step, hold=lambda: self._finish(world, phase))
        try:
            world.run(process, self._width)
        except (Fenced, InvalidArgument) as error:
            world.history.append(f"the first one: {error}")
        if process.reached is not None:
            self.report.faults["two engines"] += 1
        world.check(phase)
        self._finish(world, phase)

    # ---- Back to older checkpoints ----

    def restore(self, losses: Sequence[Loss] = LOSSES) -> None:
        """At the end of each phase, somebody goes back to each checkpoint that is retained, and is stopped before and
        after each step of that: either the newest one is still the truth, or that one is. Sinks that would have rows
        twice refuse, and change nothing, until that is accepted."""
        for phase in range(len(self.scenario.phases)):
            ended = self._to(phase)
            self._finish(ended, phase)
            for place in range(len(ended.checkpoints())):
                for step in self._chosen(self._go_back(phase, place)):
                    for loss in losses:
                        self._go_back(phase, place, step, loss=loss)
                    self._go_back(phase, place, step, after=True)

    def _go_back(
        self, phase: int, place: int, step: Step | None = None, after: bool = False, loss: Loss = "kill"
    ) -> Sequence[Step]:
        """Returns the steps that it takes. place: of the checkpoint among those that are there (slices in another order
        make other numbers). step: at which it is stopped."""
        world = self._to(phase)
        self._finish(world, phase)
        there = world.checkpoints()
        epoch = there[min(place, len(there) - 1)]
        doubled = [sink.sink for sink in world.planned_restore(epoch, self._width).doubled]
        if doubled:
            self._refuses_doubles(world, epoch)
        process = world.disk.process(stop_at=step, after=after)
        world.restore(epoch, process, self._width, doubled)
        self.report.faults["restored"] += 1
        if process.reached is not None:
            self.report.faults[f"crash: {loss}"] += 1
            self.report.points[process.reached.caller, process.reached.operation] += 1
            world.lose(loss)
            if not doubled:
                world.check_crashed()
        self._finish(world, phase, doubled=bool(doubled))
        return process.steps

    def _refuses_doubles(self, world: World, epoch: int) -> None:
        before = world.files()
        try:
            world.restore(epoch, width=self._width)
        except InvalidArgument as error:
            if world.files() != before:
                raise world.broken("a restore that was refused has changed files") from error
        else:
            raise world.broken("a sink that would have rows twice did not refuse")

    def restore_beside(self) -> None:
        """An engine is suspended at each step, somebody goes back to the oldest checkpoint, another engine ends, and
        the first one wakes up."""
        for phase, steps in list(self.steps()):
            for step in steps:
                if step.operation != "commit":  # see `two_engines`
                    self._go_back_beside(phase, step)

    def _go_back_beside(self, phase: int, step: Step) -> None:
        world = self._to(phase)
        doubled: list[str] = []

        def go_back() -> None:
            oldest = next(iter(world.checkpoints()), None)
            if oldest is not None:
                doubled.extend(sink.sink for sink in world.planned_restore(oldest, self._width).doubled)
                world.restore(oldest, width=self._width, doubles=doubled)
                self.report.faults["restored beside an engine"] += 1
            self._finish(world, phase, doubled=bool(doubled))

        try:
            world.run(world.disk.process(stop_at=step, hold=go_back), self._width)
        except (Fenced, InvalidArgument) as error:
            world.history.append(f"the first one: {error}")
        self._finish(world, phase, doubled=bool(doubled))

    # ---- Damage ----

    def damage(self, phase: int = 0, stop_at: Sequence[Step] | None = None) -> None:
        """After a crash at each of these steps (None: at every third), each file of the checkpoints is damaged."""
        steps = dict(self.steps())[phase]
        for step in steps[::3] if stop_at is None else stop_at:
            world = self._to(phase)
            world.run(world.disk.process(stop_at=step), self._width)
            self._damage(world, phase)

    def _damage(self, world: World, phase: int) -> None:
        whole, history, chance = world.files(), list(world.history), Random(0)
        for name in [name for name in whole if name.startswith(world.of_place())]:
            data = whole[name]
            damages: list[tuple[str, bytes | None]] = [("lost", None)]
            for _ in range(2 if data else 0):
                at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
                damages.append(("flipped", data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]))
                damages.append(("truncated", data[:at]))
            for kind, left in damages:
                world.history[:] = history
                self._refused_or_harmless(world, phase, whole, name, kind, left)

    def _refused_or_harmless(
        self, world: World, phase: int, whole: dict[str, bytes], name: str, kind: str, data: bytes | None
    ) -> None:
        self.report.faults[kind] += 1
        world.put_back(whole)
        world.change(name, data)
        world.history.append(f"{name} {kind}")
        if self._refuses(world, phase, None if kind == "lost" else name):
            world.put_back(whole)
            world.history.append("put back")
            self._finish(world, phase)
        else:
            world.check(phase)

    def _refuses(self, world: World, phase: int, name: str | None) -> bool:
        """Whether a start is refused, again and again, and nothing changes. name: what the text must name."""
        before = world.files()
        for attempt in range(_REFUSALS):
            try:
                world.run(width=self._width)
            except InvalidArgument as error:
                world.history.append(f"refused: {error}")
                if name is not None and name.rpartition("/")[2] not in str(error):
                    raise world.broken(f"the refusal does not name {name}") from error
                changed = [path for path, data in world.files().items() if before.get(path) != data]
                changed += sorted(before.keys() - world.files().keys())
                if changed:
                    raise world.broken(f"a refusal has changed {', '.join(changed)}") from error
            except ArroyoUdfError as error:
                raise world.broken(f"not a refusal: {error!r}") from error
            else:
                if attempt:
                    raise world.broken("a start that was refused is not refused when it is repeated")
                return False
        return True

    def older(self, phase: int = 0) -> None:
        """All files of the checkpoints are those of an earlier epoch. Nothing may change, however often one resumes."""
        for step in dict(self.steps())[phase]:
            if step.operation not in ("link", "conditional put"):
                continue
            world = self._to(phase)
            process = world.disk.process(stop_at=step, after=True)
            world.run(process, self._width)
            before = world.files()
            if not world.has_begun():
                continue
            self._finish(world, phase)
            whole = world.files()
            world.put_back(before, world.of_place())
            world.history.append("the checkpoints are an older copy")
            self.report.faults["older"] += 1
            if self._refuses(world, phase, None):
                world.put_back(whole)
                self._finish(world, phase)
            else:
                world.check(phase)

    # ---- Everything at random ----

    def random(self, seed: int, widths: Sequence[int] = (1, 2, 3)) -> None:
        """Crashes at any step, also while an engine recovers or somebody goes back to a checkpoint; engines that sleep
        while another one goes on; with any number of slices."""
        chance = Random(seed)
        self.report.schedules += 1
        world = World(self.scenario)
        world.history.append(f"seed {seed}")
        try:
            for phase in range(len(self.scenario.phases)):
                world.phase(phase)
                for _ in range(chance.randrange(_RUNS)):
                    width, kind = chance.choice(list(widths)), chance.random()
                    if kind < _GOES_BACK:
                        self._go_back_somewhere(world, width, chance)
                    elif kind < _SLEEPS:
                        self._sleep_somewhere(world, width, chance)
                    else:
                        process = world.disk.process(chance.randrange(40), after=chance.random() < 0.5)
                        world.run(process, width, chance.choice((False, None)))
                        self._lose_somehow(world, process, chance)
                self._finish(world, phase, chance.choice(list(widths)))
        except Broken:
            raise
        except (ArroyoUdfError, OSError) as error:
            raise world.broken(f"an engine could not go on: {error}") from error

    def _lose_somehow(self, world: World, process: ProcessDisk, chance: Random) -> None:
        """After a crash, if there was one."""
        if process.is_stopped and process.reached is not None:
            loss = chance.choice(LOSSES)
            self.report.faults[f"crash: {loss}"] += 1
            self.report.points[process.reached.caller, process.reached.operation] += 1
            world.lose(loss, chance.randrange(1 << 30))
            world.check_crashed()

    def _go_back_somewhere(self, world: World, width: int, chance: Random) -> None:
        """Where no row would be doubled."""
        there = world.checkpoints() if self.scenario.place is not None else []
        epoch = chance.choice(there) if there else None
        if epoch is None or world.planned_restore(epoch, width).doubled:
            return
        process = world.disk.process(chance.randrange(20), after=chance.random() < 0.5)
        world.restore(epoch, process, width)
        self.report.faults["restored"] += 1
        self._lose_somehow(world, process, chance)

    def _sleep_somewhere(self, world: World, width: int, chance: Random) -> None:
        process: ProcessDisk
        failed: list[Exception] = []

        def another() -> None:
            if process.reached is None or process.reached.operation == "commit":  # see `two_engines`
                return
            self.report.faults["two engines"] += 1
            try:
                world.run(width=width, is_replay=False)
            except (ArroyoUdfError, OSError) as error:
                failed.append(error)

        process = world.disk.process(chance.randrange(40), after=chance.random() < 0.5, hold=another)
        try:
            world.run(process, width)
        except (Fenced, InvalidArgument) as error:
            world.history.append(f"the first one: {error}")
        for failure in failed:
            raise failure


def _error_of(step: Step) -> Exception:
    """As a full disk has it, or an object store whose answer has got lost."""
    if step.operation not in OF_OBJECTS:
        return OSError(errno.ENOSPC, "No space left on device")
    import obstore.exceptions

    return obstore.exceptions.GenericError("the connection was closed")
