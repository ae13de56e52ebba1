"""Reads a Rust source before cargo: the comment at its head, and the UDF of a source that marks no function.

Arroyo's documented format is one file whose comments hold TOML, in any order, indented or not, in `/* */` or `//`:

    /*
    [dependencies]
    tokio-postgres = "0.7"

    [udfs]
    async_max_concurrency = 10
    */

and whose one `pub fn` or `pub async fn` is the UDF. This module adds the attribute `#[udf]` in a place that moves no
code behind it to another line or column, so that compiler messages fit the author's file. A source that marks its
functions itself may have such a comment too.

Guarantees: ignores the content of strings, and never takes a comment for code. Assumes that rustc checks the syntax.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..author.options import check
from ..errors import BuildError
from .metadata import ARROYO

_ATTRIBUTE = "#[::arroyo_udf_plugin::udf]"
_MARK = r"#\s*\[\s*(?:::\s*)?(?:\w+\s*::\s*)*"
_MARKED = re.compile(_MARK + r"(?:udf|udaf|udtf)\b")
# A marked function in code without comments and literals: options, `async`, name, and the bracket that closes an empty
# list of arguments. A function that a macro makes is overlooked.
_FUNCTION = re.compile(
    _MARK + r"udf\b([^\]]*)\]\s*(?:#\s*\[[^\]]*\]\s*)*(?:pub\s*(?:\([^)]*\)\s*)?)?"
    r"(async\s+)?fn\s+(?:r#)?(\w+)\s*(?:<[^>]*>)?\s*\(\s*(\)?)"
)
_PUBLIC = re.compile(r"\bpub\s+(?:async\s+)?fn\b")
_TABLE = re.compile(r"\s*\[\s*(?:dependencies|udfs)\b.*\]")
_TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*\n?) | (?P<block>/\*) |
    (?P<raw>[bc]?r(?P<hashes>\#*)") | (?P<string>[bc]?"(?:[^"\\]|\\.)*") |
    (?P<char>b?'(?:[^'\\\n]|\\(?:x..|u\{[^}]*\}|.))') |
    (?P<code>'?(?:r\#)?\w+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class RustFunction:
    """A marked function: whether it is started (async, blocking) or run, and whether it has arguments."""

    name: str
    starts: bool
    has_arguments: bool


@dataclass(frozen=True)
class RustSource:
    """A Rust source, as far as a build needs it."""

    text: str
    """The text to compile."""
    dependencies: dict[str, Any]
    """[dependencies], as in Cargo.toml; without this toolkit's own crate, which every plugin gets."""
    dependencies_line: int
    """The line of [dependencies]; 1 if there is none."""
    options: dict[str, Any]
    """[udfs], under the names of `options.OPTIONS`."""
    functions: tuple[RustFunction, ...]
    """The functions with #[udf], in the order of the source."""


def read(source: Path) -> RustSource:
    """Raises BuildError: not UTF-8, a wrong header, no function, or several functions without a mark."""
    file = str(source)
    try:
        text = source.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BuildError(f"a Rust source is UTF-8: {error}", file) from None
    code, comments = _split(text)
    tables, lines = _tables(comments, file)
    dependencies = tables.get("dependencies", {})
    line = lines.get("dependencies", 1)
    for name, wanted in dependencies.items():
        if isinstance(wanted, dict) and "path" in wanted:
            raise BuildError(
                f"[dependencies] {name} is a path: name a version or a git revision, which say what a library is "
                "made of",
                file,
                line,
            )
    options = _options(tables.get("udfs", {}), file, lines.get("udfs", 1))
    own = ("arroyo-udf-plugin", "arroyo_udf_plugin")
    dependencies = {name: wanted for name, wanted in dependencies.items() if name not in own}
    if not _MARKED.search(code):
        place = _place(text, code, file)
        text, code = (before[:place] + _ATTRIBUTE + before[place:] for before in (text, code))
    functions = tuple(
        RustFunction(name, bool(is_async) or "blocking" in chosen, not closed)
        for chosen, is_async, name, closed in _FUNCTION.findall(code)
    )
    return RustSource(text, dependencies, line, options, functions)


# ---- Comments and code -----------------------------------------------------------------------------------------------

Comment = list[tuple[int, str]]
"""The lines of a comment, or of several `//` without code between them: number in the source, content."""


def _split(text: str) -> tuple[str, list[Comment]]:
    """The code, as long as the text, with blanks for comments and literals; and the comments outside braces.

    Inner doc comments (`//!`) become `!`, because an item begins behind them.
    """
    code: list[str] = []
    comments: list[Comment] = []
    position, line, depth, joins = 0, 1, 0, False
    while match := _TOKEN.match(text, position):
        kind, end = match.lastgroup or "", match.end()
        if kind == "block":
            end = _block_end(text, position)
        elif match["raw"] is not None:
            kind, closing = "raw", '"' + match["hashes"]
            index = text.find(closing, end)
            end = len(text) if index < 0 else index + len(closing)
        token = text[position:end]
        if kind in ("line", "block"):
            if depth == 0:
                content = _content(token, line)
                comments[-1:] = [comments[-1] + content] if joins and kind == "line" else [*comments[-1:], content]
                joins = kind == "line"
            code.append("!" * len(token) if token[2:3] == "!" else " " * len(token))
        else:
            code.append(token if kind == "code" else " " * len(token))
            depth += (token in "([{") - (token in ")]}") if kind == "code" else 0
            joins = joins and token.isspace()
        line += token.count("\n")
        position = end
    return "".join(code), comments


def _block_end(text: str, start: int) -> int:
    """The end of a block comment; block comments nest."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    return len(text)


def _content(comment: str, line: int) -> Comment:
    inner = comment[2:-2] if comment.startswith("/*") else comment.lstrip("/").rstrip("\n")
    # Removes a star at the beginning of a line, as some authors write; no line of TOML begins with one.
    return [(line + i, re.sub(r"^\s*\*+", "", text)) for i, text in enumerate(inner.split("\n"))]


# ---- The header ------------------------------------------------------------------------------------------------------


def _tables(comments: list[Comment], file: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The tables of all headers, and the line of each."""
    tables: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for comment in comments:
        start = next((i for i, (_, text) in enumerate(comment) if _TABLE.fullmatch(text.rstrip())), None)
        if start is None:
            continue
        header = comment[start:]
        try:
            parsed = tomllib.loads("\n".join(text for _, text in header))
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"at line (\d+)", str(error))
            line = header[int(place[1]) - 1 if place else -1][0]
            raise BuildError(f"the comment with [dependencies] or [udfs] is not TOML: {error}", file, line) from None
        for name, table in parsed.items():
            line = next(
                (number for number, text in header if re.match(rf"\s*\[\s*{re.escape(name)}\b", text)), header[0][0]
            )
            if name not in ("dependencies", "udfs") or not isinstance(table, dict):
                raise BuildError(
                    f"{name!r} is not known here: such a comment has [dependencies] and [udfs]", file, line
                )
            if name in tables:
                raise BuildError(f"[{name}] is written a second time: write it once", file, line)
            tables[name], lines[name] = table, line
    return tables, lines


def _options(table: dict[str, Any], file: str, line: int) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for written, value in table.items():
        if written not in ARROYO:
            known = ", ".join(ARROYO)
            raise BuildError(
                f"[udfs] has the unknown option {written!r}; there are {known}; all others go into #[udf(...)]",
                file,
                line,
            )
        if wrong := check(ARROYO[written], value):
            raise BuildError(f"[udfs] {wrong.replace(ARROYO[written], written, 1)}", file, line)
        chosen[ARROYO[written]] = value
    return chosen


# ---- The function ----------------------------------------------------------------------------------------------------


def _place(text: str, code: str, file: str) -> int:
    """The place for the attribute of the only public function."""
    public = [match.start() for match in _PUBLIC.finditer(code) if _depth(code[: match.start()]) == 0]
    if not public:
        raise BuildError(
            "no function is marked: write `use arroyo_udf_plugin::udf;`, and `#[udf]` before each function; or make "
            "one function `pub`",
            file,
        )
    if len(public) > 1:
        raise BuildError(
            "a second function is `pub`, and none is marked: write `#[udf]` before each UDF",
            file,
            text.count("\n", 0, public[1]) + 1,
        )
    # Behind the code before the function and its comments, so that their columns stay.
    return len(code[: public[0]].rstrip())


def _depth(code: str) -> int:
    return sum((c in "([{") - (c in ")]}") for c in code)
