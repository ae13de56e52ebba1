"""A function of a loaded plugin: pyarrow in, pyarrow out.

Accepts any object with the Arrow PyCapsule protocol as an array. Every method may be called from any thread; other
Python threads run meanwhile.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._native import take_child
from ..abi import SYNC, ffi, known, text
from ..author.options import Options, abi_fields, check, from_abi
from ..errors import AbiError, InvalidArgument, RowError
from .batches import Arguments, Outputs, Shape, Shapes, array_pointer, failure, free_batch, give_back, take_outputs
from .fields import field_of
from .runtime import Runtime, start


class Function:
    """One function of a plugin: call it if it is sync, start it if it is async.

    arguments: names and Arrow types; a field is nullable if the function handles nulls itself.
    returns, returns_nullable: the Arrow type of a result, and whether the function may return null.
    kind: "sync" or "async". Methods of the other kind raise UnsupportedCall.
    vectorized: the author's code gets whole arrays.
    options: the author's choices and the defaults; None for a sync function. chosen: the author's choices alone.
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
    where: str
    plugin_hash: str

    def __init__(self, table: Any, number: int, described: Any, plugin: str, plugin_hash: str) -> None:
        self.name = text(described.name)
        self.where = f"{plugin}.{self.name}"
        self.plugin_hash = plugin_hash
        self.kind = "sync" if described.kind == SYNC else "async"
        arguments = field_of(described.arguments, f"{self.where}: arguments").type
        if not pa.types.is_struct(arguments):
            raise AbiError(f"{self.where}: arguments are {arguments}, not a struct")
        returns = field_of(described.returns, f"{self.where}: result")
        self.arguments = pa.schema(list(arguments))
        self.returns = returns.type
        self.returns_nullable = returns.nullable
        self.vectorized = bool(described.vectorized)
        self.chosen = {} if described.kind == SYNC else from_abi(known(described.options, "the options"))
        self.options = None if described.kind == SYNC else Options(**self.chosen)
        self._table = table
        self._number = number
        self._arguments = Arguments(self.where, self.arguments)
        self._shapes = Shapes(self.where, self.returns)
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
        outputs, shape = self._run(arrays)
        if shape.outcome is not None or not take_child(outputs.address, shape.value):
            return self._values(self._struct(outputs, shape, len(arrays[0])), shape, 0)
        values = pa.Array._import_from_c(outputs.address, self.returns)
        give_back(outputs)
        if len(values) != len(arrays[0]):
            raise self._wrong_length(len(values), len(arrays[0]))
        return values

    def outcomes(self, *arrays: Any) -> pa.StructArray:
        """As a call, but returns a struct per row: {value} if no row failed, else {value, outcome, error}."""
        chunks = self._arguments.chunks(arrays)
        if len(chunks) != 1:
            raise InvalidArgument(f"{self.where}: outcomes takes no chunked arrays; call combine_chunks() first")
        return self._struct(*self._run(chunks[0]), len(chunks[0][0]))

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
        outputs, shape = self._run(arrays)
        return self._values(self._struct(outputs, shape, len(arrays[0])), shape, first)

    def _run(self, arrays: Any) -> tuple[Outputs, Shape]:
        """Calls the plugin, which writes its results into the outputs. The caller must give the outputs back."""
        batch = self._arguments.export(arrays)
        outputs = take_outputs()
        status = self._run_slot(
            self._number, array_pointer(batch), ffi.NULL, outputs.array, outputs.schema, outputs.error
        )
        free_batch(batch)
        if status:
            raise failure(status, outputs.error)
        return outputs, self._shapes[outputs.schema[0]]

    def _struct(self, outputs: Outputs, shape: Shape, rows: int) -> pa.StructArray:
        results = pa.Array._import_from_c(outputs.address, shape.type)
        give_back(outputs)
        if len(results) != rows:
            raise self._wrong_length(len(results), rows)
        return results

    def _wrong_length(self, answered: int, rows: int) -> AbiError:
        return AbiError(f"{self.where}: answered {answered} rows for {rows}")

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
        return start(self._table, self.where, self._number, struct, self._arguments, self._shapes)
