"""Flink in one process, without Flink: stages of all slices, their messages, and states taken at any moment.

A seed decides what happens next. What was done behind a state is lost, with the rows that sinks got since then.
"""

from __future__ import annotations

import asyncio
import collections
import copy
import json
import random
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin.engine.flink.cut import CutStage
from arroyo_udf_plugin.engine.flink.keyed_stage import KeyedStage
from arroyo_udf_plugin.engine.flink.messages import items
from arroyo_udf_plugin.engine.flink.outlets import Posted, codec_of
from arroyo_udf_plugin.engine.flink.program import JobArguments, Program, opened
from arroyo_udf_plugin.engine.flink.reading_stage import ReadingStage
from arroyo_udf_plugin.engine.flink.slice_state import FlinkState
from arroyo_udf_plugin.engine.flink.waiting_stage import WaitingStage

Key = tuple[int, int]
"""A stage and a slice."""


class _Value:
    def __init__(self, value: bytes | None = None) -> None:
        self.bytes = value

    def value(self) -> bytes | None:
        return self.bytes

    def update(self, value: bytes) -> None:
        self.bytes = value


class _Files(dict[str, bytes]):
    put = dict.__setitem__

    def remove(self, key: str) -> None:
        self.pop(key, None)


class LocalFlink:
    """Runs a pipeline to its end; `restarts` times it fails, and goes on from a state of before."""

    def __init__(self, arguments: JobArguments, seed: int = 0) -> None:
        self.arguments, self.random = arguments, random.Random(seed)
        self.loop = asyncio.new_event_loop()
        self.values: dict[Key, _Value] = collections.defaultdict(_Value)
        self.files: dict[Key, _Files] = collections.defaultdict(_Files)
        self.queues: dict[tuple[int, int], collections.deque[bytes]] = collections.defaultdict(collections.deque)
        self.rows: dict[str, list[pa.RecordBatch]] = collections.defaultdict(list)
        self._open()

    def _open(self) -> None:
        self.program: Program = opened(self.arguments)
        cut, width = self.program.cut, self.program.width
        self.edges = {edge.number: edge for edge in cut.edges}
        self.codecs = {edge.number: codec_of(self.program, edge) for edge in cut.edges}
        self.stage_of = {stage.head: stage for stage in cut.stages if stage.kind != "reading"}
        self.reading: dict[Key, ReadingStage] = {}
        self.keyed: dict[Key, KeyedStage] = {}
        self.waiting: dict[int, WaitingStage] = {}
        self.states: dict[Key, FlinkState] = {}
        for stage in cut.stages:
            if stage.kind == "waiting":
                self.waiting[stage.number] = WaitingStage(self.program, stage)
                self.waiting[stage.number].start()
                continue
            for slice in range(width):
                key = (stage.number, slice)
                state = self.states[key] = FlinkState(self.values[key], self.files[key])
                about, stored = state.read() or (None, None)
                if stage.kind == "reading":
                    self.reading[key] = ReadingStage(self.program, stage, slice, about, state.ended())
                else:
                    self.keyed[key] = KeyedStage(self.program, stage, slice, about, stored)
        self.over: set[Key] = set()

    def run(self, restarts: int = 0) -> dict[str, list[pa.RecordBatch]]:
        saved = self._save()
        for _ in range(restarts):
            for _ in range(self.random.randrange(1, 200)):
                if not self._step():
                    break
                if self.random.random() < 0.1:
                    saved = self._save()
            self.close()
            self._restore(saved)
        while self._step():
            if self.random.random() < 0.05:
                self._save()
        self.close()
        self.loop.close()
        return self.rows

    def close(self) -> None:
        for stage in (*self.reading.values(), *self.keyed.values()):
            stage.close()
        for waiting in self.waiting.values():
            waiting.stop()
        self.program.planned.close()
        self.loop.run_until_complete(asyncio.sleep(0))

    def _save(self) -> Any:
        for key, reading in self.reading.items():
            self.states[key].write(reading.about(), None, "reading")
            self.states[key].note_ended(reading.ended())
        for key, keyed in self.keyed.items():
            self.states[key].write(keyed.about(), keyed.snapshot(), "keyed")
        return copy.deepcopy((self.values, self.files, self.queues)), {
            name: list(own) for name, own in self.rows.items()
        }

    def _restore(self, saved: Any) -> None:
        (self.values, self.files, self.queues), rows = copy.deepcopy(saved[0]), saved[1]
        self.rows = collections.defaultdict(list, {name: list(own) for name, own in rows.items()})
        self._open()

    def _step(self) -> bool:
        may = [*(("read", key) for key in self.reading if key not in self.over)]
        may += [("message", key) for key, queue in self.queues.items() if queue]
        if not may:
            return False
        what, key = self.random.choice(may)
        if what == "read":
            self._post(self.reading[key].read(self.loop))
            for other in self.reading.values():
                self._post(other.take())
            if self.reading[key].about()["over"]:
                self.over.add(key)
            return True
        edge, message = self.edges[key[0]], self.queues[key].popleft()
        stage: CutStage = self.stage_of[edge.follower]
        if stage.kind == "keyed":
            self._post(self.keyed[stage.number, key[1]].take(edge.number, message))
        else:
            self._post(self.loop.run_until_complete(self.waiting[stage.number].answer(message)))
        return True

    def _post(self, posted: Any) -> None:
        for each in posted:
            assert isinstance(each, Posted)
            edge = self.edges[each.edge]
            if edge.sink is None:
                self.queues[each.edge, each.slice].append(each.message)
                continue
            for kind, payload in items(each.message):
                if kind == "rows":
                    self.rows[edge.sink].append(self.codecs[each.edge].decode(payload).rows)


def arguments(pipeline: Any, slices: int) -> JobArguments:
    return JobArguments(pipeline=json.loads(pipeline.model_dump_json(by_alias=True)), slices=slices)
