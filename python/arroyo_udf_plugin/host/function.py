"""A function of a loaded plugin: pyarrow in, pyarrow out.

Accepts any object with the Arrow PyCapsule protocol as an array. Every method may be called from any thread; other
Python threads run meanwhile.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..abi import AGGREGATE, ASYNC, SYNC, TABLE, VOLATILITIES, ffi, known, printable, text
from ..author.options import Options, abi_fields, check, from_abi, unknown_in
from ..errors import AbiError, InvalidArgument, RowError, UnsupportedCall
from .batches import (
    Arguments,
    Shape,
    Shapes,
    array_pointer,
    contract_broken,
    failure,
    free_batch,
    take_outputs,
    taken,
)
from .fields import field_of
from .runtime import Runtime, start

_KINDS = {SYNC: "sync", ASYNC: "async", AGGREGATE: "aggregate", TABLE: "table"}


class Function:
    """One function of a plugin: call it if it is sync, start it if it is async.

    arguments: names and Arrow types; a field is nullable if the function handles nulls itself.
    returns, returns_nullable: the Arrow type of a result, and whether the function may return null.
    kind: "sync" or "async". Methods of the other kind raise UnsupportedCall. "aggregate", "table", or "kind 5" are for
        later hosts: all methods raise UnsupportedCall, and only the name is known.
    vectorized: the author's code gets whole arrays.
    options: the author's choices and the defaults; None for a sync function. chosen: the author's choices alone.
    documentation: the author's text for users, "" if there is none.
    volatility: what a result depends on: "immutable" (the arguments alone), "stable" (also what does not change during
        a query), "volatile" (anything); None: the author has not said.
    where: "plugin.function". plugin_hash: the plugin's `hash`.
    """

    name: str
    kind: str
    arguments: pa.Schema
    returns: pa.DataType
    returns_nullable: bool
    vectorized: bool
    options: Options | None
    chosen: dict[str, Any]
    documentation: str
    volatility: str | None
    where: str
    plugin_hash: str

    def __init__(self, table: Any, number: int, described: Any, plugin: str, plugin_hash: str, validate: bool) -> None:
        self.name = printable(described.name, "its name")
        self.where = f"{plugin}.{self.name}"
        self.plugin_hash = plugin_hash
        is_known = described.kind in (SYNC, ASYNC)
        self.kind = _KINDS.get(described.kind, f"kind {described.kind}")
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
        self.volatility = VOLATILITIES.get(described.volatility) if is_known else None
        self.options, self.chosen = None, {}
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
        self._run_slot = table.run

    def __repr__(self) -> str:
        arguments = ", ".join(f"{field.name}: {field.type}" for field in self.arguments)
        return f"<{self.kind} function {self.name}({arguments}) -> {self.returns}>"

    # ---- Sync ----

    def __call__(self, *arrays: Any) -> pa.Array | pa.ChunkedArray:
        """Calls the function for all rows. Returns an array with a value per row, chunked if an argument is chunked.

        arrays: one per argument, or one RecordBatch; `pa.nulls(n)` for n rows of a function without arguments.
        Raises RowError if a row failed (`outcomes` returns the other rows' values), InvalidArgument for arrays of the
        wrong number, type or length, UserCodeError and PluginEnvironmentError if the plugin cannot start.
        """
        for array in arrays:
            if not isinstance(array, pa.Array):
                return self._call_chunks(arrays)
        return self._chunk(arrays, 0)

    def outcomes(self, *arrays: Any) -> pa.StructArray:
        """As a call, but returns a struct per row: {value} if no row failed, else {value, outcome, error}."""
        chunks = self._arguments.chunks(arrays)
        if len(chunks) != 1:
            raise InvalidArgument(f"{self.where}: outcomes takes no chunked arrays; call combine_chunks() first")
        results, shape, alone = self._run(chunks[0])
        return pa.StructArray.from_arrays([results], fields=list(shape.type)) if alone else results

    def _call_chunks(self, given: tuple[Any, ...]) -> pa.Array | pa.ChunkedArray:
        arrays = self._arguments.arrays(given)
        if not any(isinstance(array, pa.ChunkedArray) for array in arrays):
            return self._chunk(arrays, 0)
        values, first = [], 0
        for chunk in self._arguments.chunks(arrays):
            values.append(self._chunk(chunk, first))
            first += len(chunk[0])
        return pa.chunked_array(values, self.returns)

    def _chunk(self, arrays: Any, first: int) -> pa.Array:
        results, shape, alone = self._run(arrays)
        return results if alone else self._values(results, shape, first)

    def _run(self, arrays: Any) -> tuple[pa.Array, Shape, bool]:
        """Calls the plugin. Returns the results as `Shape.take` does."""
        batch = self._arguments.export(arrays)
        outputs = take_outputs()
        status = self._run_slot(
            self._number, array_pointer(batch), ffi.NULL, outputs.array, outputs.schema, outputs.error
        )
        if status:
            free_batch(batch)
            raise failure(status, outputs.error, self.where, "run")
        if not taken(batch):  # it stays allocated: the plugin may still read it, or release a copy of it
            raise contract_broken(self.where, "run answers OK and has not taken its arguments")
        shape = self._shapes[outputs.schema[0]]
        results, alone = shape.take(outputs, len(arrays[0]))
        return results, shape, alone

    def _values(self, results: pa.StructArray, shape: Shape, first: int) -> pa.Array:
        """The values of results. Raises RowError, counting rows from `first`, if a row failed."""
        if shape.outcome is None or shape.error is None:
            return results.field(shape.value)
        failed = pc.indices_nonzero(results.field(shape.outcome))
        if not len(failed):
            return results.field(shape.value)
        texts = results.field(shape.error).take(failed).to_pylist()
        errors = {
            first + row: (text or "no text").removeprefix(f"{self.where}, row {row}: ")
            for row, text in zip(failed.to_pylist(), texts, strict=True)
        }
        row, text = next(iter(errors.items()))
        others = f" (and {len(errors) - 1} more rows, see .errors)" if len(errors) > 1 else ""
        raise RowError(f"{self.where}, row {row}: {text}{others}", errors)

    # ---- Async ----

    def start(self, *, lineage: bytes | None = None, **options: Any) -> Runtime:
        """Starts the function: creates its Context and waits for the Context's init.

        options: as in `Options`; each overrides the author's choice.
        lineage: 16 bytes that, with a row's id, form the idempotency key of its calls; None: random bytes.
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
        ordered = options.get("ordered", self.options is None or self.options.ordered)
        return start(self._table, self.where, self._number, struct, self._arguments, self._shapes, ordered)


class Uncallable(Function):
    """A function of a kind that later hosts call: it has a name, and every call is refused."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedCall(f"{self.where}: is of the kind {self.kind!r}, which this host cannot call")

    __call__ = outcomes = start = _refuse
