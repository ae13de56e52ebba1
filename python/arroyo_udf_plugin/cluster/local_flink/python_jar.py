"""A flink-python jar whose jobs listen on loopback only.

In a TaskManager, Apache Beam opens ports for Python workers. It tells them a loopback address, and listens on all: it
calls `NettyServerBuilder.forPort(address.getPort())`, where `forAddress(address)` would do, and no option changes that.
A job brings Beam with it, in the jar that it is submitted with. So one class of that jar is changed here.

Assumes: Flink 2.3, Beam's class as it is there. Another one is refused.
"""

from __future__ import annotations

import shutil
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from ...errors import InvalidArgument

_CLASS = "org/apache/beam/sdk/fn/server/ServerFactory$InetSocketAddressServerFactory.class"
_HEADER = 10  # bytes before the constants: magic number, version, how many constants there are
_UTF8, _LONG, _DOUBLE, _METHOD, _NAME_AND_TYPE = 1, 5, 6, 10, 12
_SIZES = dict.fromkeys((7, 8, 16, 19, 20), 2) | {15: 3} | dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4)
_SIZES |= {_LONG: 8, _DOUBLE: 8}
"""In bytes, without the tag, of each kind of constant but texts."""
_NOTHING, _CALL, _CALL_STATIC = b"\x00", b"\xb6", b"\xb8"  # instructions


def loopback_jar(shipped: Path, folder: Path) -> Path:
    """Writes it into the folder, with the same name. Raises InvalidArgument: it is not the jar of Flink 2.3."""
    jar = folder / shipped.name
    shutil.copyfile(shipped, jar)
    with zipfile.ZipFile(jar, "a") as archive:
        try:
            old = archive.getinfo(_CLASS)
            content = with_address(archive.read(old))
        except (KeyError, ValueError, struct.error):
            raise InvalidArgument(f"{shipped}: this package knows the jar of Flink 2.3") from None
        archive.filelist.remove(old)
        del archive.NameToInfo[_CLASS]
        archive.writestr(_CLASS, content, zipfile.ZIP_DEFLATED)
    return jar


def with_address(content: bytes) -> bytes:
    """The class, with `forAddress(address)`. Raises ValueError: there is no one place that calls `forPort`."""
    texts, methods, names, end = _constants(content)
    port, builder, result = _only(
        (number, owner, texts[names[name][1]])
        for number, (owner, name) in methods.items()
        if texts[names[name][0]] == b"forPort"
    )
    asked = [number for number, (_, name) in methods.items() if texts[names[name][0]] == b"getPort"]
    calls = [_CALL + _u2(number) + _CALL_STATIC + _u2(port) for number in asked]
    call = _only(call for call in calls if content.count(call) == 1)
    (count,) = struct.unpack_from(">H", content, _HEADER - 2)
    type = result.replace(b"(I)", b"(Ljava/net/SocketAddress;)")
    added = _text(b"forAddress") + _text(type) + bytes([_NAME_AND_TYPE]) + _u2(count) + _u2(count + 1)
    added += bytes([_METHOD]) + _u2(builder) + _u2(count + 2)
    code = content[end:].replace(call, 3 * _NOTHING + _CALL_STATIC + _u2(count + 3))
    return content[: _HEADER - 2] + _u2(count + 4) + content[_HEADER:end] + added + code


_T = TypeVar("_T")
_Pairs = dict[int, tuple[int, int]]


def _constants(content: bytes) -> tuple[dict[int, bytes], _Pairs, _Pairs, int]:
    """Texts; methods, as owner and name; names, as text and type: by number. And where the constants end."""
    texts: dict[int, bytes] = {}
    pairs: dict[int, _Pairs] = {_METHOD: {}, _NAME_AND_TYPE: {}}
    (count,) = struct.unpack_from(">H", content, _HEADER - 2)
    at, number = _HEADER, 1
    while number < count:
        tag = content[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            texts[number] = content[at + 3 : at + 3 + length]
            at += 3 + length
        else:
            if tag in pairs:
                pairs[tag][number] = struct.unpack_from(">HH", content, at + 1)
            at += 1 + _SIZES[tag]
        number += 2 if tag in (_LONG, _DOUBLE) else 1
    return texts, pairs[_METHOD], pairs[_NAME_AND_TYPE], at


def _only(found: Iterable[_T]) -> _T:
    (one,) = found
    return one


def _u2(number: int) -> bytes:
    return struct.pack(">H", number)


def _text(text: bytes) -> bytes:
    return bytes([_UTF8]) + _u2(len(text)) + text
