"""A program: calls plugins that break the contract in random ways, and looks for what the host must never do.

    python tests/fuzz/broken_plugins.py SECONDS [SEED]

A case is a list of commands for tests/abi/hostile.c and a step of tests/abi/hostile_cases.py, both made from a seed.
Cases run in child processes, many in each. What must not happen: a crash, a hang, an exception that is not of the
toolkit, a traceback of the command line, a wrong answer. Prints each failure as a line for the file in corpus/, whose
lines `make test` runs again. Exits with 1 if there was one.

Left out is what no host can see: a buffer that is shorter than its array says, and a slot that does not return.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from arroyo_udf_plugin import errors

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus" / "broken_plugins.jsonl"
Case = tuple[str, str, list[Any]]  # the commands, the step, its arguments

FORMATS = [
    *("n", "b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "u", "U", "z", "Z", "tdD", "tdm", "tts", "ttn"),
    *(
        "tsn:",
        "tsu:UTC",
        "tsn:Not/AZone",
        "tDs",
        "tin",
        "d:5,2",
        "d:38,-5",
        "d:999,9",
        "d:",
        "d:10,2,256",
        "w:0",
        "w:3",
    ),
    *(
        "w:-1",
        "w:99999999999999999999",
        "+s",
        "+l",
        "+L",
        "+m",
        "+w:3",
        "+us:0,1",
        "+ud:",
        "+r",
        "vu",
        "+vl",
        "?",
        "l ",
    ),
    *("\xff", "\x1b[31m"),
]
WILD = [-(2**63), -1, 2**63 - 1]
STATUSES = [-(2**31), -1, 0, 1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20, 21, 22, 23, 99, 2**31 - 1]
SLOTS = [
    "run",
    "start",
    "send",
    "drain_results",
    "wait",
    "arm",
    "disarm",
    "cancel",
    "statistics",
    "stop_runtime",
    "release",
]
SCHEMAS = [
    *("a", "b", "name", "value", "greeting", "outcome", "error", "id", "attempts", "takes_two", "takes_one"),
    *("takes_name", "ran", "greeted", "plain", "drained"),
]
WORDS = [
    *("outcomes", "fail", "nothing", "no_schema", "other_schema", "keep", "handle_zero", "swallow", "no_rows"),
    *("never_end", "last_missing", "more", "same", "backwards", "unknown", "again", "garbage", "short", "no_text"),
    *("bad_text", "huge_text", "describe_nothing", "log_nothing", "log_garbage", "log_huge"),
]
STEPS: list[tuple[str, list[Any]]] = [
    *(("add", [validate]) for validate in (False, True)),
    *(("greet", [validate]) for validate in (False, True)),
    ("outcomes", []),
    *(("stream", [ordered]) for ordered in (False, True)),
    ("wait_after_stop", []),
    ("listed", []),
    ("inspect", []),
    *(("run", [function, columns]) for function, columns in (("add", "a,b"), ("greet", "name"), ("next", "a"))),
]


# ---- Cases -----------------------------------------------------------------------------------------------------------


def made(seed: int) -> Case:
    """The case of a seed."""
    choose = random.Random(seed)
    step, arguments = choose.choice(STEPS)
    commands = [_command(choose) for _ in range(choose.choice([1, 1, 1, 2, 2, 3]))]
    return ";".join(commands), step, arguments


def _command(choose: random.Random) -> str:
    kinds = {_array: 6, _poke: 4, _data: 2, _status: 3, _do: 4, _schema: 3, _function: 2, _descriptor: 1, _options: 1}
    (kind,) = choose.choices(list(kinds), list(kinds.values()))
    return kind(choose)


def _path(choose: random.Random) -> str:
    return choose.choice(["/", "/0", "/0", "/1", "/1", "/2", "/2", "/3", "/4"])


def _array(choose: random.Random) -> str:
    field = choose.choice(["length", "offset", "null_count", "n_buffers", "n_children", "buffer", "child", "pointer"])
    if field == "pointer":
        return f"array {_path(choose)} {choose.choice(['buffers', 'children', 'dictionary', 'release'])} 0"
    numbers = {"buffer": [0, 1, 2], "child": [0, 1, 2, 3, 4]}.get(field, [*WILD, 0, 1, 2, 3, 4, 5, 9])
    return f"array {_path(choose)} {field} {choose.choice(numbers)}"


def _poke(choose: random.Random) -> str:
    """The last of three offsets stays within the data, because no host knows how long the data is."""
    at = choose.choice([0, 4, 8, 12, 16, 3, 5, 24, 40])
    value = choose.choice([0, 1, 2, 3, 4, 6, 7, 20, -1, -5, 255, *([2**31 - 1] if at <= 8 and at % 4 == 0 else [])])
    return f"poke {_path(choose)} {choose.randrange(3)} {at} {value}"


def _data(choose: random.Random) -> str:
    byte = choose.choice([0, 1, 2, 3, 4, 9, 128, 255])
    return f"data {_path(choose)} {choose.randrange(3)} {choose.randrange(13)} {byte}"


def _status(choose: random.Random) -> str:
    return f"status {choose.choice(SLOTS)} {choose.choice(STATUSES)}"


def _do(choose: random.Random) -> str:
    return f"do {choose.choice(WORDS)}"


def _schema(choose: random.Random) -> str:
    name = choose.choice(SCHEMAS)
    match choose.choice(["format", "format", "name", "n_children", "children", "child", "dictionary", "itself"]):
        case "format":
            return f"schema {name} format {choose.choice(FORMATS)}"
        case "name":
            return f"schema {name} name {choose.choice(['value', 'id', 'error', 'x', chr(255), chr(27), 'a b'])}"
        case "n_children":
            return f"schema {name} n_children {choose.choice([*WILD, 0, 1, 2, 4097, 2**62])}"
        case "itself":
            return f"schema {name} itself {choose.choice([1, 2, 3])}"
        case field:
            return f"schema {name} {field} 0"


def _function(choose: random.Random) -> str:
    number = choose.randrange(3)
    match choose.choice(["size", "kind", "kind", "name", "pointer", "options"]):
        case "size":
            return f"function {number} size {choose.choice([0, 8, 63, 64, 65, 10**6])}"
        case "kind":
            return f"function {number} kind {choose.choice([0, 1, 2, 3, 4, 5, 2**32 - 1])}"
        case "name":
            return f"name {number} {choose.choice(['add', 'next', '', chr(255), chr(27), 'a b/../c', '__class__'])}"
        case "options":
            return f"function {number} options {choose.choice([0, 1])}"
        case _:
            return f"function {number} {choose.choice(['name', 'arguments', 'returns', 'null'])} 0"


def _descriptor(choose: random.Random) -> str:
    number = choose.choice([0, 1, 2, 4, 8, 55, 1000, 70_000, -1])
    match choose.choice(["size", "n_functions", "functions", "hash", "name", "huge"]):
        case "n_functions":
            return f"descriptor n_functions {choose.choice([0, 1, 2, 4, 70_000, -1])}"
        case "name":
            return f"descriptor name {choose.choice([chr(255), chr(27), 'x'])}"
        case field:
            return f"descriptor {field} {number}"


def _options(choose: random.Random) -> str:
    return f"options {4 * choose.randrange(32)} {choose.choice([0, 1, 2, 3, 7, 8, 128, 10**6, -1, 2**31 - 1])}"


# ---- What may come out -----------------------------------------------------------------------------------------------

TYPED = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.ArroyoUdfError)}
RIGHT = {"add": [11, 22, 33], "greet": ["hh", "hh", "hh"]}


def complaint(case: Case, kind: str, text: str) -> str | None:
    """What is wrong about a result; None if it may be so."""
    hostile, step, arguments = case
    commands = [command for command in hostile.split(";") if command]
    if kind.startswith("exit "):
        if kind not in ("exit 0", "exit 1") or "Traceback" in text:
            return "the command line does not say what is wrong"
        written = step != "run" or "3 rows written of 3 read" in text
        return None if kind == "exit 1" or written else "rows are missing"
    if kind != "returned":
        told = {command.split()[0] for command in commands}
        reasons = {
            "AbiError": told,
            "RowError": told,
            "UnsupportedCall": told,
            "InvalidArgument": told & {"status", "schema"},
        }
        if kind == "KeyError":  # of the step, which looks for a function by name
            reason = told & {"name", "descriptor"}
        else:
            reason = reasons.get(kind, told & {"status"}) if kind in TYPED else set()
        if kind == "UnicodeDecodeError" and case[1:] == ("greet", [False]):
            return None  # of the step, which reads values that were not validated
        names = (
            "hostile" in text
            or kind == "KeyError"
            or {"no_text", "huge_text", "descriptor"} & set(hostile.replace(";", " ").split())
        )
        return None if reason and names else "an exception of another kind"
    answer = eval(text, {"nan": None, "inf": None})  # a repr, which this program's child has printed
    return None if _is_right(step, arguments, answer, commands) else "a wrong answer"


def _is_right(step: str, arguments: Sequence[Any], answer: Any, commands: Sequence[str]) -> bool:
    if step == "stream":
        return answer == list(range(6)) if arguments[0] else len(answer) == 6 and set(answer) == set(range(6))
    if step == "outcomes":
        return len(answer) == 3 and all(row.get("outcome", 0) == 0 or row["value"] is None for row in answer)
    if step in RIGHT:
        is_told = any(command.split()[0] in ("array", "poke", "data", "schema") for command in commands)
        return len(answer) == 3 and (is_told or answer == RIGHT[step])
    return True


# ---- Running them ----------------------------------------------------------------------------------------------------


def compiled(folder: Path) -> Path:
    plugin = folder / "hostile.so"
    include = ROOT / "native" / "include"
    source = ROOT / "tests" / "abi" / "hostile.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{include}", str(source), "-o", str(plugin)], check=True)
    return plugin


def results(plugin: Path, folder: Path, cases: Sequence[Case]) -> Iterator[tuple[str, str]]:
    """Kind and text of each. A child that crashes or hangs ends with that case; the next child goes on after it."""
    (folder / "in.csv").write_text("a,b,name\n1,10,x\n2,20,y\n3,30,z\n")
    done = 0
    while done < len(cases):
        lines = "\n".join(json.dumps([i, *cases[i]]) for i in range(done, len(cases)))
        child = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "abi" / "hostile_cases.py"), str(plugin), str(folder)],
            input=lines,
            capture_output=True,
            text=True,
        )
        for line in child.stdout.splitlines():
            _, kind, text = json.loads(line)
            yield kind, text
            done += 1
        if done < len(cases):
            yield f"ended with {child.returncode}", child.stderr
            done += 1


def failures(cases: Sequence[Case]) -> list[str]:
    """The cases that show what must not happen, each with the reason."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin = compiled(folder)
        for case, (kind, text) in zip(cases, results(plugin, folder, cases), strict=True):
            wrong = "a crash or a hang" if kind.startswith("ended") else complaint(case, kind, text)
            if wrong:
                found.append(f"{json.dumps(case)}\n    {wrong}: {kind}: {text[:2000]}")
    return found


def corpus() -> list[Case]:
    return [tuple(json.loads(line)) for line in CORPUS.read_text().splitlines()]


def main() -> int:
    seconds = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    end, count = time.monotonic() + seconds, 0
    print(f"broken plugins: from seed {seed}", flush=True)
    found: list[str] = []
    while time.monotonic() < end and len(found) < 20:
        some = failures([made(seed + i) for i in range(count, count + 500)])
        print(*some, sep="\n", end="\n" if some else "", flush=True)
        found += some
        count += 500
    print(f"broken plugins: {count} cases, {len(found)} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
