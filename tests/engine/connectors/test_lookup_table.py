"""Tables in which rows look up others: what is found, in which types, how often the database is asked."""

from __future__ import annotations

import contextlib
import datetime
import decimal
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import written

from arroyo_udf_plugin.engine.connectors import lookup_cache
from arroyo_udf_plugin.engine.connectors.database import WrongValue, open_database
from arroyo_udf_plugin.engine.connectors.lookup_cache import Lookups, Matches
from arroyo_udf_plugin.engine.connectors.lookup_table import LookupTable, lookup_table
from arroyo_udf_plugin.errors import InvalidArgument

PLANES = pa.RecordBatch.from_pylist(
    [
        {"tail": "N1", "year": 2000, "maker": "Airbus", "seats": 100},
        {"tail": "N2", "year": None, "maker": "Boeing", "seats": None},
        {"tail": "N1", "year": 1990, "maker": "Boeing", "seats": 2},
        {"tail": "Ä'", "year": 2000, "maker": None, "seats": 1},
    ],
    pa.schema([("tail", pa.string()), ("year", pa.int64()), ("maker", pa.string()), ("seats", pa.int32())]),
)


def table_of(uri: str, table: str, keys: dict[str, pa.DataType], **others: Any) -> LookupTable:
    keys_of = {"columns": None, "types": {}, **others}
    return lookup_table(uri, table, keys, name="lookup", **keys_of)


def found(table: LookupTable, *keys: pa.Array) -> list[tuple[int, dict[str, Any]]]:
    """Each row with the place of its key."""
    with contextlib.closing(table.open()) as opened:
        rows, places = opened.rows(keys)
    return list(zip(places.to_pylist(), rows.to_pylist(), strict=True))


def made(uri: str, statement: str) -> None:
    with contextlib.closing(open_database(uri, "test")) as database:
        database.run(lambda transaction: transaction.rows(statement), 0)


def test_rows_by_a_key(uri: str, name: str) -> None:
    written(uri, name, PLANES)
    table = table_of(
        uri, name, {"tail": pa.string()}, columns={"m": "maker", "n": "seats"}, types={"seats": pa.int64()}
    )
    assert table.schema == pa.schema([("m", pa.string()), ("n", pa.int64())])
    rows = found(table, pa.array(["Ä'", "n1", "N1", '"; DROP TABLE x; --']))
    assert rows[0] == (0, {"m": None, "n": 1})
    assert sorted(rows[1:], key=str) == [(2, {"m": "Airbus", "n": 100}), (2, {"m": "Boeing", "n": 2})]


def test_rows_by_several_keys(uri: str, name: str) -> None:
    written(uri, name, PLANES)
    table = table_of(uri, name, {"tail": pa.string(), "year": pa.int16()}, columns={"maker": "maker"})
    keys = pa.array(["N1", "N2", "N1"]), pa.array([1990, 2000, 2000])
    assert found(table, *keys) == [(0, {"maker": "Boeing"}), (2, {"maker": "Airbus"})]


def test_no_columns(uri: str, name: str) -> None:
    written(uri, name, PLANES)
    with contextlib.closing(table_of(uri, name, {"tail": pa.string()}, columns={}).open()) as opened:
        _, places = opened.rows([pa.array(["N2", "N1"])])
    assert places.to_pylist() == [0, 1, 1]


def test_a_view_is_a_table(uri: str, name: str) -> None:
    written(uri, name, PLANES)
    made(uri, f'CREATE VIEW "v{name}" AS SELECT tail, seats FROM "{name}"')
    table = table_of(uri, f"v{name}", {"tail": pa.string()})
    assert found(table, pa.array(["N2"])) == [(0, {"seats": None})]


TYPED = {
    "b": (pa.bool_(), [True, False, None]),
    "i": (pa.int32(), [-1, 2**31 - 1, None]),
    "u": (pa.uint32(), [0, 2**32 - 1, None]),
    "f": (pa.float64(), [0.1, -1e300, None]),
    "s": (pa.string(), ["", "ä\n", None]),
    "y": (pa.binary(), [b"", b"\0\xff", None]),
    "d": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(2026, 2, 28), None]),
    "t": (pa.timestamp("us"), [datetime.datetime(1960, 1, 1), datetime.datetime(2026, 1, 1, 1, 2, 3, 4), None]),
    "z": (pa.timestamp("us", "UTC"), [datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.UTC), None, None]),
    "n": (pa.decimal128(20, 4), [decimal.Decimal("-1.5000"), decimal.Decimal(10**15), None]),
}


def test_what_a_table_sink_has_written_is_read(uri: str, name: str) -> None:
    schema = pa.schema([("k", pa.int64()), *((column, type_) for column, (type_, _) in TYPED.items())])
    columns = [pa.array([0, 1, 2]), *(pa.array(values, type_) for type_, values in TYPED.values())]
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    written(uri, name, rows)
    types = {column: type_ for column, (type_, _) in TYPED.items()}
    table = table_of(uri, name, {"k": pa.int64()}, columns={column: column for column in TYPED}, types=types)
    with contextlib.closing(table.open()) as opened:
        (back, _) = opened.rows([pa.array([0, 1, 2])])
    assert back == rows.select(list(TYPED))


def test_whole_numbers_among_others_in_a_numeric_column(uri: str, name: str) -> None:
    """SQLite's driver takes the type of a column from the first rows."""
    made(uri, f'CREATE TABLE "{name}" (k integer, x numeric)')
    made(uri, f'INSERT INTO "{name}" VALUES ' + ", ".join(f"(1, {n}{'.5' if n > 2000 else ''})" for n in range(2002)))
    for type_ in (pa.float64(), pa.decimal128(10, 2)):
        rows = found(table_of(uri, name, {"k": pa.int64()}, types={"x": type_}), pa.array([1]))
        assert sorted(float(row["x"]) for _, row in rows) == [*range(2001), 2001.5]


def test_a_value_of_another_type_is_an_error(tmp_path: Any) -> None:
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    made(uri, "CREATE TABLE t (k integer, n integer, d date)")
    made(uri, "INSERT INTO t VALUES (1, 'many', '2013-01-01'), (2, 2, 1700000000)")
    numbers = table_of(uri, "t", {"k": pa.int64()}, columns={"n": "n"})
    with pytest.raises(WrongValue, match=r"lookup \(t\): 'n' is no int64: .*many"):
        found(numbers, pa.array([1]))
    days = table_of(uri, "t", {"k": pa.int64()}, columns={"d": "d"})
    with pytest.raises(WrongValue, match=r"lookup \(t\): 'd' is no date32"):
        found(days, pa.array([2]))
    assert found(numbers, pa.array([2])) == [(0, {"n": 2})]


@pytest.mark.parametrize(
    ("declared", "type_", "value"),
    [
        ("integer", pa.int64(), 7),
        ("real", pa.float64(), 0.5),
        ("text", pa.string(), "x"),
        ("blob", pa.binary(), b"\0"),
        ("date", pa.date32(), datetime.date(2026, 1, 1)),
    ],
)
def test_a_value_after_many_nulls(tmp_path: Any, declared: str, type_: pa.DataType, value: Any) -> None:
    """SQLite's driver takes the type of a column from the first rows."""
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    rows = pa.RecordBatch.from_pydict({"k": [1] * 1501, "v": pa.array([None] * 1500 + [value], type_)})
    made(uri, f"CREATE TABLE t (k integer, v {declared})")
    written(uri, "t", rows)
    table = table_of(uri, "t", {"k": pa.int64()}, types={"v": type_})
    assert [row["v"] for _, row in found(table, pa.array([1]))] == [None] * 1500 + [value]


def test_values_after_others_fail_alone(tmp_path: Any) -> None:
    """What the driver finds only while it hands rows on is an error of these rows."""
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    made(uri, "CREATE TABLE t (k integer, n integer)")
    made(uri, "INSERT INTO t VALUES " + ", ".join(f"({n}, {n})" for n in range(1500)) + ", (1500, 'many')")
    lookups = Lookups(table_of(uri, "t", {"k": pa.int64()}), 1 << 20, 60)
    with contextlib.closing(lookups):
        matches = find(lookups, [pa.array(range(1501))])
    assert (len(matches.of), list(matches.failed)) == (1500, [1500])


def test_numbers_of_a_column_without_a_type(tmp_path: Any) -> None:
    """Of whole numbers beside others, and of others beside texts, no digit is lost."""
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    made(uri, "CREATE TABLE t (k integer, v)")
    made(uri, f"INSERT INTO t VALUES (1, {2**53 + 1}), (1, 2.0), (2, {0.1 + 0.2}), (2, '0.5')")
    whole = table_of(uri, "t", {"k": pa.int64()}, types={"v": pa.int64()})
    assert sorted(row["v"] for _, row in found(whole, pa.array([1]))) == [2, 2**53 + 1]
    with pytest.raises(WrongValue, match="'v' is no double: there is text among the numbers"):
        found(table_of(uri, "t", {"k": pa.int64()}, types={"v": pa.float64()}), pa.array([2]))


@pytest.mark.server
def test_types_of_postgresql_alone(postgresql: str, name: str) -> None:
    made(postgresql, f'CREATE TABLE "{name}" (u uuid, c char(4), v varchar(9), j jsonb, l text[], n numeric(20, 0))')
    made(
        postgresql,
        f"""INSERT INTO "{name}" VALUES ('{"0" * 32}', 'ab', 'ab ', '{{"a": 1}}', '{{x,NULL}}', {2**64 - 1})""",
    )
    table = table_of(postgresql, name, {"c": pa.string()}, types={"n": pa.uint64()})
    ((_, row),) = found(table, pa.array(["ab"]))
    uuid = "00000000-0000-0000-0000-000000000000"
    assert row == {"u": uuid, "v": "ab ", "j": '{"a": 1}', "l": ["x", None], "n": 2**64 - 1}
    by_uuid = table_of(postgresql, name, {"u": pa.string()}, columns={"v": "v"})
    assert found(by_uuid, pa.array([uuid])) == [(0, {"v": "ab "})]
    with pytest.raises(WrongValue, match="invalid input syntax for type uuid"):
        found(by_uuid, pa.array(["no uuid"]))
    by_number = table_of(postgresql, name, {"n": pa.decimal128(22, 1)}, columns={"v": "v"})
    assert found(by_number, pa.array([decimal.Decimal(2**64 - 1)], pa.decimal128(22, 1))) == [(0, {"v": "ab "})]


@pytest.mark.parametrize(
    ("keys", "others", "text"),
    [
        ({"tale": pa.string()}, {}, r"the table has no column 'tale': it has tail, year, maker, seats"),
        ({"tail": pa.string()}, {"columns": {"x": "xs"}}, "the table has no column 'xs'"),
        ({"tail": pa.string()}, {"types": {"maker": pa.int64()}}, "'maker' is (TEXT|text) .* not read as int64: write"),
        ({"tail": pa.int64()}, {}, "'tail' is (TEXT|text) in the database, and no int64 equals it"),
        ({"year": pa.string()}, {}, "'year' is (INTEGER|bigint) in the database, and no string equals it"),
    ],
)
def test_what_does_not_fit(uri: str, name: str, keys: Any, others: Any, text: str) -> None:
    written(uri, name, PLANES)
    with pytest.raises(InvalidArgument, match=rf"lookup \({name}\): .*{text}"):
        table_of(uri, name, keys, **others)


def test_no_table(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"lookup \({name}\): there is no such table"):
        table_of(uri, name, {"tail": pa.string()})


# ---- The cache ----


class Asked:
    """A table of numbers: n has n % 4 rows. It counts the queries, and knows the keys of each."""

    def __init__(self) -> None:
        self.schema = pa.schema([("text", pa.string())])
        self.keys: list[list[int]] = []
        self.version = 0
        self.closed = 0
        self.wrong: set[int] = set()

    def open(self) -> Asked:
        return self

    def close(self) -> None:
        self.closed += 1

    def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        numbers = keys[0].to_pylist()
        self.keys.append(numbers)
        if self.wrong.intersection(numbers):
            raise WrongValue("a wrong value")
        rows = [(place, self.text(n, i)) for place, n in enumerate(numbers) for i in range(n % 4)]
        texts = pa.array([text for _, text in rows], pa.string())
        return pa.RecordBatch.from_arrays([texts], ["text"]), pa.array([place for place, _ in rows], pa.int64())

    def text(self, n: int, i: int) -> str:
        return f"{n}/{i}/{self.version}"


def find(lookups: Lookups, keys: Sequence[pa.Array], most: int | None = None) -> Matches:
    return lookups.answer(lookups.ask(keys), most)


def pairs(matches: Matches) -> list[tuple[int, str]]:
    texts = matches.rows(matches.at).column("text").to_pylist()
    return list(zip(matches.of.to_pylist(), texts, strict=True))


def wanted(table: Asked, numbers: Sequence[int | None]) -> list[tuple[int, str]]:
    return [(row, table.text(n, i)) for row, n in enumerate(numbers) if n is not None for i in range(n % 4)]


BATCHES = st.lists(st.lists(st.none() | st.integers(-3, 40), min_size=1, max_size=30), max_size=12)


@settings(max_examples=150, deadline=None)
@given(batches=BATCHES, size=st.sampled_from([1, 2000, 6000, 1 << 20]))
def test_a_cache_of_any_size_answers_as_the_table(batches: list[list[int | None]], size: int) -> None:
    table = Asked()
    lookups = Lookups(table, size, 60.0, lambda: 0.0)  # type: ignore[arg-type]
    for numbers in batches:
        before = len(table.keys)
        assert pairs(find(lookups, [pa.array(numbers, pa.int64())])) == wanted(table, numbers)
        asked = [key for keys in table.keys[before:] for key in keys]
        assert len(table.keys) <= before + 1
        assert len(asked) == len(set(asked)) <= len({n for n in numbers if n is not None})
    if size == 1 << 20:
        asked = [key for keys in table.keys for key in keys]
        assert len(asked) == len(set(asked)), "a key is asked for once"


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.none() | st.integers(0, 5), st.none() | st.text("ab", max_size=2)), min_size=1))
def test_keys_of_several_columns(rows: list[tuple[int | None, str | None]]) -> None:
    class Pairs(Asked):
        def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
            texts = [f"{n}{text}" for n, text in zip(*(key.to_pylist() for key in keys), strict=True)]
            assert len(set(texts)) == len(texts)
            return pa.RecordBatch.from_arrays([pa.array(texts)], ["text"]), pa.array(range(len(texts)), pa.int64())

    lookups = Lookups(Pairs(), 1 << 20, 60.0)  # type: ignore[arg-type]
    for _ in range(2):
        numbers, texts = (list(column) for column in zip(*rows, strict=True))
        found = pairs(find(lookups, [pa.array(numbers, pa.int64()), pa.array(texts, pa.string())]))
        assert found == [
            (row, f"{n}{text}") for row, (n, text) in enumerate(rows) if n is not None and text is not None
        ]


def test_rows_are_copied_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many batches it takes to fill the cache; and never more text in one array than it may have."""
    copied = 0
    together = lookup_cache._together

    def counted(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        nonlocal copied
        found = together(batches)
        copied += found.num_rows
        assert found.nbytes <= 4000
        return found

    monkeypatch.setattr(lookup_cache, "_PIECE_BYTES", 4000)
    table = Asked()
    lookups = Lookups(table, 1 << 30, 60.0)  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(lookup_cache, "_together", counted)
        for n in range(512):
            matches = find(lookups, [pa.array([4 * n + 1])])
    assert copied <= 512 * 10
    assert 1 < len(matches.pieces) < 16
    numbers = [*range(1, 2048, 4), 0, 5]
    assert pairs(find(lookups, [pa.array(numbers)])) == wanted(table, numbers)
    nothing = matches.rows(pa.array([None, 511, 0], pa.int64())).column("text").to_pylist()
    assert nothing == [None, table.text(2045, 0), table.text(1, 0)]


@settings(max_examples=100, deadline=None)
@given(numbers=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=30), most=st.integers(0, 20))
def test_no_more_matches_than_wanted(numbers: list[int | None], most: int) -> None:
    """As many rows as have no more, and at least one; the rest when it is asked for again."""
    table = Asked()
    table.wrong = {6}
    lookups = Lookups(table, 1 << 20, 60.0)  # type: ignore[arg-type]
    while numbers:
        matches = find(lookups, [pa.array(numbers, pa.int64())], most)
        first, numbers = numbers[: matches.answered], numbers[matches.answered :]
        right = [None if n == 6 else n for n in first]
        assert pairs(matches) == wanted(table, right)
        assert set(matches.failed) == {row for row, n in enumerate(first) if n == 6}
        assert len(first) == 1 or len(matches.of) <= most
        if numbers and numbers[0] != 6:
            assert len(wanted(table, [*right, numbers[0]])) > most


def test_nothing_older_than_the_age_is_used() -> None:
    table, now = Asked(), 0.0
    lookups = Lookups(table, 1 << 20, 10.0, lambda: now)  # type: ignore[arg-type]
    for now, version in ((0.0, 0), (9.0, 0), (10.0, 1), (19.0, 1), (20.0, 2)):
        if (now, version) in ((10.0, 1), (20.0, 2)):
            table.version += 1
        assert pairs(find(lookups, [pa.array([3, 0])])) == [(0, f"3/{i}/{version}") for i in range(3)]
    assert len(table.keys) == 3


def test_what_is_asked_for_again_stays() -> None:
    table = Asked()
    lookups = Lookups(table, 12_000, 60.0, lambda: 0.0)  # type: ignore[arg-type]
    for n in range(200):
        find(lookups, [pa.array([1, 4 * n + 5])])
    asked = [key for keys in table.keys for key in keys]
    assert asked.count(1) == 1
    table.keys.clear()
    find(lookups, [pa.array([5])])
    assert table.keys == [[5]], "what nobody asks for is forgotten"


def test_a_key_without_rows_is_remembered() -> None:
    table = Asked()
    lookups = Lookups(table, 1 << 20, 60.0)  # type: ignore[arg-type]
    for _ in range(2):
        assert pairs(find(lookups, [pa.array([0, 8])])) == []
    assert table.keys == [[0, 8]]


def test_a_wrong_key_fails_alone() -> None:
    table = Asked()
    table.wrong = {6}
    lookups = Lookups(table, 1 << 20, 60.0)  # type: ignore[arg-type]
    matches = find(lookups, [pa.array([1, 6, 2, 5, 6])])
    assert pairs(matches) == [(0, "1/0/0"), (2, "2/0/0"), (2, "2/1/0"), (3, "5/0/0")]
    assert matches.failed == {1: "a wrong value", 4: "a wrong value"}


def test_a_database_that_does_not_answer_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Asked()
    lookups = Lookups(table, 1 << 20, 60.0)  # type: ignore[arg-type]
    find(lookups, [pa.array([1])])

    def refused(keys: Sequence[pa.Array]) -> Iterator[Any]:
        table.keys.append(keys[0].to_pylist())
        raise InvalidArgument("no answer")

    monkeypatch.setattr(table, "rows", refused)
    matches = find(lookups, [pa.array([1, 2, 3])])
    assert pairs(matches) == [(0, "1/0/0")], "what is in the cache is there"
    assert matches.failed == {1: "no answer", 2: "no answer"}
    assert table.keys == [[1], [2, 3]]
    lookups.close()
    assert table.closed == 1
