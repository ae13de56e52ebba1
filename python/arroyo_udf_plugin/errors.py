"""The exceptions of the toolkit. Each keeps the status of the call that failed, if a plugin was called.

    ArroyoUdfError
    ├── BuildError                 the source cannot become a plugin (has file and line)
    ├── LoadError                  the file is not a plugin
    │   └── AbiError               it is a plugin of another ABI version, or breaks the contract
    ├── InvalidArgument            the caller's mistake: wrong array, index, id or option
    │   └── WrongCheckpoints       those that are there are not those that the caller needs: gone, older, of another
    │   └── Unreachable            or something outside does not answer (has its name)
    ├── InvalidState               the caller's mistake: stopped, released, or used after a fork
    ├── WouldBlock                 no room: wait, then send again
    ├── RowError                   rows of a call failed (has the text of each)
    ├── PluginEnvironmentError     the plugin cannot run here: no Python, wrong version, missing package
    ├── UserCodeError              the user's code failed outside of a row: module, init or close of the Context
    ├── InternalError              a bug in the toolkit
    ├── Fenced                     another engine has resumed this pipeline; this one has stopped
    ├── OutOfMemory                no memory for the call; its arguments were not taken
    └── UnsupportedCall            the function or plugin does not support the call

All of them can be pickled. Imports nothing heavy, so that every module of the package can raise them. A new status
needs an entry here only.
"""

import errno
import os
from collections.abc import Iterable
from typing import Any


class ArroyoUdfError(Exception):
    """Root of the tree.

    status: the number in the ABI; None if no plugin was called. retryable: the plugin says that the same call may
    succeed later, because memory or a thread was lacking.
    """

    def __init__(self, message: str, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class BuildError(ArroyoUdfError):
    """The source cannot become a plugin. The message says where, and what to write instead. `file`, `line`: where."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)
        self.file = file
        self.line = line


class LoadError(ArroyoUdfError):
    """The file is not a plugin, or cannot be opened."""


class AbiError(LoadError):
    """The plugin has another ABI version than this host, or breaks the contract."""


class InvalidArgument(ArroyoUdfError):
    """An array, index, id or option is wrong; nothing was sent or run."""


class WrongCheckpoints(InvalidArgument):
    """The checkpoints of a place are not those that are needed: gone, older, another pipeline's, or without the one to
    go back to. Nothing has changed, and another try finds the same."""


class Unreachable(InvalidArgument):
    """Something outside does not answer, such as an object store or a database; it may later. `service`: its name, the
    same for all who ask it."""

    def __init__(self, message: str, service: str) -> None:
        super().__init__(message)
        self.service = service

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.service), self.__dict__


class InvalidState(ArroyoUdfError):
    """The runtime was stopped or released, or belongs to the parent process."""


class WouldBlock(ArroyoUdfError):
    """The runtime has no room for more rows or bytes. Nothing changed: wait, then send again."""


class RowError(ArroyoUdfError):
    """Rows failed. `errors`: row -> text; the row is the position in the arguments, from 0, or the row id in `send`."""

    def __init__(self, message: str, errors: dict[int, str]) -> None:
        super().__init__(message)
        self.errors = errors

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.errors), self.__dict__


class PluginEnvironmentError(ArroyoUdfError):
    """The plugin cannot run here: no Python, another Python version, or a missing package."""


class UserCodeError(ArroyoUdfError):
    """The user's module, or the init or close of its Context, failed. The text has the traceback."""


class InternalError(ArroyoUdfError):
    """A bug in the toolkit or in a plugin written by hand, not a mistake of the caller."""


class Fenced(ArroyoUdfError):
    """Another engine has resumed this pipeline. This one has stopped, and applies nothing more."""


class OutOfMemory(ArroyoUdfError):
    """There was no memory for the call. Nothing changed; the arguments were not taken."""


class UnsupportedCall(ArroyoUdfError):
    """The function has another kind (sync, async, or one that this host does not know), or the plugin lacks a slot."""


_FAMILIES: dict[int, type[ArroyoUdfError]] = {
    16: InvalidArgument,
    17: InvalidState,
    18: PluginEnvironmentError,
    19: UserCodeError,
    20: InternalError,
    21: UnsupportedCall,
    22: OutOfMemory,
}


def by_status(status: int, text: str, retryable: bool = False) -> ArroyoUdfError:
    """The exception for a status of the ABI; InternalError for a status that this host does not know."""
    return _FAMILIES.get(status, InternalError)(text, status, retryable)


_OUTSIDE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
}
"""Of errors of the system, those that pass without a change of the pipeline."""


def service_of(error: BaseException | None) -> str:
    """What outside does not answer or has no room, so that this has failed. Empty: it has another reason."""
    while error is not None:
        if isinstance(error, Unreachable):
            return error.service
        if isinstance(error, OSError) and error.errno in _OUTSIDE:
            return os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return ""


def printable(text: str) -> str:
    """A text of others for a terminal, which obeys none of its characters."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: the nearest known one, or all of them."""
    import difflib  # only errors need it

    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"write {close[0]!r}" if close else f"there are {', '.join(known)}" if known else "there are none"
