"""The Python host over a plugin that breaks the contract (hostile.c): each symptom is an error that names it.

The cases run in child processes, many in each. A child that crashes or hangs ends with that case, and the next child
goes on with the following one.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BREAKS = "the plugin breaks the contract: "
Case = tuple[str, str, list[Any], str, str]  # HOSTILE, step, its arguments, the expected kind, a part of the text

CASES: dict[str, Case] = {}


def case(name: str, hostile: str, step: str, *arguments: Any, kind: str = "AbiError", text: str = BREAKS) -> None:
    assert name not in CASES
    CASES[name] = (hostile, step, list(arguments), kind, text)


# ---- What is right passes ----

case("a right plugin", "", "add", kind="returned", text="[11, 22, 33]")
case("a right plugin, texts", "", "greet", kind="returned", text="['hh', 'hh', 'hh']")
case("a right plugin, outcomes", "do outcomes", "outcomes", kind="returned", text="'outcome': 0")
case("a right plugin, async", "", "stream", kind="returned", text="[0, 1, 2, 3, 4, 5]")
case("a right plugin, many rows", "", "stream", True, 70000, kind="returned", text="139999]")
case("a right plugin, unordered", "do backwards", "stream", False, kind="returned", text="[2, 1, 0, 5, 4, 3]")
case("a right plugin, many unordered rows", "do backwards", "stream", False, 5000, kind="returned", text="5000]")
case("a right plugin, run", "", "run", "add", "a,b", kind="exit 0", text="3 rows written")
case("a right plugin, run async", "", "run", "next", "a", kind="exit 0", text="3 rows written")
case("an offset in the struct", "array / offset 1;array / length 2", "add", text="2 rows for 3")
case("an offset in a child", "array /0 offset 1", "add", kind="returned", text="[22, 33, 0]")
case("an offset in drained ids", "array /0 offset 1;poke /0 1 24 7", "stream", text="answers row 1 before row 0")

# ---- Arrays ----

for where, step, hostile in (("sync", "add", ""), ("async", "stream", ""), ("outcomes", "outcomes", "do outcomes;")):
    fields = 5 if where == "async" else 3 if where == "outcomes" else 1
    for path, what in (("/", "the struct"), ("/0", "the first field"), (f"/{fields - 1}", "the last field")):
        if path == "/0" and fields == 1 and what == "the last field":
            continue
        for field, number in (
            ("length", -1),
            ("length", 2**63 - 1),
            ("offset", -1),
            ("offset", 2**63 - 1),
            ("null_count", 4),
            ("null_count", -2),
            ("n_buffers", 0),
            ("n_buffers", 7),
            ("n_buffers", -1),
            ("n_children", 7),
            ("n_children", -1),
            ("buffers", 0),
            ("dictionary", 1),
            ("release", 0),
        ):
            change = f"{hostile}array {path} {field} {number}"
            broken = (
                "rows, and only 3" if (where, path, number) == ("async", "/", 2**63 - 1) and field == "length" else ""
            )
            case(f"{where}: {field} {number} of {what}", change, step, text=broken or "answers a broken array")
    case(f"{where}: children NULL", f"{hostile}array / children 0", step, text="of its children is NULL")
    case(f"{where}: a child NULL", f"{hostile}array / child 0", step, text="is NULL")
    case(f"{where}: no data", f"{hostile}array /0 buffer 1", step, text="has no buffer of values")
    case(f"{where}: nulls without validity", f"{hostile}array /0 null_count 2", step, text="null")
    case(f"{where}: null rows", f"{hostile}array / buffer 0;array / null_count -1", step, text="has nulls")
    case(f"{where}: too few values", f"{hostile}array /0 length 1", step, text="answers a broken array")
    case(f"{where}: fewer children", f"{hostile}array / n_children 0", step, text="0 children")
    case(f"{where}: OK without results", "do nothing", step, text="its schema is NULL")
    case(f"{where}: no schema", f"{hostile}do no_schema", step, text="its schema is NULL")
    case(f"{where}: another schema", f"{hostile}do other_schema", step, text="without a field")

case("a struct longer than the rows", "array / length 4;array /0 length 4", "add", text="4 rows for 3")
case("a struct shorter than the rows", "array / length 2", "add", text="2 rows for 3")
case("failed rows", "do fail", "outcomes", kind="returned", text="{'value': None, 'outcome': 1, 'error': 'no'}")
case("failed rows, async", "do fail", "stream", kind="returned", text="[0, 1, 2, 3, 4, 5]")
case("an unknown outcome", "do fail;data /1 1 3 4", "outcomes", kind="returned", text="'outcome': 4, 'error': 'no'")
case("an unknown outcome is an error", "do fail;data /1 1 3 4", "add", kind="RowError", text="row 0: no")
case("an unknown outcome of values", "data /2 1 3 9", "stream", text="a value of row 0, whose outcome is not value")
unknown = ("do fail;data /2 1 3 4", "run", "next", "a")
case("an unknown outcome, in run", *unknown, kind="exit 1", text="in.csv, row 1: no")
null = (*unknown, "--on-error", "null")
case("an unknown outcome, as null", *null, kind="exit 0", text="0 values, 3 errors, 0 timed out; 3 nulled")
case(
    "a value of a failed row",
    "do fail;data /0 0 1 7;array /0 null_count -1",
    "outcomes",
    text="a value of row 0, whose outcome is not value",
)
case(
    "a value of a failed row, async",
    "do fail;data /1 0 1 7;array /1 null_count -1",
    "stream",
    text="a value of row 0, whose outcome is not",
)
case("a value of a failed row, in run", "data /2 1 2 1", "run", "next", "a", kind="exit 1", text="a value of row 1")
case(
    "an error of a value",
    "do outcomes;data /2 0 1 7;array /2 null_count -1",
    "outcomes",
    text="an error of row 0, whose outcome is value",
)
case("a null outcome", "do outcomes;array /1 buffer 0;array /1 null_count 3", "outcomes", text="has nulls")
case("a null id that is not counted", "array /0 buffer 0", "stream", text="null_count is 0, but 3 rows are null")
case(
    "null values that are not counted",
    "array /0 buffer 0",
    "add",
    text="null_count is 0, but 3 rows are null",
)
case("a null id", "array /0 buffer 0;array /0 null_count -1", "stream", text="has nulls")
case("few outcomes", "do outcomes;array /1 length 1", "outcomes", text="1 rows, but 3 are needed")
case("few errors", "do outcomes;array /2 length 0;array /2 null_count 0", "outcomes", text="0 rows, but 3 are needed")
case("an error that is not UTF-8", "do fail;data /2 2 6 255", "add", text="the error of row 0, which is not UTF-8")
case("an error behind its text", "do fail;poke /2 1 4 -5", "add", text="broken array")
case("a text that is not UTF-8", "data /0 2 6 255", "greet", True, text="UTF8")
case("a text of negative length", "poke /0 1 4 -5", "greet", text="broken array")
case("a text far behind", "poke /0 1 4 0x7fffffff", "greet", text="broken array")
case("a last text before the first", "poke /0 1 12 -5", "greet", False, text="broken array")
case("texts that are not UTF-8, in run", "data /0 2 6 255", "run", "greet", "name", kind="exit 1", text="UTF8")
case("wild texts, in run", "poke /0 1 4 0x70000000", "run", "greet", "name", kind="exit 1", text="broken array")

# ---- Rows ----

for order in (True, False):
    kind = "ordered" if order else "unordered"
    case(f"{kind}: one id for all rows", "do same", "stream", order, text="answers row 0 twice")
    case(f"{kind}: one id for many rows", "do same", "stream", order, 100, text="answers row 0 twice")
    case(f"{kind}: unknown ids", "do unknown", "stream", order, text="answers row 1000000, which was not sent")
    case(
        f"{kind}: many unknown ids", "do unknown", "stream", order, 100, text="answers row 1000000, which was not sent"
    )
    case(
        f"{kind}: rows again and again",
        "do again",
        "stream",
        order,
        text="answers 3 rows, and only 0 have not come out",
    )
    case(
        f"{kind}: more rows than sent", "do more", "stream", order, text="answers 4 rows, and only 3 have not come out"
    )
    lost = "row 3 before row 2" if order else "END, and 2 accepted rows have not come out: 2, 5"
    case(f"{kind}: a row missing", "do last_missing", "stream", order, text=f"answers {lost}")
    lost = "END, and 6 accepted rows have not come out: 0 to 5"
    case(f"{kind}: all rows missing", "do swallow", "stream", order, text=f"answers {lost}")
case(
    "a wrong id among many",
    "poke /0 1 400 70",
    "stream",
    False,
    100,
    text="answers row 51, which was not sent or has come out before",
)
case("rows out of order", "do backwards", "stream", text="answers row 2 before row 0")
case("many rows out of order", "do backwards", "stream", True, 100, text="answers row 99 before row 0")
case(
    "run: a row missing",
    "do last_missing",
    "run",
    "next",
    "a",
    kind="exit 1",
    text="1 accepted row has not come out: 3",
)
case(
    "run: all rows missing",
    "do swallow",
    "run",
    "next",
    "a",
    kind="exit 1",
    text="3 accepted rows have not come out: 1 to 3",
)
case("run: rows again", "do again", "run", "next", "a", kind="exit 1", text="and only 0 have not come out")
case("run: one id for all rows", "do same", "run", "next", "a", kind="exit 1", text="twice")
case("OK without rows", "do no_rows", "stream", text="no rows, and OK means at least one")
case("run: OK without rows", "do no_rows", "run", "next", "a", kind="exit 1", text="no rows, and OK means at least one")

# ---- Statuses ----

SLOTS = {
    "run": ("add", {0}),
    "start": ("stream", {0}),
    "send": ("stream", {0}),
    "drain_results": ("stream", {0, 1, 3}),
    "wait": ("wait", {0, 1}),
    "arm": ("wait", {0, 2}),
    "cancel": ("stream", {0}),
    "statistics": ("stream", {0}),
    "stop_runtime": ("stream", {0, 4}),
    "release": ("stream", {0, 4}),
}
for slot, (step, known) in SLOTS.items():
    for status in {-1, 1, 2, 3, 4, 5, 15, -(2**31)} - known:
        said = "although every accepted row" if (slot, status) == ("send", 1) else f"{slot} answers the status {status}"
        case(f"{slot} answers {status}", f"status {slot} {status}", step, text=said)
    if slot != "release":  # whose errors are ignored: the handle is gone, or belongs to the parent process
        case(f"{slot} answers an unknown error", f"status {slot} 99", step, kind="InternalError", text="as told")
case("END before a stop", "status drain_results 3", "stream", text="answers END, and 3 accepted rows have not come out")
case("no END after a stop", "do never_end", "stream", text="drain_results answers WOULD_BLOCK after stop_runtime")
case("no results where wait saw some", "status wait 0;do swallow", "run", "next", "a", kind="exit 1")
case(
    "READY for ever", "status arm 2;status wait 1", "wait", text="arm answers READY, and wait WOULD_BLOCK, 10000 times"
)
case("wait without end", "status wait 1", "wait_after_stop", text="wait answers WOULD_BLOCK after stop_runtime")
case(
    "run: a stop that fails, and rows without end",
    "status stop_runtime -1;do swallow",
    "run",
    "next",
    "a",
    kind="exit 1",
    text="stop_runtime answers the status -1",
)
case("the handle 0", "do handle_zero", "stream", text="start answers OK and the handle 0")
for slot, function, columns in (("run", "add", "a,b"), ("send", "next", "a"), ("drain_results", "next", "a")):
    for status in (-1, 5):
        said = f"{slot} answers the status {status}"
        case(f"run: {slot} {status}", f"status {slot} {status}", "run", function, columns, kind="exit 1", text=said)
case("arguments not taken", "do keep", "add", text="run answers OK and has not taken its arguments")
case("arguments not taken, async", "do keep", "stream", text="send answers OK and has not taken its arguments")
case("short statistics", "do short", "stream", text="statistics fills in 8 bytes")
case("wild statistics", "do garbage", "stream", kind="returned", text="[0, 1, 2, 3, 4, 5]")
case("run: wild statistics", "do garbage", "run", "next", "a", kind="exit 0", text="3 rows written")
for word in ("log_nothing", "log_garbage", "log_huge"):
    case(f"a report, {word}", f"do {word}", "stream", kind="returned", text="[0, 1, 2, 3, 4, 5]")
case("set_log answers -1", "status set_log -1", "stream", kind="returned", text="[0, 1, 2, 3, 4, 5]")
case("an error without text", "status run 19;do no_text", "add", kind="UserCodeError", text="no text")
case(
    "an error that is no text",
    "status run 19;do bad_text",
    "add",
    kind="UserCodeError",
    text="\N{REPLACEMENT CHARACTER}",
)
case("an error that controls terminals", "status run 19;do bad_text", "add", kind="UserCodeError", text=r"\x1b[31m")
case("an endless error", "status run 19;do huge_text", "add", kind="UserCodeError", text="xxx ...")

# ---- Descriptors ----

UNKNOWN = "{'add': 'kind 6', 'greet': 'sync', 'next': 'async'}"
case("an unknown kind is listed", "function 0 kind 6", "listed", kind="returned", text=UNKNOWN)
case(
    "an unknown kind is refused",
    "function 0 kind 6",
    "add",
    kind="UnsupportedCall",
    text="hostile.add: is of the kind 'kind 6', which this host cannot call",
)
case("inspect: an unknown kind", "function 0 kind 6", "inspect", kind="exit 0", text="kind 6, which this host cannot")
case("run: an unknown kind", "function 0 kind 6", "run", "add", "a,b", kind="exit 1", text="hostile.add")
for hostile, said in {
    "do describe_nothing": "describe answers NULL",
    "descriptor size 8": "size is 8",
    "descriptor n_functions 4": "function number 3 is NULL",
    "descriptor n_functions -1": "more than",
    "descriptor functions 0": "functions are NULL",
    "descriptor hash 0": "hash is NULL",
    "descriptor name \x1b[31m": "can be printed",
    "descriptor name \xff": "is not UTF-8",
    "descriptor huge 0": "has no end within",
    "function 1 null 0": "function number 1 is NULL",
    "function 1 name 0": "the name of function number 1 is NULL",
    "name 1 add": "two functions have the name 'add'",
    "name 1 a\tb": "can be printed",
    "name 1 ": "can be printed",
    "function 0 size 8": "function number 0: size is 8",
    "function 0 arguments 0": "its schema is NULL",
    "function 0 returns 0": "its schema is NULL",
    "function 0 options 1": "options belong to async functions",
    "function 2 options 0": "options belong to async functions",
    "function 0 kind 3": "`first_step` is not the number of its three steps",
    "options 0 8": "size is 8",
    "options 8 9": "its option ordered is 9",
    "options 52 77": "its option retry_on is 77",
    "options 48 100000": "its option max_attempts is 100000",
    "schema takes_two n_children -1": "-1 children",
    "schema takes_two n_children 5000": "5000 children",
    "schema takes_two children 0": "children of its schema are NULL",
    "schema takes_two child 0": "its schema is NULL",
    "schema a dictionary 0": "dictionary-encoded",
    "schema a itself 1": "nested more than",
    "schema a itself 3": "its schema",
    "schema a name \x1b": "cannot be printed",
    "schema a name \xff": "is not UTF-8",
    **{
        f"schema a format {form}": "does not know the Arrow format"
        for form in (
            *(
                "zzz",
                "+l",
                "+m",
                "+us:0,1",
                "w:",
                "w:-1",
                "w:99999999999999999999",
                "d:999,999",
                "d:",
                "d:5",
                "vu",
                "+r",
            ),
            *("tsn", "tsx:", "d:10,2,77", "+w:3", "l ", "tin", "ts"),
        )
    },
}.items():
    case(f"descriptor: {hostile!r}", hostile, "listed", text=said)
    case(f"inspect: {hostile!r}", hostile, "inspect", kind="exit 1", text=said)
case(
    "a time zone that does not exist", "schema b format tsn:Not/AZone", "run", "add", "a,b", kind="exit 1", text="Zone"
)
for form in ("c", "u", "+s", "n"):
    case(
        f"outcomes are {form}", f"do outcomes;schema outcome format {form}", "outcomes", text="'outcome' must be uint8"
    )
case("errors are numbers", "do outcomes;schema error format l", "outcomes", text="'error' must be string")
case("ids are signed", "schema id format l", "stream", text="'id' must be uint64")
case("no ids", "schema id name ident", "stream", text="without a field 'id'")
case("two ids", "schema attempts name id", "stream", text="with two fields 'id'")
case("values of another type", "schema value format u", "add", text="'value' must be int64")


@pytest.fixture(scope="module")
def results(plain_cc: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Kind and text of each case."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "in.csv").write_text("a,b,name\n1,10,x\n2,20,y\n3,30,z\n")
    plugin = plain_cc(HERE / "hostile.c", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-O1")
    pending = list(CASES)
    found: dict[str, tuple[str, str]] = {}
    while pending:
        lines = "\n".join(json.dumps([name, *CASES[name][:3]]) for name in pending)
        child = subprocess.run(
            [sys.executable, str(HERE / "hostile_cases.py"), str(plugin), str(folder)],
            input=lines,
            capture_output=True,
            text=True,
            timeout=600,
        )
        for line in child.stdout.splitlines():
            name, kind, text = json.loads(line)
            found[name] = kind, text
        pending = [name for name in pending if name not in found]
        if pending:
            found[pending.pop(0)] = f"ended with {child.returncode}", child.stderr
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_broken_plugin_is_refused(results: dict[str, tuple[str, str]], name: str) -> None:
    *_, kind, text = CASES[name]
    assert results[name][0] == kind, results[name]
    assert text in results[name][1]
    if kind.startswith("exit 1"):
        assert "Traceback" not in results[name][1]
        assert results[name][1].count("\n") == 1, "one line"
