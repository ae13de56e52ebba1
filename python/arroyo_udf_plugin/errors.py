"""The exceptions of the toolkit; each keeps the status of the call that failed, where there was one.

    ArroyoUdfError
    ├── BuildError                 the source cannot become a plugin (has file and line)
    ├── LoadError                  the file is not a plugin
    │   └── AbiError               it is one, of another ABI version or with a table that breaks the contract
    ├── InvalidArgument            the caller's mistake: wrong array, index, id or option
    ├── InvalidState               the caller's mistake: stopped, released, or used after a fork
    ├── WouldBlock                 no room now: wait, then send again
    ├── RowError                   rows of a sync call failed (has the text of each)
    ├── PluginEnvironmentError     the plugin cannot work here: no Python, wrong version, missing package
    ├── UserCodeError              the user's code failed outside of a row: module, init or close of the Context
    ├── InternalError              the toolkit's own mistake
    └── UnsupportedCall            the function or plugin does not do that

Nothing is imported here, so that every module of the package can raise them.
"""


class ArroyoUdfError(Exception):
    """Root of the tree. `status` is the ABI's number, or None where no plugin was called."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class BuildError(ArroyoUdfError):
    """The source cannot become a plugin. The message says where, and what to write instead."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)
        self.file = file
        self.line = line


class LoadError(ArroyoUdfError):
    """The file is not a plugin, or cannot be opened."""


class AbiError(LoadError):
    """The plugin and this host do not speak the same contract."""


class InvalidArgument(ArroyoUdfError):
    """An array, index, id or option is wrong; nothing was sent or run."""


class InvalidState(ArroyoUdfError):
    """The runtime was stopped or released, or belongs to the parent process."""


class WouldBlock(ArroyoUdfError):
    """The runtime holds as many rows or bytes as it may; nothing was taken."""


class RowError(ArroyoUdfError):
    """Rows of a sync call failed. `errors` has the text of each, by position in the arguments."""

    def __init__(self, message: str, errors: dict[int, str]) -> None:
        super().__init__(message)
        self.errors = errors


class PluginEnvironmentError(ArroyoUdfError):
    """The plugin cannot work here: no Python, another version of it, or a missing package."""


class UserCodeError(ArroyoUdfError):
    """The user's module, or init or close of its Context, failed; the text has the traceback."""


class InternalError(ArroyoUdfError):
    """A mistake of the toolkit or of the plugin's author, not of the caller."""


class UnsupportedCall(ArroyoUdfError):
    """The function is of the other kind, or the plugin lacks the slot."""


_FAMILIES: dict[int, type[ArroyoUdfError]] = {
    16: InvalidArgument,
    17: InvalidState,
    18: PluginEnvironmentError,
    19: UserCodeError,
    20: InternalError,
    21: UnsupportedCall,
}


def by_status(status: int, text: str) -> ArroyoUdfError:
    """The exception for a status of the ABI; one that the contract does not have is the plugin's mistake."""
    return _FAMILIES.get(status, InternalError)(text, status)
