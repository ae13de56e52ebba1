"""Object stores by URL: s3://BUCKET/FOLDER, gs://, az://, https:// and whatever else obstore opens.

    store = open_object_store("s3://rows/parts")     its root is the URL's path
    for found in objects("s3://rows/in/*.csv", 5):   the objects that a URL names
        ObjectFile(found, None).read(100)

Addresses and credentials come from the environment, as each cloud's own tools have them (AWS_ENDPOINT,
AWS_ACCESS_KEY_ID, ...). Each memory:// URL is a store of its own, within this process.

Guarantees: all bytes that an ObjectFile reads are of one version of the object. A store that does not answer is asked
again for a while, and that wait can be interrupted.
Raises InvalidArgument that names the URL; FileNotFoundError for an object that is gone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import InvalidArgument, Unreachable
from .interrupt import Interrupt

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MAGIC = re.compile(r"[*?[]")
_ANY = "[!._]*"  # the visible files of a folder
_FINAL = re.compile(r"status code: (?!408|429)[34]")  # the request is wrong: a bucket that does not exist, and so on
_UNKNOWN = re.compile("InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken")  # who asks
_TIME = "time "  # begins an etag that is none
PATIENCE = 180.0  # seconds for a store that does not answer while it is read; a restart takes less
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0

Answer = TypeVar("Answer")


def plain_url(url: str) -> str:
    """The same for all spellings of a URL: without escapes and double slashes."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.lower()}://" + "/".join(filter(None, urllib.parse.unquote(rest).split("/")))


def open_object_store(url: str, **options: Any) -> ObjectStore:
    """The store, without a look into it. Its root is the URL's path, also with `?` and `#`. options: of
    `obstore.store.from_url`."""
    try:
        import obstore.exceptions
        import obstore.store
    except ModuleNotFoundError as error:
        raise InvalidArgument(f"{url}: object stores need obstore: pip install 'arroyo_udf_plugin[engine]'") from error
    if urllib.parse.urlsplit(url).password is not None:
        scheme = url.partition("://")[0]
        raise InvalidArgument(f"{scheme}://...: leave out the password: credentials come from environment variables")
    if url.startswith("memory://"):
        return _in_memory(url.rstrip("/"))
    if url.startswith("file://"):
        options["mkdir"] = True
    try:
        return obstore.store.from_url(url.replace("?", "%3F").replace("#", "%23"), **options)
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise InvalidArgument(f"{url} cannot be opened: {_why(error)}") from error


@functools.cache
def _in_memory(url: str) -> ObjectStore:
    import obstore.store

    return obstore.store.MemoryStore()


@dataclasses.dataclass(frozen=True)
class Object:
    """An object as it was found. name: its URL. path: in the store. etag: changes with the object's bytes."""

    store: ObjectStore
    name: str
    path: str
    size: int
    etag: str


def objects(url: str, patience: float, interrupt: Interrupt | None = None) -> Iterator[Object]:
    """The objects that a URL names, by name: one; a folder's own, without hidden ones; or those of a pattern.

    patience: seconds for a store that does not answer. interrupt: ends that wait.
    """
    folder, pattern = _folder_and_pattern(url)
    store = open_patient(folder)
    if not pattern:
        folder, _, name = url.rpartition("/")
        if name and not folder.endswith("/"):
            with contextlib.suppress(FileNotFoundError):
                yield look(Object(open_patient(folder), url, name, 0, ""), patience, interrupt)
                return
        folder, pattern = url.rstrip("/"), _ANY
    metas = patiently(lambda: _listed(store, "/" in pattern), url, patience, interrupt)
    regex = _regex(pattern)
    for meta in sorted(metas, key=lambda meta: str(meta["path"])):
        if regex.fullmatch(meta["path"]):
            yield Object(store, f"{folder}/{meta['path']}", meta["path"], meta["size"], _etag(meta))


def look(object_: Object, patience: float, interrupt: Interrupt | None = None) -> Object:
    """The object as it is now. interrupt: ends the wait for a store that does not answer."""
    import obstore

    meta = patiently(lambda: obstore.head(object_.store, object_.path), object_.name, patience, interrupt)
    return dataclasses.replace(object_, size=meta["size"], etag=_etag(meta))


def patiently(
    ask: Callable[[], Answer], place: str, patience: float = PATIENCE, interrupt: Interrupt | None = None
) -> Answer:
    """The store's answer; waits while there is none."""
    import obstore.exceptions

    started, wait = time.monotonic(), _FIRST_WAIT
    while True:
        try:
            return ask()
        except FileNotFoundError:
            raise FileNotFoundError(f"{place} is not there") from None
        except obstore.exceptions.GenericError as error:
            text = f"{place}: the store cannot be asked: {_why(error)}"
            if _FINAL.search(str(error)):
                raise InvalidArgument(text) from error
            if time.monotonic() + wait - started > patience or (interrupt and interrupt.wait(wait)):
                raise Unreachable(text, "/".join(place.split("/")[:3])) from error
            if interrupt is None:
                time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        except obstore.exceptions.PreconditionError:
            raise
        except (obstore.exceptions.BaseError, PermissionError) as error:
            raise InvalidArgument(f"{place}: {_why(error)}") from error


def is_denied(error: Exception) -> bool:
    """Whether the store knows who asks, and does not allow it."""
    import obstore.exceptions

    text, kinds = str(error), (PermissionError, obstore.exceptions.PermissionDeniedError)
    return (isinstance(error, kinds) or "status code: 403" in text) and not _UNKNOWN.search(text)


class ObjectFile(io.RawIOBase):
    """An object as a file that can be read anywhere. interrupt: gives up a wait for the store.

    `read` raises InvalidArgument if the object is not the one any more that was found.
    """

    def __init__(self, object_: Object, interrupt: Interrupt | None) -> None:
        self._object, self._interrupt, self._at = object_, interrupt, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._object.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._object.size if size < 0 else min(self._at + size, self._object.size)
        if end <= self._at:
            return b""
        data = self._get(self._at, end)
        self._at = end
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _get(self, start: int, end: int) -> bytes:
        import obstore
        import obstore.exceptions

        object_ = self._object
        options: Any = {"range": (start, end), "if_match": object_.etag}
        if object_.etag.startswith((_TIME, "W/")):  # a weak etag matches nothing
            del options["if_match"]
        try:
            data = patiently(
                lambda: bytes(obstore.get(object_.store, object_.path, options=options).bytes()),
                object_.name,
                interrupt=self._interrupt,
            )
        except (obstore.exceptions.PreconditionError, FileNotFoundError):
            raise changed(object_.name) from None
        if len(data) != end - start:
            raise changed(object_.name)
        return data


def changed(name: str) -> InvalidArgument:
    """A file is not the one any more that was begun."""
    return InvalidArgument(
        f"{name} changed after it was begun, so its rows may be read twice or not at all: bring the former file back, "
        "or go back to a checkpoint before it (--restore). Writers must write each new file under another name and "
        "rename it into place"
    )


# ---- What a URL names ------------------------------------------------------------------------------------------------


def open_patient(folder: str) -> ObjectStore:
    """A store for `patiently`, which does all waiting."""
    retries = {"retry_config": {"max_retries": 0}} if not folder.startswith("memory://") else {}
    return open_object_store(folder, **retries)


def _listed(store: ObjectStore, deep: bool) -> list[Any]:
    """The objects of a store. deep: with those of folders within."""
    import obstore

    if deep:
        return [meta for chunk in obstore.list(store, chunk_size=1000) for meta in chunk]
    return list(obstore.list_with_delimiter(store)["objects"])


def _etag(meta: Any) -> str:
    """Without one, the time in whole seconds: some answers have no fractions, others do."""
    etag: str | None = meta["e_tag"]
    return etag or _TIME + meta["last_modified"].replace(microsecond=0).isoformat()


def _folder_and_pattern(url: str) -> tuple[str, str]:
    """The part of a URL before its first segment with a wildcard, and the rest, which may be empty."""
    segments = url.rstrip("/").split("/")
    first = next((at for at, segment in enumerate(segments) if _MAGIC.search(segment)), len(segments))
    return "/".join(segments[:first]), "/".join(segments[first:])


def _regex(pattern: str) -> re.Pattern[str]:
    """A pattern as `glob` has it: `*` and `?` do not match "/", nor a first dot; `**` is any number of folders."""
    texts = []
    for segment in pattern.split("/"):
        if segment == "**":
            texts.append(r"(?:[^/.][^/]*/)*")
            continue
        parts = [_WILD.get(part) or _set_or_text(part) for part in re.findall(r"\*+|\?|\[!?\]?[^\]]*\]|.", segment)]
        texts.append(("(?!\\.)" if segment[0] in "*?[" else "") + "".join(parts) + "/")
    return re.compile("".join(texts).removesuffix("/"), re.DOTALL)


_WILD = {"*": "[^/]*", "**": "[^/]*", "?": "[^/]"}


def _set_or_text(part: str) -> str:
    if part[0] != "[" or len(part) < 3:
        return re.escape(part)
    negated = part[1] == "!"
    return f"[{'^' if negated else ''}{re.escape(part[1 + negated : -1])}]".replace(r"\-", "-")


def _why(error: BaseException) -> str:
    """What the store has answered, in its own words if it has some."""
    text = str(error)
    if "builder error" in text and "http://" in text:
        return "it is at an address with http://, which needs AWS_ALLOW_HTTP=true in the environment"
    parts = [match[1].strip() for match in (_STATUS.search(text), _CODE.search(text), _MESSAGE.search(text)) if match]
    if len(parts) > 1:
        return ": ".join(parts)
    return text.partition("\n")[0].partition(": <?xml")[0].rstrip(" .")


_STATUS = re.compile(r"status code: ([0-9]{3}[^:\n]*)")
_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]+?)\.?</Message>")
