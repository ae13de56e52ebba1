"""The native ledger of row ids, against a model: a list of the rows that were accepted and have not come out."""

import random
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import _native, abi
from arroyo_udf_plugin.abi import ffi

FIELDS = {"id": pa.uint64(), "value": pa.int64(), "outcome": pa.uint8(), "attempts": pa.uint16(), "error": pa.utf8()}
TYPE = pa.struct(FIELDS)


class Ledger:
    """The native one, with results made for it."""

    def __init__(self, ordered: bool) -> None:
        schema = ffi.new("struct ArrowSchema *")
        TYPE._export_to_c(abi.address(schema))
        self._layout = _native.layout(abi.address(schema))
        self._ledger = _native.ledger(ordered)

    def begin(self, first: int, rows: int) -> int:
        return _native.begin_send(self._ledger, first, rows)

    def end(self, first: int, rows: int, begun: int, status: int) -> None:
        _native.end_send(self._ledger, first, rows, begun, status)

    def send(self, first: int, rows: int, status: int = abi.OK) -> None:
        self.end(first, rows, self.begin(first, rows), status)

    def come_out(self, ids: Sequence[int], alone: bool = True, offset: int = 0, failed: Collection[int] = ()) -> None:
        n = len(ids) + offset
        are_failed = [False] * offset + [id in failed for id in ids]
        columns = [
            pa.array([2**63] * offset + list(ids), pa.uint64()),
            pa.array([None if is_failed else 1 for is_failed in are_failed], pa.int64()),
            pa.array([abi.ERROR if is_failed else abi.VALUE for is_failed in are_failed], pa.uint8()),
            pa.array([1] * n, pa.uint16()),
            pa.array(["wrong" if is_failed else None for is_failed in are_failed], pa.utf8()),
        ]
        out = ffi.new("struct ArrowArray *")
        results = pa.StructArray.from_arrays(columns, fields=list(TYPE)).slice(offset)
        results._export_to_c(abi.address(out))
        try:
            found = _native.check_drained(self._layout, abi.address(out), 0, self._ledger, alone)
            neighbours = list(ids) == list(range(ids[0], ids[0] + len(ids)))
            assert found == (offset == 0, min(ids), max(ids), neighbours, not failed)
        finally:
            if out.release != ffi.NULL:
                out.release(out)

    @property
    def missing(self) -> tuple[int, str]:
        return _native.missing(self._ledger), _native.named_missing(self._ledger)


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        call(*arguments)
    return str(caught.value)


def test_a_check_tells_which_ids_it_has_found_and_whether_a_row_has_failed() -> None:
    ledger = Ledger(False)
    ledger.send(5, 100)
    ledger.come_out([30, 31, 7, 90])
    ledger.come_out([8, 9, 10], failed=[9])
    ledger.come_out([5])


@pytest.mark.parametrize("ordered", [True, False])
def test_rows_come_out_once(ordered: bool) -> None:
    ledger = Ledger(ordered)
    ledger.send(5, 3)
    ledger.send(8, 100)
    ledger.send(1000, 2)
    ledger.come_out([5])
    ledger.come_out([6, 7, *range(8, 100)], offset=3)
    said = (
        "row 7 after row 100, and its function is ordered"
        if ordered
        else "row 7, which was not sent or has come out before"
    )
    assert refusal(ledger.come_out, [100, 7]) == said


def test_lost_rows_are_named() -> None:
    ledger = Ledger(ordered=False)
    assert ledger.missing == (0, "")
    ledger.send(0, 10)
    ledger.send(10, 5)
    ledger.come_out([1, 2, 9, 10, 14])
    assert ledger.missing == (10, "10 accepted rows have not come out: 0, 3 to 8, 11 to 13")
    ledger.come_out([0, 3, 4, 5, 6, 7, 8, 11, 13])
    assert ledger.missing == (1, "1 accepted row has not come out: 12")
    ledger.come_out([12])
    ledger.send(100, 64)
    ledger.come_out(range(101, 164, 2))
    assert ledger.missing == (32, "32 accepted rows have not come out: 100, 102, 104, 106, 108, 110, 112, 114, ...")


def test_ordered_rows_come_out_in_their_order() -> None:
    ledger = Ledger(ordered=True)
    ledger.send(0, 4)
    ledger.send(10, 4)
    said = "row 1 before row 0, and its function is ordered"
    assert refusal(ledger.come_out, [1]) == said
    assert refusal(ledger.come_out, [10]) == "row 10 before row 0, and its function is ordered"
    assert refusal(ledger.come_out, [0, 2, 1]).startswith("row 2 before row 1")


def test_rows_of_another_drain_may_be_noted_later() -> None:
    ledger = Ledger(ordered=True)
    ledger.send(0, 10)
    ledger.come_out([5, 6, 7, 8, 9], alone=False)
    ledger.come_out([0, 1, 2, 3, 4], alone=False)
    assert ledger.missing == (0, "")
    ledger.send(10, 9)
    assert refusal(ledger.come_out, [12, 13, 13], False) == "row 13 twice"


def test_rows_may_come_out_before_their_send_returns() -> None:
    for ordered in (True, False):
        ledger = Ledger(ordered)
        ledger.send(0, 1)
        begun = ledger.begin(1, 2)
        assert ledger.missing[0] == 1
        ledger.come_out([0, 1, 2])
        ledger.end(1, 2, begun, abi.OK)
        assert ledger.missing == (0, "")


def test_a_send_that_another_overtakes_is_refused() -> None:
    ledger = Ledger(ordered=True)
    slow, fast = ledger.begin(0, 5), ledger.begin(5, 5)
    ledger.end(5, 5, fast, abi.OK)
    ledger.come_out([5, 6])
    ledger.end(0, 5, slow, abi.INVALID_ARGUMENT)
    ledger.come_out([7, 8, 9])
    assert ledger.missing == (0, "")


def test_sends_that_break_the_contract() -> None:
    ledger = Ledger(ordered=True)
    ledger.send(5, 5)
    assert refusal(ledger.send, 5, 1) == "accepts row 5, and ids must rise from send to send"
    assert refusal(ledger.send, 0, 3) == "accepts rows 0 to 2, and ids must rise from send to send"
    ledger.send(0, 3, abi.INVALID_ARGUMENT)
    begun = ledger.begin(10, 2)
    ledger.come_out(range(5, 11))
    assert refusal(ledger.end, 10, 2, begun, abi.WOULD_BLOCK) == "refuses rows 10 to 11, and 1 of them have come out"


def test_a_send_without_room_although_nothing_is_held() -> None:
    ledger = Ledger(ordered=True)
    said = "answers WOULD_BLOCK although every accepted row has come out"
    assert refusal(ledger.send, 0, 1, abi.WOULD_BLOCK) == said
    ledger.send(0, 1)
    ledger.send(1, 1, abi.WOULD_BLOCK)
    ledger.come_out([0])
    begun = ledger.begin(1, 1)
    ledger.send(1, 1, abi.INVALID_ARGUMENT)  # another one in between, which may have had room for a moment
    ledger.end(1, 1, begun, abi.WOULD_BLOCK)


def test_the_last_ids() -> None:
    ledger = Ledger(ordered=False)
    last = 2**64 - 1
    ledger.send(last - 1, 2)
    ledger.come_out([last])
    assert refusal(ledger.come_out, [0]) == "row 0, which was not sent or has come out before"
    assert ledger.missing == (1, f"1 accepted row has not come out: {last - 1}")


@pytest.mark.parametrize("seed", range(200))
def test_ledger_and_model_agree(seed: int) -> None:
    choose = random.Random(seed)
    ordered = choose.random() < 0.5
    ledger, model, after = Ledger(ordered), list[int](), 0
    for _ in range(60):
        if not model or choose.random() < 0.4:
            first = after + choose.choice([0, 0, 1, 7])
            rows = choose.choice([0, 1, 1, 3, 64, 65, 200])
            accepted = not model or choose.random() < 0.8
            ledger.send(first, rows, abi.OK if accepted else abi.WOULD_BLOCK)
            if accepted:
                model += range(first, first + rows)
                after = first + rows if rows else after
            continue
        n = min(len(model), choose.choice([1, 2, 5, 63, 64, 65, 300]))
        start = 0 if ordered else choose.randrange(len(model) - n + 1)
        ids = model[start : start + n]
        if not ordered and choose.random() < 0.5:
            choose.shuffle(ids)
        kind = choose.random()
        if kind < 0.05:
            ids[choose.randrange(n)] = choose.choice([after, after + 1000, 2**64 - 1])
        elif kind < 0.1 and n > 1:
            ids[-1] = ids[0]
        elif kind < 0.15 and ordered and n > 1:
            ids.reverse()
        is_right = sorted(ids) == sorted(set(ids)) and set(ids) <= set(model) and (not ordered or ids == model[:n])
        if not is_right:
            assert refusal(ledger.come_out, ids)
            return
        ledger.come_out(ids, offset=choose.choice([0, 0, 1, 9]))
        model = [one for one in model if one not in set(ids)]
        assert ledger.missing[0] == len(model)
