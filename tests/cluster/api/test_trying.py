"""A function is tried with a few rows, and a table shows its first ones: nothing is kept, and the API lives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client

pytestmark = pytest.mark.cluster

HEAD = "import asyncio, os, signal\nfrom dataclasses import dataclass\nfrom arroyo_udf_plugin import udf, udaf, udtf\n"
REPEAT = f"""{HEAD}
@udf
def repeat(n: int, text: str) -> str:
    print("called with", n)
    if n < 0:
        raise ValueError(f"{{n}} is too few")
    return text * n
"""


def tried(client: Client, definition: str, rows: list[Any], language: str = "python", **more: Any) -> dict[str, Any]:
    asked = {"definition": definition, "language": language, "rows": rows, **more}
    answer = client.post("/api/v1/arroyo_udf/udfs/try", json=asked)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def outcomes(told: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(row["outcome"], row["value"]) for row in told["rows"]]


def test_a_function_is_called_for_each_row_and_one_that_raises_keeps_no_other_from_it(shared: Client) -> None:
    told = tried(shared, REPEAT, [[2, "ab"], [-1, "c"], [None, "d"], [1, "ä"]])
    assert outcomes(told) == [("value", "abab"), ("error", None), ("value", None), ("value", "ä")]
    assert [row["error"] for row in told["rows"] if row["outcome"] == "value"] == [None] * 3
    message, place = told["rows"][1]["error"].split("\n")
    assert message == "ValueError: -1 is too few"
    assert "at repeat, <repeat.py" in place
    assert all(row["micros"] >= 0 for row in told["rows"])
    assert told["micros"] >= sum(row["micros"] for row in told["rows"])
    assert told["output"] == "called with 2\ncalled with -1\ncalled with 1\n"
    assert {name: told[name] for name in ("udf_name", "signature", "returns", "kind", "errors", "crashed")} == {
        "udf_name": "repeat",
        "signature": "repeat(n: int64, text: string) -> string",
        "returns": "string",
        "kind": "sync",
        "errors": [],
        "crashed": None,
    }
    assert told["arguments"] == [{"name": "n", "type": "int64"}, {"name": "text", "type": "string"}]


def test_rows_of_an_async_function_run_together(shared: Client) -> None:
    """Each waits for all others, and one fails then."""
    meet = f"""{HEAD}
class Context:
    def __init__(self) -> None:
        self.barrier = asyncio.Barrier(3)

@udf
async def meet(context: Context, n: int) -> int:
    await context.barrier.wait()
    return 6 // n
"""
    told = tried(shared, meet, [[1], [0], [2]])
    assert told["kind"] == "async"
    assert outcomes(told) == [("value", 6), ("error", None), ("value", 3)]
    assert told["rows"][1]["error"].startswith("ZeroDivisionError")


def test_a_function_that_ends_its_process_is_told_with_its_place(shared: Client) -> None:
    crash = f"""{HEAD}
@udf
def crash(n: int) -> int:
    if n == 2:
        print("the end")
        os.kill(os.getpid(), signal.SIGSEGV)
    return n
"""
    told = tried(shared, crash, [[1], [2], [3]])
    assert told["crashed"] == "SIGSEGV in crash, crash.py:9"
    assert outcomes(told) == [("value", 1), ("error", None), ("cancelled", None)]
    assert told["rows"][1]["error"] == "it has ended the process: SIGSEGV in crash, crash.py:9"
    assert (told["output"], told["errors"]) == ("the end\n", [])
    left = tried(shared, crash.replace("os.kill(os.getpid(), signal.SIGSEGV)", "os._exit(3)"), [[2]])
    assert left["crashed"] == "status 3 in crash"


def test_a_row_that_does_not_end_has_a_limit_and_its_place_is_told(shared: Client) -> None:
    endless = f"""{HEAD}
@udf
def endless(n: int) -> int:
    while n == 2:
        pass
    return n
"""
    told = tried(shared, endless, [[1], [2], [3]], seconds=4)
    assert outcomes(told) == [("value", 1), ("timed_out", None), ("timed_out", None)]
    first, place = told["rows"][1]["error"].split("\n")
    assert first == "did not end within 4 s"
    assert place in ("  at endless, endless.py:7", "  at endless, endless.py:8")
    assert told["rows"][2]["error"] == "did not begin within 4 s"
    assert (told["rows"][1]["micros"], told["crashed"]) == (None, None)


def test_async_rows_that_wait_too_long_keep_no_other_from_ending(shared: Client) -> None:
    wait = f"""{HEAD}
@udf
async def wait(n: int) -> int:
    if n == 1:
        await asyncio.Event().wait()
    return n
"""
    told = tried(shared, wait, [[1], [2]], seconds=4)
    assert outcomes(told) == [("timed_out", None), ("value", 2)]


def test_values_that_do_not_fit_are_told_by_row_and_argument_and_nothing_runs(shared: Client) -> None:
    told = tried(shared, REPEAT, [["abc", "x"], [1], [1.5, "x"], [1, 2, 3]])
    assert told["errors"] == [
        "row 2: repeat takes 2 arguments (n, text), but got 1",
        "row 4: repeat takes 2 arguments (n, text), but got 3",
    ]
    told = tried(shared, REPEAT, [["abc", "x"], [1, "x"], [1.5, "x"]])
    assert told["errors"] == [
        "row 1, argument n: 'abc' is not int64",
        "row 3, argument n: '1.5' is not int64",
    ]
    assert (told["rows"], told["output"], told["udf_name"]) == ([], "", "repeat")


def test_a_function_in_c_is_tried_too(shared: Client) -> None:
    c = """#include "arroyo_udf_plugin.h"
#include <stdio.h>
static const char* half(int64_t n, double* out) {
  printf("called with %d\\n", (int)n);
  if (n == 0) return "nothing to halve";
  if (n == 3) *(volatile int*)0 = 1;
  *out = (double)n / 2.0;
  return NULL;
}
ARROYO_UDF_FUNCTION(half, float64, (int64, n));
ARROYO_UDF_PLUGIN(half);
"""
    told = tried(shared, c, [[1], [0]], "c")
    assert outcomes(told) == [("value", 0.5), ("error", None)]
    assert (told["rows"][1]["error"], told["output"]) == ("nothing to halve", "called with 1\ncalled with 0\n")
    told = tried(shared, c, [[1], [3]], "c")
    assert (told["crashed"], outcomes(told)) == ("SIGSEGV in half", [("value", 0.5), ("error", None)])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("@udf\ndef f(n): return n", "annotate"),
        ("class Context:\n    def init(self): raise OSError('no database')\n\n"
         "@udf(blocking=True)\ndef f(context: Context, n: int) -> int: return n", "no database"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_or_started_is_told(shared: Client, body: str, told: str) -> None:
    answer = tried(shared, f"{HEAD}\n{body}\n", [[1]])
    assert told in "\n".join(answer["errors"])
    assert answer["rows"] == []


def test_what_goes_wrong_at_the_end_is_told_beside_the_rows(shared: Client) -> None:
    closing = f"""{HEAD}
class Context:
    async def close(self) -> None:
        raise OSError("cannot be closed")

@udf
async def f(context: Context, n: int) -> int:
    return n
"""
    told = tried(shared, closing, [[1]])
    assert outcomes(told) == [("value", 1)]
    assert "cannot be closed" in told["errors"][0]


def test_large_values_are_left_out(shared: Client) -> None:
    told = tried(shared, REPEAT, [[5 << 20, "a"], [5 << 20, "b"], [-1, "c"]])
    assert [len(row["value"] or "") for row in told["rows"]] == [5 << 20, 0, 0]
    assert told["rows"][1]["error"] == "its value is left out: all are too large"
    assert told["rows"][2]["error"].startswith("ValueError: -1")


def test_other_kinds_of_functions_are_called_as_they_are(shared: Client) -> None:
    vectorized = (
        "import pyarrow as pa\n\n@udf(vectorized=True)\ndef f(n: pa.Int64Array) -> pa.Int64Array: return n[::-1]"
    )
    told = tried(shared, f"{HEAD}\n{vectorized}\n", [[1], [2]])
    assert (told["kind"], outcomes(told)) == ("vectorized", [("value", 1), ("value", 2)])
    aggregate = """
@udaf
@dataclass
class total:
    sum: int = 0
    def update(self, values: list[int]) -> None: self.sum += sum(values)
    def merge(self, other: "total") -> None: self.sum += other.sum
    def finish(self) -> int: return 6 // self.sum
"""
    told = tried(shared, HEAD + aggregate, [[1], [2]])
    assert (told["kind"], outcomes(told)) == ("aggregate", [("value", 2)])
    told = tried(shared, HEAD + aggregate, [[1], [-1]])
    assert outcomes(told) == [("error", None)]
    assert told["rows"][0]["error"].startswith("ZeroDivisionError")
    table = "@udtf\ndef words(text: str) -> list[str]: return text.split()"
    told = tried(shared, f"{HEAD}\n{table}\n", [["a b"], [""]])
    assert (told["kind"], outcomes(told)) == ("table", [("value", [{"words": "a"}, {"words": "b"}]), ("value", [])])


def test_what_json_has_not_is_a_text(shared: Client) -> None:
    kinds = f"""{HEAD}import datetime, decimal
@dataclass
class Kinds:
    at: datetime.datetime
    price: decimal.Decimal
    big: int

@udf
def kinds(at: datetime.datetime, price: decimal.Decimal, big: int) -> Kinds:
    return Kinds(at + datetime.timedelta(days=1), price * 2, big)
"""
    told = tried(shared, kinds, [["2024-01-31T12:00:00", "1.05", 2**53 + 1], ["2024-01-31T12:00:00", 2, 7]])
    at = "2024-02-01T12:00:00.000000"
    assert outcomes(told) == [
        ("value", {"at": at, "price": "2.100000000", "big": "9007199254740993"}),
        ("value", {"at": at, "price": "4.000000000", "big": 7}),
    ]
    data = f"{HEAD}\n@udf\ndef data(text: bytes) -> bytes: return text\n"
    assert outcomes(tried(shared, data, [["ä"]])) == [("value", "c3a4")]


def test_a_request_of_another_shape_is_refused(shared: Client) -> None:
    right: dict[str, Any] = {"definition": REPEAT, "language": "python", "rows": []}
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    for wrong in ({"seconds": 0}, {"seconds": 31}, {"row": []}, {"rows": [[1]] * 1001}, {"rows": [[deep]]}):
        answer = shared.post("/api/v1/arroyo_udf/udfs/try", json=right | wrong)
        assert answer.status_code in (400, 422), answer.text


def saved(client: Client, name: str, folder: Path, text: str, format: str, **schema: Any) -> str:
    (folder / f"a.{format}").write_text(text)
    config = {"table_type": {"type": "source", "path": f"{folder}/*.{format}"}}
    asked = {"name": name, "connector": "filesystem", "config": config, "schema": {"format": {"type": format}} | schema}
    answer = client.post("/api/v1/connection_tables", json=asked)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def first_rows(client: Client, table: str, limit: int = 20) -> Any:
    answer = client.post(f"/api/v1/arroyo_udf/connection_tables/{table}/sample?limit={limit}", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_table_shows_its_first_rows(shared: Client, tmp_path: Path) -> None:
    lines = '{"n": 1, "s": "a", "b": true}\n{"n": 12345678901234567, "s": null}\n{"n": 3, "s": "c"}\n'
    table = saved(shared, "json_rows", tmp_path, lines, "json", inferred=True)
    assert first_rows(shared, table, 2) == {
        "fields": [{"name": "n", "type": "int64"}, {"name": "s", "type": "string"}, {"name": "b", "type": "bool"}],
        "rows": [{"n": 1, "s": "a", "b": True}, {"n": "12345678901234567", "s": None, "b": None}],
        "refused": [],
    }
    text = "n,at,code\n1,2024-01-02T03:04:05Z,007\n2,,008\n"
    told = first_rows(shared, saved(shared, "csv_rows", tmp_path, text, "csv"))
    assert [field["type"] for field in told["fields"]] == ["int64", "timestamp", "string"]
    assert told["rows"] == [
        {"n": 1, "at": "2024-01-02T03:04:05.000000Z", "code": "007"},
        {"n": 2, "at": None, "code": "008"},
    ]


def test_a_row_that_cannot_be_read_is_left_out_and_told(shared: Client, tmp_path: Path) -> None:
    fields = [{"name": "n", "type": "int64"}]
    table = saved(shared, "broken_rows", tmp_path, "n\n1\nmany\n3\n", "csv", fields=fields)
    told = first_rows(shared, table)
    assert told["rows"] == [{"n": 1}, {"n": 3}]
    assert told["refused"] == ["column 'n': 'many' is not int64"]


def test_a_sink_has_no_rows_to_show(shared: Client) -> None:
    sink = shared.post(
        "/api/v1/connection_tables", json={"name": "nowhere", "connector": "blackhole", "config": {}}
    ).json()
    answer = shared.post(f"/api/v1/arroyo_udf/connection_tables/{sink['id']}/sample", json={})
    assert (answer.status_code, answer.json()["error"]) == (400, "nowhere is a sink: only sources have rows to look at")
    assert shared.post("/api/v1/arroyo_udf/connection_tables/ct_0/sample", json={}).status_code == 404
