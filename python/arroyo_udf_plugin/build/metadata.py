"""The block at the head of a Python source (PEP 723, "Inline script metadata"): its packages, and options for all its
async functions.

    # /// script
    # dependencies = ["aiohttp>=3.9"]
    # [tool.arroyo-udf]
    # allowed_in_flight = 1000
    # timeout = 2.5
    # ///

Options have the decorator's names, or Arroyo's three. The decorator overrides the block.
"""

from typing import Any

from ..author.options import check
from ..errors import BuildError

ARROYO = {
    "async_results_ordered": "ordered",
    "async_max_concurrency": "allowed_in_flight",
    "async_timeout_seconds": "timeout",
}
"""Arroyo's name of an option -> ours."""


def options(text: str, file: str) -> dict[str, Any]:
    """The options of the source's block; empty if it has none. Raises BuildError with the line of the block."""
    line, script = _script(text, file)
    try:
        table = script.get("tool", {}).get("arroyo-udf", {}).items()
    except AttributeError:
        raise BuildError("[tool.arroyo-udf] in its script block is not a table", file, line) from None
    chosen: dict[str, Any] = {}
    for written, value in table:
        name = ARROYO.get(written, written)
        value = tuple(value) if isinstance(value, list) else value
        if name == "batch_size":
            text = "[tool.arroyo-udf] has batch_size, which belongs to the one function that takes lists"
            raise BuildError(f"{text}; write it in its decorator: @udf(batch_size={value!r})", file, line)
        if wrong := check(name, value):
            raise BuildError(f"[tool.arroyo-udf] {wrong}", file, line)
        if name in chosen:
            raise BuildError(f"[tool.arroyo-udf] chooses {name!r} twice, under Arroyo's name too", file, line)
        chosen[name] = value
    return chosen


def dependencies(text: str, file: str) -> tuple[int, list[str]]:
    """The line of the source's block, and the packages that it lists. Raises BuildError with that line."""
    line, script = _script(text, file)
    listed = script.get("dependencies", [])
    if not (isinstance(listed, list) and all(isinstance(package, str) for package in listed)):
        raise BuildError('dependencies is not a list of strings; write ["aiohttp>=3.9"]', file, line)
    return line, listed


def _script(text: str, file: str) -> tuple[int, dict[str, Any]]:
    """Line number and content of the block."""
    line, block = _block(text, file)
    if not block:
        return line, {}
    import tomllib  # here, because most sources have none

    try:
        return line, tomllib.loads(block)
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"its script block is not TOML: {error}", file, line) from None


def _block(text: str, file: str) -> tuple[int, str]:
    """Line number and content of the block named script."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.rstrip() == "# /// script"]
    if len(starts) > 1:
        raise BuildError("has two script blocks; write one", file, starts[1] + 1)
    for start in starts:
        content: list[str] = []
        for line in lines[start + 1 :]:
            if line.rstrip() == "# ///":
                return start + 1, "\n".join(content)
            if not (line == "#" or line.startswith("# ")):
                break
            content.append(line[2:])
        raise BuildError("has a script block without its last line; end it with `# ///`", file, start + 1)
    return 1, ""
