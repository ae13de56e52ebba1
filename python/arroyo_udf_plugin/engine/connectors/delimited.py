"""CSV and TSV: blocks of text as batches of cells, and batches as lines.

Guarantees: a row that is read and written again in the same dialect has the same cells, nulls as they were written, and
"" apart from an empty field. Quotes stay only where they mean something.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ...errors import InvalidArgument
from ...host import few
from .blocks import BOM, RECORD_BYTES, Blocks, WithoutComments, ends_within_a_cell
from .cells import CellType, Dialect, cell_type, decoded, quoted, unquoted
from .json_writer import has_no_json
from .options import Reading, Writing
from .piece import KEPT, Piece, TextBlock, cut
from .text_values import decimal_texts, end_to_end

_TEXT = pa.string()
_LARGE_BLOCK = 1 << 18
_SHOWN = 100  # characters of a bad row, in an error
_OtherWidth = Callable[[Any], str]
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def dialect_of(format: str, options: Reading | Writing) -> Dialect:
    """The dialect that the user has chosen. Raises InvalidArgument for what cannot be one."""
    delimiter = options.delimiter or ("\t" if format == "tsv" else ",")
    for what, mark in (("delimiter", delimiter), ("quote", options.quote or '"')):
        if len(mark.encode()) != 1 or mark in "\r\n":
            raise InvalidArgument(f"--{what} {mark!r}: it must be one ASCII character")
    if delimiter == options.quote:
        raise InvalidArgument(f"--delimiter and --quote are both {delimiter!r}")
    if options.decimal_mark not in (".", ","):
        raise InvalidArgument(f"--decimal-mark {options.decimal_mark!r}: it is . or ,")
    formats = options.date_formats if isinstance(options, Reading) else ()
    for format_ in formats:
        if "%Z" in format_.replace("%%", ""):
            raise InvalidArgument(f"--date-format {format_!r}: Python reads %Z and forgets the zone; write %z")
    return Dialect(delimiter, options.quote, options.null_values, options.decimal_mark, formats)


class DelimitedReader:
    """A CSV file. read, seek: its bytes, see `Blocks`. name: for error texts.

    comment: begins lines that are no rows. schema: of all its columns. refuses: a row of another width, or with bytes
    that are no UTF-8, is a refused row; otherwise it ends the reading. Raises InvalidArgument, also while iterating.
    """

    rows = None

    def __init__(
        self,
        read: Callable[[int], bytes],
        name: str,
        dialect: Dialect,
        header: bool,
        refuses: bool = False,
        comment: str | None = None,
        seek: Callable[[int], object] | None = None,
    ) -> None:
        self._name, self._dialect, self._refuses = name, dialect, refuses
        if comment is not None:
            if len(comment.encode()) != 1 or comment in f"\r\n{dialect.delimiter}{dialect.quote}":
                raise InvalidArgument(f"--comment {comment!r}: it must be one ASCII character, and no other mark")
            read = WithoutComments(
                read, name, comment.encode(), dialect.delimiter.encode(), dialect.quote.encode()
            ).read
            seek = None  # its bytes are others than the file's
        self._blocks = Blocks(read, dialect.quote.encode(), name, seek)
        first = self._blocks.next()
        if first.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InvalidArgument(f"{name} is UTF-16; convert it: iconv -f utf-16 -t utf-8")
        first = first.removeprefix(BOM)
        names, end = self._header(first)
        if not header:
            names, end = [f"f{i}" for i in range(len(names))], 0
        self._first = first[end:]
        self.schema = pa.schema([(name, cell_type(dialect)) for name in names])
        self._read_options = {"column_names": [str(i) for i in range(len(names))]}  # their names may not be unique
        self._parse_options = {
            "delimiter": dialect.delimiter,
            "quote_char": dialect.quote or False,
            "newlines_in_values": bool(dialect.quote),
            "ignore_empty_lines": len(names) > 1,  # of one column, an empty line is an empty cell
        }

    def first_rows(self) -> list[pa.Array]:
        """The cells of all columns of the first rows, which `pieces` has, too."""
        self._first = self._first or self._blocks.next()
        columns = list(range(len(self.schema)))
        if not self._first:
            return [pa.nulls(0, field.type) for field in self.schema]
        try:
            cells = self._cells(self._first, columns)
        except pa.ArrowInvalid:
            cells, _ = self._mended(self._first, columns, KEPT)
        return cells or [pa.nulls(0, field.type) for field in self.schema]

    def pieces(
        self, columns: list[int], most_rows: int, start: int = 1, block: TextBlock | None = None
    ) -> Iterator[Piece]:
        """Batches of these columns' cells, each with the number of its first row. start: the first row to read. block:
        it is in this one, or behind it."""
        schema = pa.schema([self.schema.field(index) for index in columns])
        row = 1
        if block is None:
            text = self._first or self._blocks.next()
        else:
            self._blocks.go_to(block.byte)
            row, text = block.row, self._blocks.next()
        while text:
            block = self._blocks.place(row)
            cells, bad = self._read(text, columns, row)
            while cells is None:
                text += self._continued(text)
                cells, bad = self._read(text, columns, row)
            whole = pa.RecordBatch.from_arrays(cells, schema=schema)
            yield from cut(row, whole, bad, block, most_rows, start)
            row += whole.num_rows
            text = self._blocks.next()

    def _read(self, block: bytes, columns: list[int], row: int) -> tuple[list[pa.Array] | None, dict[int, str]]:
        """The columns' cells, and the bad rows; None if the block ends within a cell. row: the number of its first."""
        try:
            return self._cells(block, columns), {}
        except pa.ArrowInvalid as error:
            if self._is_open(block):
                return None, {}
            if self._refuses:
                return self._mended(block, columns, KEPT)
            raise self._explained(block, columns, row, error) from error

    def _header(self, block: bytes) -> tuple[list[str], int]:
        """The cells of the first line that is not empty, and where it ends."""
        end = 0

        def lines() -> Iterator[str]:
            nonlocal end
            for line in _LINE.finditer(block):
                end = line.end()
                yield line[0].decode()

        quote = self._dialect.quote
        quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE, "quotechar": None}
        try:
            for names in csv.reader(lines(), delimiter=self._dialect.delimiter, **quoting):
                if names:
                    return names, end
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{self._name}: the first line is not UTF-8; {_CONVERT}") from error
        except csv.Error as error:
            raise InvalidArgument(f"{self._name}: the first line cannot be read: {error}") from error
        raise InvalidArgument(f"{self._name} is empty; a CSV file begins with its columns' names")

    def _parsed(
        self,
        block: bytes,
        columns: list[int],
        nulls: bool = False,
        type_: pa.DataType = _TEXT,
        wrong: _OtherWidth | None = None,
    ) -> list[pa.Array]:
        """The columns' texts. nulls: with unquoted null values as null. wrong: for rows of another width."""
        included = [str(index) for index in columns]
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            read_options=pyarrow.csv.ReadOptions(
                block_size=len(block) + 1,  # in one piece
                # Threads cost more than they give for a few lines, and do not know the number of a wrong row.
                use_threads=len(block) >= _LARGE_BLOCK and wrong is None,
                **self._read_options,
            ),
            parse_options=pyarrow.csv.ParseOptions(**self._parse_options, invalid_row_handler=wrong),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(included, type_),
                include_columns=included,
                strings_can_be_null=nulls,
                quoted_strings_can_be_null=False,
                null_values=list(self._dialect.null_values),
            ),
        )
        return [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]

    def _is_open(self, block: bytes) -> bool:
        delimiter, quote = self._dialect.delimiter.encode(), self._dialect.quote.encode()
        return bool(quote) and quote in block and ends_within_a_cell(block, delimiter, quote)

    def _continued(self, block: bytes) -> bytes:
        """What follows a block that ends within a cell."""
        more = self._blocks.next() if len(block) < RECORD_BYTES else b""
        if not more:
            raise InvalidArgument(f"{self._name}: a quote is not closed; --quote '' reads quotes as text")
        return more

    def _cells(self, block: bytes, columns: list[int], wrong: _OtherWidth | None = None) -> list[pa.Array] | None:
        """The columns' cells; None if the block ends within a cell. wrong: what to do with rows of another width."""
        dialect, quote = self._dialect, self._dialect.quote.encode()
        if not quote or quote not in block:
            texts = self._parsed(block, columns, wrong=wrong)
            return [pa.ExtensionArray.from_storage(cell_type(dialect), text) for text in texts]
        last = len(self.schema) - 1
        texts = self._parsed(block, columns if last in columns else [*columns, last], wrong=wrong)
        ending = "".join(texts[columns.index(last) if last in columns else -1][-1:].to_pylist())
        # After an open quote, the line end at the block's end is a part of the last cell.
        if (ending.endswith("\n") or not block.endswith(b"\n")) and self._is_open(block):
            return None
        cells = texts[: len(columns)]
        may_be_text = any(quote + text.encode() + quote in block for text in dialect.null_values)
        nulls = self._parsed(block, columns, nulls=True, wrong=wrong) if may_be_text else cells
        for i, (text, null) in enumerate(zip(cells, nulls, strict=True)):
            quotes = _needs_quotes(text, dialect)
            if may_be_text:
                quotes = pc.or_(quotes, pc.and_(_is_null_value(text, dialect), null.is_valid()))
            cells[i] = _with_quotes(text, quotes, dialect.quote)
        return [pa.ExtensionArray.from_storage(cell_type(dialect), text) for text in cells]

    def _explained(self, block: bytes, columns: list[int], first: int, error: pa.ArrowInvalid) -> InvalidArgument:
        """What is wrong with a block that cannot be parsed, and in which row."""
        _, bad = self._mended(block, columns, _SHOWN)
        if not bad:
            return InvalidArgument(f"{self._name}: {error}")
        position = min(bad)
        hint = f"; {_CONVERT}" if bad[position].endswith(_UNDECODED) else ""
        return InvalidArgument(f"{self._name}: row {first + position}: {bad[position]}{hint}")

    def _mended(self, block: bytes, columns: list[int], most: int) -> tuple[list[pa.Array] | None, dict[int, str]]:
        """The cells of a block with bad rows, and why those are bad: rows of another width are null, and bytes that are
        no UTF-8 are U+FFFD. most: how much of a bad row's text is kept."""
        bad: dict[int, str] = {}

        def skip(row: Any) -> str:
            cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
            bad[row.number - 1] = f"it has {cells}, and the header has {row.expected_columns}: {row.text[:most]!r}"
            return "skip"

        text = block.decode(errors="replace").encode()
        cells = self._cells(text, columns, skip)
        if cells is None:
            return None, {}
        length = len(cells[0]) + len(bad)
        kept = [position for position in range(length) if position not in bad]
        if bad:
            places = dict(zip(kept, range(len(kept)), strict=True))
            take = pa.array([places.get(position) for position in range(length)], pa.int64())
            cells = [column.take(take) for column in cells]
        if text != block:
            bad |= {kept[at]: why for at, why in self._undecoded(block, columns, most).items()}
        return cells, bad

    def _undecoded(self, block: bytes, columns: list[int], most: int) -> dict[int, str]:
        """Why rows of the right width are no UTF-8, by position among those: the first such cell of each."""
        errors: dict[int, str] = {}
        # Each byte as a character of its own, because Arrow can tell of a row of another width only in UTF-8.
        texts = self._parsed(block.decode("latin1").encode(), columns, wrong=lambda row: "skip")
        for index, column in zip(columns, texts, strict=True):
            for position, value in enumerate(column.to_pylist()):
                cell = value.encode("latin1")
                try:
                    cell.decode()
                except UnicodeDecodeError:
                    name = self.schema.field(index).name
                    errors.setdefault(position, f"column {name!r}: {cell[:most]!r} {_UNDECODED}")
        return errors


_UNDECODED = "is not UTF-8"
_CONVERT = "convert the file, such as with iconv -f latin1 -t utf-8"


def _special(dialect: Dialect) -> str:
    """A pattern of the characters for which a cell needs quotes."""
    return "[" + "".join(f"\\x{ord(mark):02x}" for mark in dialect.delimiter + dialect.quote + "\r\n") + "]"


def _needs_quotes(texts: pa.Array, dialect: Dialect) -> pa.Array:
    return pc.match_substring_regex(texts, _special(dialect))


def _is_null_value(texts: pa.Array, dialect: Dialect) -> pa.Array:
    return pc.is_in(texts, value_set=few.texts(dialect.null_values, texts.type))


def _with_quotes(texts: pa.Array, where: pa.Array, quote: str) -> pa.Array:
    if not pc.any(where).as_py():
        return texts
    return pc.replace_with_mask(texts, where, quoted(texts.filter(where), quote))


def as_cells(texts: pa.Array, dialect: Dialect, what: str) -> pa.Array:
    """Texts as cells. Nulls stay. Raises InvalidArgument, which begins with `what`, for one that needs quotes where
    there are none."""
    quotes = _needs_quotes(texts, dialect)
    if not dialect.quote:
        if pc.any(quotes).as_py():
            text = texts.filter(quotes)[0].as_py()
            raise InvalidArgument(f"{what}: {text[:100]!r} cannot be written without quotes")
        return texts
    return _with_quotes(texts, pc.or_(quotes, _is_null_value(texts, dialect)), dialect.quote)


# ---- Writing ---------------------------------------------------------------------------------------------------------


class DelimitedWriter:
    """Lines of CSV. write: takes bytes. Raises InvalidArgument for columns and values that no cell can hold."""

    def __init__(
        self, write: Callable[[Any], object], name: str, schema: pa.Schema, dialect: Dialect, header: bool
    ) -> None:
        self._write, self._name, self._dialect, self._names = write, name, dialect, schema.names
        for field in schema:
            _check(name, field)
        null_values = dialect.null_values
        self._null = "" if "" in null_values or not null_values else null_values[0]
        # Numbers need quotes only if they may look like a null value, such as -999.
        self._numbers_are_plain = dialect.delimiter in ",;\t|" and all(
            not text or (text.isalpha() and text.lower() not in ("nan", "inf", "true", "false")) for text in null_values
        )
        if header:
            names = [few.texts([column], pa.large_string()) for column in schema.names]
            self._write(self._lines([self._quoted(array, "name of a column") for array in names]))

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            if batch.num_rows:
                pairs = zip(batch.columns, self._names, strict=True)
                self._write(self._lines([self._cells(column, name) for column, name in pairs]))

    def close(self) -> None:
        """Nothing is held back."""

    def _cells(self, column: pa.Array, name: str) -> pa.Array:
        type_ = column.type
        if isinstance(type_, CellType):
            if type_.dialect is not None and self._dialect.has_cells_of(type_.dialect):
                return column.storage.cast(pa.large_string())
            if type_.dialect is not None:
                return self._recoded(column.storage.cast(pa.large_string()), type_.dialect, name)
        values = texts(decoded(column))
        if self._dialect.decimal_mark == "," and (pa.types.is_floating(type_) or pa.types.is_decimal(type_)):
            return self._quoted(pc.replace_substring(values, ".", ","), name)
        return values if self._numbers_are_plain and _is_number(type_) else self._quoted(values, name)

    def _recoded(self, cells: pa.Array, dialect: Dialect, name: str) -> pa.Array:
        """Cells of another dialect. What was null there is null here."""
        is_null = _is_null_value(cells, dialect)
        texts = pc.replace_with_mask(unquoted(cells, dialect), is_null, few.null(cells.type))
        return self._quoted(texts, name)

    def _quoted(self, texts: pa.Array, name: str) -> pa.Array:
        """Texts as cells. Nulls stay."""
        return as_cells(texts, self._dialect, f"{self._name}: column {name!r}")

    def _lines(self, cells: list[pa.Array]) -> pa.Buffer:
        rows = pc.binary_join_element_wise(
            *cells, _large(self._dialect.delimiter), null_handling="replace", null_replacement=self._null
        )
        return end_to_end(pc.binary_join_element_wise(rows, _large(""), _large("\n")))


def _large(text: str) -> pa.Scalar:
    return few.text(text, pa.large_string())


def texts(column: pa.Array) -> pa.Array:
    """Values as large text."""
    return decimal_texts(column) if pa.types.is_decimal(column.type) else column.cast(pa.large_string())


def _is_number(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_integer(type_) or is_.is_floating(type_) or is_.is_boolean(type_))


def _check(name: str, field: pa.Field) -> None:
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    is_ = pa.types
    others = (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary, is_.is_binary_view, is_.is_interval)
    if is_.is_nested(type_) or any(kind(type_) for kind in others):
        instead = ".parquet or .arrow" if has_no_json(type_) else ".jsonl, .parquet or .arrow"
        raise InvalidArgument(f"{name}: CSV cannot hold column {field.name!r} of type {field.type}; write {instead}")
