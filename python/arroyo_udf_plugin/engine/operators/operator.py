"""An operator: functions over one stream of blocks and watermarks, with a policy, a budget and snapshots.

    operator = Operator("speeds", plan.stages, Policy(error="dead_letter"))
    operator.start()
    operator.push(block); operator.push_watermark(time)
    for item in operator.take(): ...                    Block | Watermark | Dead
    state = operator.snapshot()                         at any time between two calls; nothing waits for it
    operator.finish(); ...take until operator.is_finished...; operator.stop(); operator.close()

Guarantees: O1 to O6, see __init__.py. Assumes that one thread at a time calls it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from ...errors import InvalidArgument
from ...host.answers import HELD_BYTES
from ...host.policy import Policy
from ...host.runtime import Runtime
from ...host.started import Mode
from ...host.statistics import Statistics
from .blocks import Block
from .calls import PlacedCall, options_of
from .failures import Failures
from .keys import hashed
from .queued import SyncStage
from .stages import AsyncStage, Item, Oldest, RunningStage
from .state import FunctionSnapshot, OperatorSnapshot, StateIdentity, read
from .state_parts import StoredState
from .watermarks import Watermark


class StagePlan(Protocol):
    """A query, or a lookup. Most operators have none, so neither is imported here."""

    def opened(self, policy: Policy) -> RunningStage: ...


class Operator:
    """name: for people. stages: of a `Plan`, one behind the other, or a query, or a lookup. Each may take results
    of those before.

    policy: for failed rows of all stages. options: for the start of async functions, see `options_of`. hidden: texts of
    failures without what nobody may read. key: of the operator, the same in each run of its pipeline; None: idempotency
    keys are the lineage of a start, and ids.
    """

    def __init__(
        self,
        name: str,
        stages: Sequence[PlacedCall | StagePlan],
        policy: Policy = Policy(),  # noqa: B008 (frozen)
        options: Mapping[str, Any] = MappingProxyType({}),
        hidden: Callable[[str], str] = str,
        key: bytes | None = None,
    ) -> None:
        self.name = name
        self.stages: Sequence[RunningStage] = [
            _running(stage, policy, options, None if key is None else (key, place))
            for place, stage in enumerate(stages)
        ]
        for running in self.stages:
            running.failures = Failures(hidden)
        self._async = [stage for stage in self.stages if isinstance(stage, AsyncStage)]
        self._is_at_end = False
        self._restored: list[tuple[RunningStage, list[FunctionSnapshot]]] = []

    def restore(
        self, states: Sequence[StoredState], *, allow_changed_plugin: bool = False, watermarks: float | None = math.inf
    ) -> None:
        """Before `start`: takes snapshots of this operator, of as many slices. Nothing has happened outside then.

        watermarks: those of the snapshots that are above this one become it; None: those of the snapshots do not count.

        Rows of one snapshot keep ids and lineage, and with them their idempotency keys; those of several are
        renumbered.
        Raises InvalidArgument for a snapshot of other functions or columns, of another plugin hash unless that is
        allowed, of another format version, and for a damaged one.
        """
        given = [stage.kept_as for stage in self.stages]
        snapshots = [
            _once_told([kept.up_to(watermarks) for kept in read(state, given, f"operator {self.name}")])
            for state in states
        ]
        by_stage = [(stage, [kept[place] for kept in snapshots]) for place, stage in enumerate(self.stages)]
        for stage, kept in by_stage:
            for snapshot in kept:
                self._check(stage, snapshot.identity, allow_changed_plugin)
        self._restored = by_stage

    def start(self, states: Sequence[StoredState] = (), *, allow_changed_plugin: bool = False) -> None:
        """Starts the functions, with the rows that were restored. states: those of `restore`, if it was not called.
        Raises what `Function.start` raises."""
        if states:
            self.restore(states, allow_changed_plugin=allow_changed_plugin)
        restored, self._restored = self._restored or [(stage, []) for stage in self.stages], []
        try:
            for stage, kept in restored:
                if isinstance(stage, AsyncStage):
                    stage.choose_lineage(kept)
                    stage.start()
                if kept:
                    stage.restore(kept)
        except BaseException:
            self.close()
            raise

    def _check(self, stage: RunningStage, was: StateIdentity, allow_changed_plugin: bool) -> None:
        now = stage.identity
        if was.function != now.function:
            raise InvalidArgument(
                f"operator {self.name}: the state is of {was.plugin}.{was.function}, and this operator calls "
                f"{now.plugin}.{now.function}: resume with the former description, or begin anew in another place"
            )
        if now.asked is not None:
            self._check_asked(was, now)
        elif was.plugin_hash != now.plugin_hash and not allow_changed_plugin:
            raise InvalidArgument(
                f"operator {self.name}: the plugin of {now.function} has changed since the checkpoint "
                f"({was.plugin_hash[:12]} is now {now.plugin_hash[:12]}): resume with --allow-changed-plugin, or with "
                "the former plugin"
            )

    def _check_asked(self, was: StateIdentity, now: StateIdentity) -> None:
        assert now.asked is not None
        if was.asked is None and now.asked and was.plugin_hash != now.plugin_hash:
            raise InvalidArgument(
                f"operator {self.name}: {now.function} have changed since the checkpoint, and an earlier program has "
                "written it, which does not say in what: go on with the former description, and change it after the "
                "next checkpoint"
            )
        for name in sorted({*(was.asked or ()), *now.asked} if was.asked is not None else ()):
            former, new = (identity.asked.get(name) if identity.asked else None for identity in (was, now))
            if former != new:
                raise InvalidArgument(
                    f"operator {self.name}: the {name} of {now.function} was {json.dumps(former)}, and is "
                    f"{json.dumps(new)}: undo the change, or begin anew in another place"
                )

    # ---- The stream ----

    @property
    def wants_input(self) -> bool:
        """Whether there is room for more rows: one budget covers all rows that have not left. `push` takes them also
        without."""
        return all(stage.wants_input for stage in self.stages) and self.held_bytes < HELD_BYTES

    def push(self, block: Block) -> None:
        """block: at least one row, with the columns that the first stage is given."""
        self.stages[0].push(block)

    def push_watermark(self, time: int | None) -> None:
        """time: nanoseconds since 1970; None: the source is idle, and holds nothing back."""
        self.stages[0].push(Watermark(time))

    def take(self) -> list[Item]:
        """What has passed all stages, in order; never waits, except that it runs a step of each sync function.

        Raises RowError for a row whose policy is "fail".
        """
        items: list[Item] = []
        for stage in self.stages:
            beside: list[Item] = []
            for item in items:
                if isinstance(item, Block | Watermark):
                    stage.push(item)
                else:
                    beside.append(item)  # dead letters pass
            items = [*beside, *stage.turn()]
        return items

    def finish(self) -> None:
        """Nothing more will be pushed."""
        self._is_at_end = True

    @property
    def is_drained(self) -> bool:
        """Whether nothing comes out until something more is pushed."""
        return self.held_rows == 0

    @property
    def is_finished(self) -> bool:
        """Everything that was pushed before `finish` has been taken (O5)."""
        return self._is_at_end and all(stage.is_empty for stage in self.stages)

    @property
    def is_ready(self) -> bool:
        """Whether `take` has something to do now, without anything happening first."""
        return any(stage.is_ready for stage in self.stages)

    # ---- To wait on ----

    @property
    def runtimes(self) -> list[Runtime]:
        """Of the async functions: after `wait_async` of one, `take` has something to do."""
        return [stage.runtime for stage in self._async]

    @property
    def waiting(self) -> list[RunningStage]:
        """Stages with something under way: after `wait_results` of one, `take` has something to do."""
        return [stage for stage in self.stages if stage.is_waiting]

    @property
    def ending(self) -> list[AsyncStage]:
        """Those that nothing more comes to: call `begin_end` of each. Rows still come out meanwhile."""
        if not self._is_at_end:
            return []
        upto = next((place for place, stage in enumerate(self.stages) if not stage.is_empty), len(self.stages))
        return [stage for stage in self.stages[: upto + 1] if isinstance(stage, AsyncStage) and stage.can_end]

    @property
    def wanting_room(self) -> list[Runtime]:
        """Those that have refused rows: after `wait_room_async` of one, `take` has something to do."""
        return [stage.runtime for stage in self._async if stage.wants_room]

    @property
    def held_rows(self) -> int:
        return sum(stage.held_rows for stage in self.stages)

    @property
    def held_bytes(self) -> int:
        return sum(stage.held_bytes for stage in self.stages)

    def statistics(self) -> list[Statistics]:
        """Of the async functions that have started, also after their end."""
        return [statistics for stage in self._async if (statistics := stage.statistics()) is not None]

    def oldest(self) -> Oldest | None:
        """Of the async functions that have started: the row that one has had longest."""
        rows = [oldest for stage in self._async if stage.is_started and (oldest := stage.oldest()) is not None]
        return min(rows, key=lambda row: row.since, default=None)

    # ---- The end ----

    def snapshot(self) -> OperatorSnapshot | None:
        """Rows and watermarks that have not been taken, as `state.py` says. None: it works in another slice."""
        return OperatorSnapshot([(stage.kept(), stage.kept_as) for stage in self.stages], self.held_bytes)

    def stop(self, mode: Mode = "drain", deadline: float | None = None) -> list[str]:
        """Ends the runtimes and closes their Contexts; may wait for it. Returns the texts of those that failed to
        close."""
        texts = [stage.stop(mode, deadline) for stage in self._async]
        return [text for text in texts if text is not None]

    def close(self) -> None:
        """Releases runtimes and connections; rows that have not been taken are given up."""
        for stage in self.stages:
            stage.close()


def _once_told(stages: Sequence[FunctionSnapshot]) -> list[FunctionSnapshot]:
    """A slice's snapshots, so that no watermark leaves a second time."""
    told = [kept.without_told(behind.latest) for kept, behind in itertools.pairwise(stages)]
    return [*told, *stages[-1:]]


def _running(
    stage: PlacedCall | StagePlan,
    policy: Policy,
    options: Mapping[str, Any],
    key: tuple[bytes, int] | None,
) -> RunningStage:
    """key: of the operator, and the stage's place in it."""
    if not isinstance(stage, PlacedCall):
        return stage.opened(policy)
    function = stage.call.function
    return (
        AsyncStage(stage, policy, options_of(options, function.name), key and hashed(*key, function.name))
        if function.kind == "async"
        else SyncStage(stage, policy)
    )
