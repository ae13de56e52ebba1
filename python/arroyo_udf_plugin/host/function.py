"""A function of a loaded plugin: columns in, a column out.

arguments.py says what is accepted as a column. Every method may be called from any thread; other Python threads run
meanwhile.
"""

import asyncio
import inspect
import itertools
import weakref
from asyncio import _get_running_loop
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc

from .._native import run, take_interrupt
from ..abi import AGGREGATE, ASYNC, STEP, SYNC, TABLE, VOLATILITIES, address, ffi, known, printable, text
from ..author.options import Options, StartOptions, abi_fields, check, from_abi, unknown_in
from ..author.udf import Volatility
from ..errors import AbiError, InvalidArgument, RowError, UnsupportedCall
from ..plugin.registered import functions as registered
from ..plugin.vectorized import Direct, is_plain
from .answers import schema_of, with_refused
from .arguments import Arguments, Piece
from .batches import Outputs, Shape, Shapes, contract_broken, failure, free_batch, take_outputs
from .fields import annotation, array_class, field_of
from .html import as_html
from .native import Native, NativeRows
from .runtime import Runtime, start
from .shared import Shared
from .to_thread import to_thread

Kind = Literal["sync", "async", "aggregate", "table", "step"]
_KINDS: dict[int, Kind] = {SYNC: "sync", ASYNC: "async", AGGREGATE: "aggregate", TABLE: "table", STEP: "step"}


class Fusing(NamedTuple):
    """What `Fused` calls of a native function. slot: of its library. number: of the function. shape: of its results."""

    slot: Any
    number: int
    shape: Shape


class Function:
    """One function of a plugin: call it for all rows of some columns, or, if it is async, start it for rows that come.

    arguments: names and Arrow types; a field is nullable if the function handles nulls itself.
    returns, returns_nullable: the Arrow type of a result, and whether the function may return null.
    kind: "sync" or "async"; "aggregate" (see aggregate.py); "table": its value is the list of a row's rows. `start` of
        another than an async function raises UnsupportedCall. "kind 6" is for later hosts: all methods raise
        UnsupportedCall, and only the name is known.
    vectorized: the author's code gets whole arrays.
    options: the author's choices and the defaults; None for a sync function. chosen: the author's choices alone.
    timeout: seconds for a batch of a sync function, which only isolation="process" can keep; None: no limit.
    documentation: the author's text for users, "" if there is none.
    volatility: what a result depends on: "immutable" (the arguments alone), "stable" (also what does not change during
        a query), "volatile" (anything); None: the author has not said.
    native: whether it was compiled to C, so that only deferred rows need Python. not_native: why not; None if it was,
        and for functions in C and Rust. fusing: what `Fused` calls; None: its library cannot.
    where: "plugin.function". plugin_hash: the plugin's `hash`.
    """

    name: str
    kind: Kind
    arguments: pa.Schema
    returns: pa.DataType
    returns_nullable: bool
    vectorized: bool
    options: Options | None
    timeout: float | None
    chosen: dict[str, Any]
    documentation: str
    volatility: Volatility | None
    native: bool = False
    not_native: str | None = None
    where: str
    plugin_hash: str
    reopening: tuple[Callable[..., "Function"], tuple[Any, ...]] | None = None
    """How pickle makes the function again, in another process; None: it cannot."""

    def __init__(
        self,
        table: Any,
        number: int,
        described: Any,
        plugin: str,
        plugin_hash: str,
        validate: bool,
        descriptor: int | None = None,
    ) -> None:
        """descriptor: the address of the plugin's, if its functions run in this interpreter."""
        self.name = printable(described.name, "its name")
        self.where = f"{plugin}.{self.name}"
        self.plugin_hash = plugin_hash
        is_known = described.kind in _KINDS
        self.kind = _KINDS.get(described.kind, cast(Kind, f"kind {described.kind}"))
        self.arguments, returns = pa.schema([]), pa.field("", pa.null())
        if is_known:
            arguments = field_of(described.arguments, f"{self.where}: arguments").type
            if not pa.types.is_struct(arguments):
                raise AbiError(f"{self.where}: arguments are {arguments}, not a struct")
            self.arguments = pa.schema(list(arguments))
            returns = field_of(described.returns, f"{self.where}: result")
        self.returns = returns.type
        self.returns_nullable = returns.nullable
        self.vectorized = bool(described.vectorized)
        documented = is_known and described.documentation != ffi.NULL
        self.documentation = text(described.documentation, "the documentation") if documented else ""
        self.volatility = cast(Volatility | None, VOLATILITIES.get(described.volatility)) if is_known else None
        self.options, self.chosen = None, {}
        self.timeout = described.timeout_ns / 1e9 if self.kind != "async" and described.timeout_ns else None
        if self.kind == "async":
            options = known(described.options, "the options")
            if wrong := unknown_in(options):
                raise AbiError(f"{self.where}: {wrong}")
            self.chosen = from_abi(options)
            self.options = Options(**self.chosen)
        self._table = table
        self._number = number
        self._arguments = Arguments(self.where, self.arguments)
        self._shapes = Shapes(self.where, self.returns, "drain_results" if self.kind == "async" else "run", validate)
        self._run_slot = address(table.run)
        self._direct: Direct | None = None
        plain = self.vectorized and self._arguments.are_plain and is_plain(self.returns)
        self._descriptor = descriptor if plain and self.timeout is None else None
        self.fusing: Fusing | None = None
        self._shared = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Shared[Runtime]]()
        self.__name__ = self.__qualname__ = self.name
        self.__doc__ = self.documentation or None
        self.__signature__ = self._signature()

    def take_native(self, told: Native) -> None:
        """Takes what its plugin tells of it. Called once, before anything else."""
        self.native, self.not_native, self._count_native = told.reason is None, told.reason, told.count
        if told.run_fused is not None:
            shape = self._shapes.of(pa.struct([pa.field("value", self.returns)]), "run_fused")
            self.fusing = Fusing(told.run_fused, self._number, shape)

    def native_rows(self) -> NativeRows | None:
        """The rows of a native function, of all that call it in this process, since its library was opened; None: it is
        not native."""
        return self._count_native() if self.native else None

    def _signature(self) -> inspect.Signature:
        """As the author wrote it, as far as the plugin says."""
        of = array_class if self.vectorized else annotation
        try:
            parameters = [
                inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=of(field))
                for field in self.arguments
            ]
            returns = of(pa.field("", self.returns, self.returns_nullable))
            return inspect.Signature(parameters, return_annotation=returns)
        except ValueError:  # names that Python does not allow
            return inspect.signature(type(self).__call__)

    def __reduce__(self) -> Any:
        if self.reopening is None:
            raise UnsupportedCall(f"{self.where}: a plugin with workers stays in its process; load it where it is used")
        return self.reopening

    def __repr__(self) -> str:
        arguments = ", ".join(f"{field.name}: {field.type}" for field in self.arguments)
        return f"<{self.kind} function {self.name}({arguments}) -> {self.returns}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html(self.where, [self])

    # ---- Calls ----

    def __call__(self, /, *arrays: Any, **named: Any) -> pa.Array | pa.ChunkedArray:
        """Calls the function for all rows. Returns an array with a value per row, chunked if an argument is chunked.

        arrays, named: a column or a scalar per argument, by position or by name; or one table, whose columns are found
            by name. `pa.nulls(n)` for n rows of a function without arguments. arguments.py says what is a column, and
            plugin/casting.py which other types fit.
        An async function is started for the call, and stopped. `start` keeps it running, and takes options.
        Raises RowError if a row failed or does not fit (`outcomes` returns the other rows' values), InvalidArgument for
        arrays of the wrong number, type or length, UserCodeError and PluginEnvironmentError if the plugin cannot start.
        """
        if not named and self.kind == "sync" and self._arguments.fit(arrays):
            # The native core hides a running event loop from the function.
            if self._direct is not None and _get_running_loop() is None:
                return self._run_direct(self._direct, arrays)
            results, shape, alone = self._run(arrays)
            if self._descriptor is not None:
                self._find_direct(self._descriptor)
            return results if alone else self._values(results, shape.value, shape.outcome, shape.error)
        pieces, chunked = self._arguments.pieces(arrays, named)
        if self.kind == "async":
            return self._split(self._all(pieces), pieces, chunked)
        values, errors, first = [], dict[int, str](), 0
        for piece in pieces:
            try:
                values.append(self._piece(piece, first))
            except RowError as error:  # the rows of all chunks are told together
                errors |= error.errors
            first += piece.n_rows
        if errors:
            raise self._row_error(errors)
        return pa.chunked_array(values, self.returns) if chunked else values[0]

    async def call_async(self, /, *arrays: Any, **named: Any) -> pa.Array | pa.ChunkedArray:
        """As a call, without blocking the event loop.

        An async function is started, and stopped, once for all calls that are under way in an event loop at a time. For
        a server, which is called again and again, `Runtime.call` keeps it running. A sync function is called in the
        loop's default executor.

        Raises what a call raises, and, of the last call that was under way, what stopping the function raises.
        """
        if self.kind != "async":
            return await asyncio.to_thread(self, *arrays, **named)
        pieces, chunked = self._arguments.pieces(arrays, named)
        shared = self._shared.setdefault(asyncio.get_running_loop(), Shared(self._start_for_calls))
        async with shared as runtime:
            results = await runtime._called().run(pieces)
        return self._split(self._in_order(results.to_batches()), pieces, chunked)

    async def _start_for_calls(self) -> Runtime:
        """Without order, so that no call waits for another one; else as the author has chosen."""
        assert self.options is not None
        assert self.options.max_attempts is not None
        return await self.start_async(ordered=False, max_attempts=self.options.max_attempts)

    def outcomes(self, /, *arrays: Any, **named: Any) -> pa.StructArray:
        """As a call, but returns a struct per row: {value} if no row failed, else {value, outcome, error}.

        A row with an argument that does not fit is an error. Of an async function: {value, outcome, attempts, error}.
        """
        (piece,), _ = self._arguments.pieces(arrays, named, whole=True)
        if self.kind == "async":
            return self._all([piece]).select(["value", "outcome", "attempts", "error"]).to_struct_array()
        if piece.refused:
            return self._with_refused(piece).to_struct_array()
        results, shape, alone = self._run(piece.arrays)
        return pa.StructArray.from_arrays([results], fields=list(shape.type)) if alone else results

    def _piece(self, piece: Piece, first: int) -> pa.Array:
        if piece.refused:
            results = self._with_refused(piece)
            return self._values(results, 0, 1, 2, first)
        values, shape, alone = self._run(piece.arrays)
        return values if alone else self._values(values, shape.value, shape.outcome, shape.error, first)

    def _run(self, arrays: Any) -> tuple[pa.Array, Shape, bool]:
        """Calls the plugin. Returns the results as `Shape.take` does."""
        batch = self._arguments.export(arrays)
        outputs = take_outputs()
        schema = run(self._run_slot, self._number, batch, outputs.address)
        if schema is None:
            raise self._not_run(outputs, batch)
        shape = self._shapes[schema]
        results, alone = shape.take(outputs, len(arrays[0]))
        return results, shape, alone

    def _not_run(self, outputs: Outputs, batch: int) -> BaseException:
        status = outputs.status[0]
        if not status:  # the batch stays allocated: the plugin may still read it, or release a copy of it
            return contract_broken(self.where, "run answers OK and has not taken its arguments")
        free_batch(batch)
        return failure(status, outputs.error, self.where, "run")

    def _find_direct(self, descriptor: int) -> None:
        """Looks for the function itself: once it was called, it is registered, if it is here."""
        if functions := registered.get(descriptor):
            function, _, _, split = functions[self._number]
            self._direct = Direct(function, split, self.returns)
        self._descriptor = None

    def _run_direct(self, direct: Direct, arrays: Any) -> pa.Array:
        try:
            values, errors = direct(arrays)
        except KeyboardInterrupt:
            take_interrupt()  # it is on its way already
            raise
        if errors:
            raise self._row_error(dict(errors))
        return values

    def _with_refused(self, piece: Piece) -> pa.RecordBatch:
        """The outcomes {value, outcome, error} of a piece with rows that are not called."""
        kept = piece.kept()
        results = None
        if kept:
            at = pa.array(kept, pa.int64())
            from_struct = pa.RecordBatch.from_struct_array
            values, shape, alone = self._run([array.take(at) for array in piece.arrays])
            results = pa.RecordBatch.from_arrays([values], ["value"]) if alone else from_struct(values)
            if shape.error is not None and not alone:
                texts = results.column(shape.error).to_pylist()
                texts = [
                    text and self._text(row, text.removeprefix(self._text(place, "")))
                    for place, (row, text) in enumerate(zip(kept, texts, strict=True))
                ]
                results = results.set_column(shape.error, "error", pa.array(texts, pa.utf8()))
        refused = {row: why and self._text(row, why) for row, why in piece.refused.items()}
        schema = pa.schema([schema_of(self.returns).field(name) for name in ("value", "outcome", "error")])
        return with_refused(results, kept, refused, schema)

    def _text(self, row: int, text: str) -> str:
        return f"{self.where}, row {row}: {text}"

    def _all(self, pieces: Iterable[Piece]) -> pa.RecordBatch:
        """The results of all rows of an async function."""
        with self.start() as runtime:
            return self._in_order([results for _, results in runtime.answers((p.arrays[0], p) for p in pieces)])

    def _in_order(self, answers: list[pa.RecordBatch]) -> pa.RecordBatch:
        """The results of all rows by id."""
        schema = schema_of(self.returns)
        if not answers:
            return pa.RecordBatch.from_pylist([], schema)
        table = pa.Table.from_batches([answer.select(schema.names) for answer in answers])
        batches = table.sort_by("id").combine_chunks().to_batches()
        if len(batches) > 1:
            raise InvalidArgument(f"{self.where}: the results are too large for one array; use start and map")
        return batches[0]

    def _split(self, results: pa.RecordBatch, pieces: list[Piece], chunked: bool) -> pa.Array | pa.ChunkedArray:
        """The values of the pieces' rows."""
        values = self._values(results, *map(results.schema.names.index, ("value", "outcome", "error")))
        if not chunked:
            return values
        ends = list(itertools.accumulate((piece.n_rows for piece in pieces), initial=0))
        return pa.chunked_array([values[start:end] for start, end in itertools.pairwise(ends)], self.returns)

    def _values(
        self,
        results: pa.StructArray | pa.RecordBatch,
        value: int,
        outcome: int | None,
        error: int | None,
        first: int = 0,
    ) -> pa.Array:
        """The values of results, whose fields are at these places. Raises RowError if a row failed. first: the number
        of the first row."""
        field = results.field if isinstance(results, pa.StructArray) else results.column
        if outcome is None or error is None:
            return field(value)
        failed = pc.indices_nonzero(field(outcome))
        if not len(failed):
            return field(value)
        texts = field(error).take(failed).to_pylist()
        errors = {
            first + row: (text or "no text").removeprefix(self._text(row, ""))
            for row, text in zip(failed.to_pylist(), texts, strict=True)
        }
        raise self._row_error(errors)

    def _row_error(self, errors: dict[int, str]) -> RowError:
        row, text = next(iter(errors.items()))
        others = f" (and {len(errors) - 1} more, see .errors)" if len(errors) > 1 else ""
        return RowError(f"{self.where}, row {row}: {text}{others}", errors)

    # ---- Async ----

    def start(self, *, lineage: bytes | None = None, **options: Unpack[StartOptions]) -> Runtime:
        """Starts the function: creates its Context and waits for the Context's init.

        options: as in `Options`; each overrides the author's choice.
        lineage: 16 bytes that, with a row's id, form the idempotency key of its calls, if `send` gives none; None:
            random bytes.
        Raises InvalidArgument for a bad option, UserCodeError if the module or init fails, PluginEnvironmentError if
        the plugin cannot run here, UnsupportedCall for a sync function.
        """
        struct = ffi.new("arroyo_udf_options *")
        struct.size = ffi.sizeof("arroyo_udf_options")
        for name, value in options.items():
            if wrong := check(name, value):
                raise InvalidArgument(f"{self.where}: {wrong.removeprefix('has ')}")
        for field, number in abi_fields(options).items():
            setattr(struct, field, number)
        if lineage is not None:
            if not isinstance(lineage, bytes) or len(lineage) != 16 or not any(lineage):
                raise InvalidArgument(f"{self.where}: lineage={lineage!r}; give 16 bytes that are not all zero")
            struct.lineage = list(lineage)
        chosen = Options(**self.chosen | dict(options))
        at_once = chosen.most_in_flight * (chosen.batch_size or 1)
        return start(
            self._table, self.where, self._number, struct, self._arguments, self._shapes, chosen.ordered, at_once
        )

    async def start_async(self, *, lineage: bytes | None = None, **options: Unpack[StartOptions]) -> Runtime:
        """As `start`, waiting in another thread while the event loop runs on."""
        return await to_thread(lambda: self.start(lineage=lineage, **options), "arroyo-udf-start")


class Uncallable(Function):
    """A function of a kind that later hosts call: it has a name, and every call is refused."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedCall(f"{self.where}: is of the kind {self.kind!r}, which this host cannot call")

    async def _refuse_async(self, *_: Any, **__: Any) -> Any:
        self._refuse()

    __call__ = outcomes = start = _refuse
    call_async = start_async = _refuse_async
