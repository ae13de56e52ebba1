"""A host that breaks what it passes: arrays, options, handles; and compares what a plugin makes of it with the rules.

    plugin_host.py PLUGIN fuzz SEED SECONDS [PROGRESS]   inputs from a seed; PROGRESS is a file for the latest of them
    plugin_host.py PLUGIN replay                         inputs from stdin, one a line

Each input ends in one of two ways. It is accepted: then each row is the value, the null or the error that c_arrays.py
says, exactly once, and the inputs are released. Or it is refused: then inputs and outputs are untouched. Anything else
is printed, and ends this process with status 1. Buffers end at a guard page, so reading beyond one is a crash.

The functions of the plugin: same_* answer their argument, joined_* its items as a text, pair the two fields of a
struct, last the last of four arguments; those that begin with async_ do the same, and whole_* get whole arrays.
The aggregate `total` has the sum of one argument, and the bytes of the other; `rows_of` gives two rows.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from c_arrays import OFFSETS, WIDTHS, Exported, Node, Type, resize, why_refused
from opened import (
    ERRORS,
    INVALID_ARGUMENT,
    INVALID_STATE,
    OK,
    WOULD_BLOCK,
    FoundError,
    Function,
    Plugin,
    demand,
)

from arroyo_udf_plugin._cdef import ffi

VALUE, ERROR = 0, 1
PATIENCE_NS = 20_000_000_000  # for results: a hang


# ---- One batch -----------------------------------------------------------------------------------------------------


def check_batch(plugin: Plugin, function: Function, batch: Node) -> None:
    refused = why_refused(batch, function.arguments)
    for column in batch.children or []:
        if not refused and column and column.length < batch.end:
            refused = "shorter than the batch"
    exported = Exported(batch, plugin.regions)
    plugin.open.append(exported)
    status, text, rows = (run if function.is_sync else send)(plugin, function, exported)
    if refused:
        demand(status == INVALID_ARGUMENT, f"status {status} for arrays to be refused ({refused}): {text}")
        demand(exported.is_untouched(), f"inputs were touched, although refused ({refused})")
        demand(function.name in text, f"the text of a refusal does not name the function: {text}")
        plugin.open.remove(exported)
        exported.free()
        return
    demand(status == OK, f"status {status}: {text}")
    demand(exported.is_moved(), "the arguments were not moved")
    demand(len(rows) == batch.length, f"{len(rows)} results for {batch.length} rows")
    for row, result in enumerate(rows):
        kind, expected = function.expected(batch, row)
        outcome, found = result.get("outcome", VALUE), result["value"]
        if kind == "error":
            demand(outcome == ERROR, f"row {row} is no error, but {result}")
            head = f".{function.name}, row {result.get('id', row)}: "
            demand(head in result["error"], f"row {row}: {result['error']!r}")
        else:
            same = outcome == VALUE and (_plain(found) == expected or (found != found and expected != expected))
            demand(same, f"row {row} is {result}, not {expected!r}")
    plugin.collect()
    demand(len(plugin.open) < 50, "inputs are not released")


def _plain(found: Any) -> Any:
    return list(found.values()) if isinstance(found, dict) else found


def run(plugin: Plugin, function: Function, exported: Exported) -> tuple[int, str, list[dict[str, Any]]]:
    results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema **")
    status, text = plugin.call("run", function.number, exported.array, ffi.NULL, results, schema)
    if status != OK:
        demand(not any(bytes(ffi.buffer(results))) and schema[0] == ffi.NULL, "outputs were touched by a refused run")
        return status, text, []
    return status, text, plugin.rows(results, schema[0])


def send(plugin: Plugin, function: Function, exported: Exported) -> tuple[int, str, list[dict[str, Any]]]:
    if function.handle is None:
        function.handle = start(plugin, function, ffi.NULL)
        demand(function.handle is not None, "a start without options failed")
    rows = exported.array.length
    first = function.next_id
    status, text = plugin.call("send", function.handle, first, exported.array, ffi.NULL)
    if status != OK:
        return status, text, []
    function.next_id += rows
    return status, text, drained(plugin, function.handle, first, rows)


def drained(plugin: Plugin, handle: Any, first: int, rows: int) -> list[dict[str, Any]]:
    """The results of these rows, in their order."""
    found: dict[int, dict[str, Any]] = {}
    while len(found) < rows:
        results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema **")
        status, text = plugin.call("drain_results", handle, 0, results, schema)
        if status != OK:
            demand(not any(bytes(ffi.buffer(results))) and schema[0] == ffi.NULL, f"outputs touched at status {status}")
            demand(status == WOULD_BLOCK, f"drain_results: status {status} {text}")
            demand(plugin.call("wait", handle, 1, PATIENCE_NS)[0] == OK, f"no results: {len(found)} of {rows}")
            continue
        for row in plugin.rows(results, schema[0]):
            demand(row["id"] not in found, f"id {row['id']} came twice")
            found[row["id"]] = row
    demand(sorted(found) == list(range(first, first + rows)), f"ids {sorted(found)} for {first} and {rows} rows")
    return [found[id_] for id_ in range(first, first + rows)]


def start(plugin: Plugin, function: Function, options: Any) -> int | None:
    """The handle; None if the start was refused."""
    handle = ffi.new("arroyo_udf_handle *")
    status, _text = plugin.call("start", function.number, options, handle)
    demand(status == OK or status in ERRORS, f"start: status {status}")
    demand((status == OK) == (handle[0] != 0), f"start: status {status}, handle {handle[0]}")
    return handle[0] if status == OK else None


# ---- Inputs --------------------------------------------------------------------------------------------------------

LENGTHS = [0, 1, 2, 3, 5, 8, 9, 63, 64, 65, 70]
WILD = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 4, 70, 2**60, 2**62, 2**63 - 1]  # between 70 and 2**59: a lie
WILD_OFFSETS = [-(2**31), -1, 0, 1, 2, 3, 5, 2**30, 2**31 - 1]
TEXTS = [b"", b"a", b"abcdefgh", b"caf\xc3\xa9", b"\xf0\x9f\x8e\x89", b"\xff", b"\xc3", b"\xed\xa0\x80", b"ab\0c"]

STATES = [bytes(16), b"abcdefghijklmnop", b"\xff" * 16]  # of the aggregate `total`


def arrays(chance: random.Random, type_: Type, end: int) -> Node:
    """A valid array of at least `end` rows; but for its texts."""
    offset = chance.choice([0, 0, 1, 7, 8])
    length = end + chance.choice([0, 0, 3])
    total = offset + length
    nulls = chance.choice([0, 0, -1, 1])
    bitmap = chance.randbytes((total + 7) // 8) if nulls or chance.random() < 0.2 else None
    buffers: list[bytes | None] = [bitmap]
    children: list[Node | None] = []
    if type_.format in WIDTHS:
        buffers.append(chance.randbytes(total * WIDTHS[type_.format] or (total + 7) // 8))
    elif type_.format == "+s":
        children = [arrays(chance, child, total) for child in type_.children]
    else:
        width, offsets, texts = OFFSETS[type_.format], [chance.choice([0, 0, 2])], b"\xff\xff"
        few = TEXTS[: chance.choice([3, len(TEXTS)])]
        if type_.format == "z":
            few = [*STATES, chance.choice(TEXTS)]
        for _ in range(total):
            text = chance.choice(few)
            texts += text
            offsets.append(offsets[-1] + (len(text) if type_.shape[0] == 3 else chance.choice([0, 1, 2])))
        buffers.append(b"".join(i.to_bytes(width, "little", signed=True) for i in offsets))
        if type_.shape[0] == 3:
            buffers.append(texts[2 - offsets[0] :])
        else:
            children = [arrays(chance, type_.children[0], offsets[-1])]
    if nulls > 0 and bitmap is None:
        nulls = 0
    return Node(length, offset, nulls, len(buffers), len(children), buffers, children, chance.choice([0, 0, 1, 3]))


def break_(chance: random.Random, node: Node, type_: Type) -> None:
    """Breaks one thing about an array, or about one of its children."""
    if node.children and chance.random() < 0.6:
        i = chance.randrange(len(node.children))
        child = node.children[i]
        if child and i < len(type_.children):
            break_(chance, child, type_.children[i])
            return
    what = chance.random()
    if what < 0.2:
        setattr(node, chance.choice(["length", "offset", "null_count", "n_buffers", "n_children"]), chance.choice(WILD))
    elif what < 0.65 and node.buffers and type_.format in OFFSETS and node.buffers[1]:
        width, offsets = OFFSETS[type_.format], bytearray(node.buffers[1])
        i = chance.randrange(len(offsets) // width)
        wild = chance.choice(WILD_OFFSETS).to_bytes(width, "little", signed=True)
        offsets[i * width : (i + 1) * width] = wild
        node.buffers[1] = bytes(offsets)
    elif what < 0.75 and node.buffers:
        node.buffers[chance.randrange(len(node.buffers))] = None
    elif what < 0.8:
        node.buffers = None
    elif what < 0.84:
        node.children = None
    elif what < 0.88 and node.children:
        node.children[chance.randrange(len(node.children))] = None
    elif what < 0.92:
        node.released = True
    elif what < 0.95:
        node.dictionary = True
    elif node.buffers and node.buffers[-1]:
        data = bytearray(node.buffers[-1])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        node.buffers[-1] = bytes(data)


def batches(chance: random.Random, function: Function) -> Node:
    rows = chance.choice(LENGTHS)
    batch = arrays(chance, function.arguments, rows)
    batch.length = rows
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        break_(chance, batch, function.arguments)
    # A batch that has more buffers or children than it says, or fewer: its lists are as long as it says.
    _fit_lists(batch)
    resize(batch, function.arguments, chance.choice([b"\0", b"a", b"\xff", b"\1\0\0\0"]))
    return batch


def _fit_lists(node: Node) -> None:
    if node.buffers is not None and 0 <= node.n_buffers < 9:
        node.buffers += [None] * (node.n_buffers - len(node.buffers))
    if node.children is not None and 0 <= node.n_children < 9:
        node.children += [None] * (node.n_children - len(node.children))
    for child in node.children or []:
        if child:
            _fit_lists(child)


# ---- Options and handles -------------------------------------------------------------------------------------------

NUMBERS = [0, 1, 2, 3, 7, 100, 2**16, 2**31, 2**32 - 1]
WIDE_NUMBERS = [*NUMBERS, 2**40, 2**63, 2**64 - 1]


def check_options(plugin: Plugin, function: Function, chance: random.Random) -> None:
    """A start with wild options is refused, or rows come out exactly once."""
    size = ffi.sizeof("arroyo_udf_options")
    memory = ffi.new("char[]", 2 * size)
    options = ffi.cast("arroyo_udf_options *", memory)
    options.size = (
        size if chance.random() < 0.7 else chance.choice([0, 1, 8, size - 1, size + 8, 2 * size, 2**40, 2**63])
    )
    names = [name for name, field in ffi.typeof("arroyo_udf_options").fields if field.type.kind == "primitive"]
    for name in chance.sample(names[1:], chance.choice([0, 1, 2, 4])):
        wide = ffi.sizeof(dict(ffi.typeof("arroyo_udf_options").fields)[name].type) == 8
        setattr(options, name, chance.choice(WIDE_NUMBERS if wide else NUMBERS))
    if chance.random() < 0.2:
        memory[chance.randrange(size, 2 * size)] = b"\1"
    handle = start(plugin, function, options)
    if handle is None:
        return
    options.size = 0  # the plugin has copied them
    exported = Exported(arrays(random.Random(1), function.arguments, 3), plugin.regions)
    rows = exported.array.length = 3
    plugin.open.append(exported)
    status, text = plugin.call("send", handle, 5, exported.array, ffi.NULL)
    demand(status in (OK, WOULD_BLOCK), f"send to a started function: {status} {text}")
    if status == OK:
        drained(plugin, handle, 5, rows)
    else:
        demand(exported.is_untouched(), "WOULD_BLOCK touched the inputs")
        plugin.open.remove(exported)
        exported.free()
    demand(plugin.call("stop_runtime", handle, chance.choice([1, 2]), 10**9)[0] == OK, "stop_runtime failed")
    demand(plugin.call("release", handle)[0] == OK, "release failed")
    demand(plugin.call("release", handle)[0] == INVALID_STATE, "a second release is no INVALID_STATE")
    plugin.collect()


def check_handles(plugin: Plugin, function: Function, chance: random.Random) -> None:
    """Slots with wild handles and NULL for pointers answer an error and touch nothing."""
    valid = function.handle or 0
    handle = chance.choice([0, 1, valid ^ 1, valid ^ 1 << 40, valid ^ 1 << 63, chance.getrandbits(64)])
    statistics = ffi.new("arroyo_udf_statistics *", {"size": ffi.sizeof("arroyo_udf_statistics")})
    results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema **")
    exported = Exported(arrays(random.Random(1), function.arguments, 3), plugin.regions)
    null = ffi.NULL
    number = chance.choice(WIDE_NUMBERS[:-3])
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("send", (number, exported.array, null)),
        ("send", (number, null, null)),
        ("drain_results", (number, results, schema)),
        ("drain_results", (number, null, schema)),
        ("drain_results", (number, results, null)),
        ("wait", (chance.choice(NUMBERS), chance.choice(WIDE_NUMBERS))),
        ("arm", (chance.choice(NUMBERS), null, null)),
        ("disarm", ()),
        ("cancel", (number, number)),
        ("statistics", (statistics,)),
        ("statistics", (null,)),
        ("stop_runtime", (chance.choice(NUMBERS), number)),
        ("release", ()),
        ("set_log", (null,)),
    ]
    slot, arguments = chance.choice(calls)
    if handle in {other.handle for other in plugin.functions}:
        return
    status, _text = plugin.call(slot, handle, *arguments)
    demand(status in ERRORS, f"{slot} of handle {handle:#x}: status {status}")
    demand(exported.is_untouched(), f"{slot} of a wrong handle touched the inputs")
    demand(not any(bytes(ffi.buffer(results))) and schema[0] == null, f"{slot} of a wrong handle touched the outputs")
    demand(getattr(plugin.table, slot)(handle, *arguments, null) == status, f"{slot} without an error: another status")
    exported.free()
    if valid:
        check_null(plugin, function, chance)


def check_null(plugin: Plugin, function: Function, chance: random.Random) -> None:
    """Slots of a started function, with NULL or a wrong number where something is needed."""
    null = ffi.NULL
    results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema **")
    small = ffi.new("arroyo_udf_statistics *", {"size": 8})
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("send", (function.next_id, null, null)),
        ("drain_results", (0, null, schema)),
        ("drain_results", (0, results, null)),
        ("arm", (1, null, null)),
        ("arm", (chance.choice([0, 4, 2**31]), null, null)),
        ("wait", (chance.choice([0, 4, 2**31]), 0)),
        ("statistics", (null,)),
        ("statistics", (small,)),
        ("stop_runtime", (chance.choice([0, 3, 2**31]), 0)),
    ]
    slot, arguments = chance.choice(calls)
    status, _ = plugin.call(slot, function.handle, *arguments)
    demand(status == INVALID_ARGUMENT, f"{slot}{arguments} answered {status}")
    demand(not any(bytes(ffi.buffer(results))) and schema[0] == null, f"{slot} touched the outputs")


# ---- The program ---------------------------------------------------------------------------------------------------


def fuzz(plugin: Plugin, seed: int, seconds: float, progress: Path | None) -> None:
    until = time.monotonic() + seconds
    asynchronous = [function for function in plugin.functions if not function.is_sync]
    inputs = 0
    while time.monotonic() < until:
        chance = random.Random(f"{seed} {inputs}")
        what = chance.random()
        if what < 0.9 or not asynchronous:
            function = chance.choice(plugin.functions)
            batch = batches(chance, function)
            case = {"function": function.name, "batch": batch.to_json()}
        else:
            function = chance.choice(asynchronous)
            case = {"function": function.name, "seed": f"{seed} {inputs}", "options": what < 0.95}
        if progress:
            progress.write_text(json.dumps(case))
        try:
            replay(plugin, case)
        except Exception as error:
            raise FoundError(f"{error}\n{json.dumps(case)}") from error
        inputs += 1
    plugin.end()
    print(f"{inputs} inputs")


def replay(plugin: Plugin, case: dict[str, Any]) -> None:
    function = next(function for function in plugin.functions if function.name == case["function"])
    if "batch" in case:
        check_batch(plugin, function, Node.from_json(case["batch"]))
    elif case["options"]:
        check_options(plugin, function, random.Random(case["seed"]))
    else:
        check_handles(plugin, function, random.Random(case["seed"]))


def main() -> None:
    path, command, *rest = sys.argv[1:]
    plugin = Plugin(path)
    try:
        if command == "fuzz":
            fuzz(plugin, int(rest[0]), float(rest[1]), Path(rest[2]) if len(rest) > 2 else None)
            return
        for line in sys.stdin:
            replay(plugin, json.loads(line))
            print("passed", flush=True)
        plugin.end()
    except FoundError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
