"""A file's format, and the compression around a text format, by the ending of its name."""

from __future__ import annotations

import dataclasses

from ...errors import InvalidArgument
from .options import FORMATS

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".arrows": "arrows",
}
_INPUTS = {".json": "jsonl"}  # which may be one array
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
TEXT = ("csv", "tsv", "jsonl", "text")


@dataclasses.dataclass(frozen=True)
class FileKind:
    """format: one of `FORMATS`. compression: around text, as Arrow names it; None: none."""

    format: str
    compression: str | None

    @property
    def is_text(self) -> bool:
        return self.format in TEXT


def kind_of(name: str, chosen: str | None, option: str) -> FileKind:
    """The kind of a file by its name; `chosen` wins over the ending. option: the one that chooses, for error texts.

    "-", standard input or output, is CSV. Raises InvalidArgument if nothing says what the file is.
    """
    stem, dot, last = name.lower().rpartition(".")
    compression = _COMPRESSIONS.get(dot + last)
    if compression is not None:
        stem, dot, last = stem.rpartition(".")
    if chosen is not None:
        if chosen not in FORMATS:
            raise InvalidArgument(f"there is no format {chosen!r}; the formats are {', '.join(FORMATS)}")
        return FileKind(chosen, compression if chosen in TEXT else None)
    if name == "-":
        return FileKind("csv", None)
    known = _FORMATS | _INPUTS if option == "--in-format" else _FORMATS
    file_format = known.get(dot + last)
    if file_format is None:
        raise InvalidArgument(
            f"{name}: the file's ending must be one of {', '.join(known)}, or {option} must name the format"
        )
    if compression is not None and file_format not in TEXT:
        raise InvalidArgument(
            f"{name}: {file_format} files are compressed inside; decompress this one, or leave the ending out"
        )
    return FileKind(file_format, compression)


def may_be_array(name: str) -> bool:
    """Whether a file of JSON may be one array, in place of lines."""
    return name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".json")


def has_ending(name: str) -> bool:
    """Whether the name's ending says what the file is."""
    try:
        kind_of(name, None, "")
    except InvalidArgument:
        return False
    return True
