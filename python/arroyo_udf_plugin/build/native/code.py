"""The C code of one function, line by line."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from .values import C_TYPES, Kind, Value


class Code:
    """Lines of C. Temporaries have names that are used once in a file, because `numbers` is shared."""

    def __init__(self, numbers: Iterator[int] | None = None) -> None:
        self.numbers = numbers or itertools.count(1)
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self._depth = 1

    def add(self, line: str) -> None:
        """Adds a line."""
        self.lines.append("  " * self._depth + line)

    def declare(self, name: str, declaration: str) -> None:
        """Adds a variable of the whole function, unless there is one."""
        self.declared.setdefault(name, declaration)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block below `head`, such as `if (x)`."""
        self.add(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    def temporary(self, kind: Kind) -> str:
        """A new variable without a value, of the block."""
        name = self.name()
        self.add(f"{C_TYPES[kind]} {name};")
        return name

    def result(self, kind: Kind, expression: str) -> Value:
        """The value of an expression that is evaluated here and once."""
        name = self.name()
        self.add(f"const {C_TYPES[kind]} {name} = {expression};")
        return Value(kind, name)

    def defer_if(self, condition: str, why: str = "") -> None:
        """Lets Python run the row if this holds. why: as `raised` gives it."""
        self.add(f"if (NATIVE_UNLIKELY({condition})) {f'{{ {why} goto deferred; }}' if why else 'goto deferred;'}")

    def checked(self, kind: Kind, call: str, why: str = "") -> Value:
        """The value that a function of native.h writes through its last argument; it answers true if Python must run
        the row. call: its name and its other arguments, as in `native_add(a, b`. why: as `raised` gives it."""
        name = self.temporary(kind)
        self.defer_if(f"{call}, &{name})", why)
        return Value(kind, name)

    def reserve(self) -> int:
        """A place for a line that is known only later."""
        self.add("")
        return len(self.lines) - 1

    def fill(self, place: int, line: str) -> None:
        """Writes the line of a place that was reserved."""
        self.lines[place] += line

    def name(self) -> str:
        """A name that is used once in a file."""
        return f"t{next(self.numbers)}"

    def mark(self) -> int:
        """Where the code ends now."""
        return len(self.lines)

    def cut(self, mark: int) -> None:
        """Takes back all lines behind a mark."""
        del self.lines[mark:]

    def text(self) -> str:
        """The body of the function, with its variables."""
        return "\n".join([*(f"  {line}" for line in self.declared.values()), *self.lines])


def raised(error: BaseException, condition: str = "true") -> str:
    """C that notes what Python raises in the row if this holds, for libraries without Python."""
    try:
        return f"NATIVE_RAISES({condition}, {c_string(f'{type(error).__name__}: {error}')});"
    except UnicodeEncodeError:
        return ""


def c_string(text: str) -> str:
    """C of a text's UTF-8 bytes. Raises UnicodeEncodeError for half of a surrogate pair."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'
