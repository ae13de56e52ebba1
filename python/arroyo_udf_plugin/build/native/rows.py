"""The loop over the rows of a batch, in C: reads the arguments, calls the compiled function, writes the result.

Only types that need no pyarrow and no time zones are read here: booleans, integers, floats, texts of 32-bit offsets,
dates, timestamps and durations of microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from .library import FunctionInC
from .values import C_TYPES, Kind, Variable


@dataclass(frozen=True)
class _Type:
    """How a type of Arrow crosses. format: of values that lie in memory as its own do. read: the word for these in
    arroyo_udf_c_types.h. low, high: what a result may be; None: whatever an int64 may. unfit: C for whether an argument
    cannot be read here, of `{}`. arrow: its own format; None: as `format`."""

    kind: Kind
    format: str
    read: str
    low: str | None = None
    high: str | None = None
    unfit: str | None = None
    arrow: str | None = None


_TYPES = {
    pa.bool_(): _Type(Kind.BOOL, "b", "bool"),
    pa.int8(): _Type(Kind.INT, "c", "int8", "INT8_MIN", "INT8_MAX"),
    pa.int16(): _Type(Kind.INT, "s", "int16", "INT16_MIN", "INT16_MAX"),
    pa.int32(): _Type(Kind.INT, "i", "int32", "INT32_MIN", "INT32_MAX"),
    pa.int64(): _Type(Kind.INT, "l", "int64"),
    pa.uint8(): _Type(Kind.INT, "C", "uint8", "0", "UINT8_MAX"),
    pa.uint16(): _Type(Kind.INT, "S", "uint16", "0", "UINT16_MAX"),
    pa.uint32(): _Type(Kind.INT, "I", "uint32", "0", "(int64_t)UINT32_MAX"),
    pa.uint64(): _Type(Kind.INT, "L", "uint64", "0", "INT64_MAX", "{} > (uint64_t)INT64_MAX"),
    pa.float32(): _Type(Kind.FLOAT, "f", "float32"),
    pa.float64(): _Type(Kind.FLOAT, "g", "float64"),
    pa.utf8(): _Type(Kind.TEXT, "u", "utf8"),
    pa.date32(): _Type(Kind.DATE, "i", "int32", unfit="native_no_date({})", arrow="tdD"),
    pa.timestamp("us"): _Type(Kind.DATETIME, "l", "int64", unfit="native_no_datetime({})", arrow="tsu:"),
    pa.duration("us"): _Type(Kind.DELTA, "l", "int64", arrow="tDu"),
}


def variable_of(field: pa.Field) -> Variable | None:
    """What an argument is to a function, or its result; None: native code does not read its type."""
    type_ = _TYPES.get(field.type)
    return None if type_ is None or field.metadata else Variable(type_.kind, field.nullable)


def loop(number: int, shown: str, compiled: FunctionInC, arguments: pa.Schema, returns: pa.Field) -> str:
    """C of function `number` of the descriptor: its loop, and its native_function. shown: "plugin.function", as a
    literal of C. The types are those that variable_of takes.

    The loop is compiled twice: in one that `is_plain`, every row is wanted and no text is a constant; it asks neither.
    """
    fields, result = list(arguments), _TYPES[returns.type]
    columns = [f"  arroyo_udf_c_column c{i} = columns[{i}];" for i in range(len(fields))]
    texts = [i for i, field in enumerate(fields) if _TYPES[field.type].kind is Kind.TEXT]
    loads, passed = _loads(fields, result.format)
    store = _store(result, returns.nullable)
    lines = [
        f"static native_counters native_counters_{number};",
        f"static inline __attribute__((always_inline)) void native_each_{number}(",
        "    const arroyo_udf_c_column *columns, arroyo_udf_c_result *result, int64_t first, int64_t count,",
        "    uint64_t wanted, native_arena *arena, bool is_plain) {",
        *(["  void *const values = result->values;"] if result.kind not in (Kind.TEXT, Kind.BOOL) else []),
        *columns,
        *(f"  if (is_plain) c{i}.mask = -1;" for i in texts),
        "  for (int64_t row = first; row < first + count; row++) {",
        "    if (!is_plain && !(wanted >> ((row - first) & 63) & 1)) {",
        f"      native_skip(result, row, '{result.format}');",
        "      continue;",
        "    }",
        *(f"    {line}" for line in loads),
        f"    {C_TYPES[result.kind]} out;",
        "    arena->used = 0;",
        f"    native_outcome outcome = {compiled.name}({', '.join(['arena', *passed, '&out'])});",
        *(f"    {line}" for line in store),
        f"    native_skip(result, row, '{result.format}');",
        "    if (outcome == NATIVE_NULL) {",
        "      arroyo_udf_c_set_null(result, row);" if returns.nullable else "      outcome = NATIVE_DEFERRED;",
        "    }",
        "    if (outcome == NATIVE_DEFERRED && !native_defer(result, row, arena)) return;",
        "  }",
        "}",
        f"static void native_rows_{number}(const arroyo_udf_c_column *columns, arroyo_udf_c_result *result,",
        "                          int64_t first, int64_t count, uint64_t wanted) {",
        f"  NATIVE_BEGIN(result, {shown});",
        "  native_arena arena = native_batch_of(result)->arena; /* a local one costs nothing where no row needs it */",
        f"  if (wanted == UINT64_MAX && !arroyo_udf_c_has_constants(columns, {len(fields)}))",
        f"    native_each_{number}(columns, result, first, count, wanted, &arena, true);",
        "  else",
        f"    native_each_{number}(columns, result, first, count, wanted, &arena, false);",
        "  native_batch_of(result)->arena = arena;",
        f"  NATIVE_END(result, count, &native_counters_{number});",
        "}",
        f"static const struct ArrowSchema native_value_{number} =",
        f'    ARROYO_UDF_C_SCHEMA("{result.arrow or result.format}", "value", ARROW_FLAG_NULLABLE, 0, NULL);',
        f"static struct ArrowSchema *const native_fields_{number}[] = {{",
        f"    (struct ArrowSchema *)&native_value_{number}, (struct ArrowSchema *)&arroyo_udf_c_outcome_schema,",
        "    (struct ArrowSchema *)&arroyo_udf_c_error_schema};",
        *(
            f"static const struct ArrowSchema native_{name}_{number} =\n"
            f'    ARROYO_UDF_C_SCHEMA("+s", "", 0, {n}, (struct ArrowSchema **)native_fields_{number});'
            for name, n in (("values", 1), ("values_and_errors", 3))
        ),
        f"static const native_function native_function_{number} = {{",
        f"    {shown}, '{result.format}', &native_values_{number}, &native_values_and_errors_{number},",
        f"    &native_counters_{number}, native_rows_{number}}};",
    ]
    return "\n".join(lines) + "\n"


def _loads(fields: list[pa.Field], returns: str) -> tuple[list[str], list[str]]:
    """Lines that read the arguments of a row, and what is passed to the function. Texts come first, because a row may
    be deferred only after them."""
    lines = []
    order = sorted(range(len(fields)), key=lambda i: _TYPES[fields[i].type].kind is not Kind.TEXT)
    for i in order:
        type_, nullable = _TYPES[fields[i].type], fields[i].nullable
        if nullable:
            lines.append(f"const bool n{i} = arroyo_udf_c_is_null(c{i}, row);")
        unless = f"!n{i} && " if nullable else ""
        if type_.kind is Kind.TEXT:
            lines.append(f"native_text a{i} = NATIVE_EMPTY;")
            lines.append(f"if ({unless}!native_load(c{i}, row, &a{i})) {{")
            lines += [
                f"  if (!native_unreadable(result, c{i}, row)) return;",
                f"  native_skip(result, row, '{returns}');",
            ]
            lines += ["  continue;", "}"]
            continue
        load = f"arroyo_udf_c_load_{type_.read}(c{i}, row)"
        if type_.kind is Kind.BOOL:
            load = f"arroyo_udf_c_bit(c{i}.values, c{i}.offset + row)"
        if type_.unfit is not None:
            lines.append(f"if ({unless}{type_.unfit.format(load)}) {{")
            lines += ["  if (!native_defer(result, row, arena)) return;", f"  native_skip(result, row, '{returns}');"]
            lines += ["  continue;", "}"]
        cast = f"({C_TYPES[type_.kind]})"
        lines.append(f"const {C_TYPES[type_.kind]} a{i} = {f'n{i} ? 0 : ' if nullable else ''}{cast}{load};")
    passed = [name for i, field in enumerate(fields) for name in (f"a{i}", *([f"n{i}"] if field.nullable else []))]
    return lines, passed


def _store(result: _Type, nullable: bool) -> list[str]:
    """Lines that write a value, and go on with the next row unless Python must run this one."""
    if result.kind is Kind.TEXT:
        write = "if (!native_store_text(result, row, out)) {"
        drop = ["    native_batch_of(result)->is_dropped = true;", "    return;", "  }"]
        return ["if (outcome == NATIVE_VALUE) {", f"  {write}", *drop, "  continue;", "}"]
    test = "outcome == NATIVE_VALUE"
    if result.kind is Kind.BOOL:
        write = "arroyo_udf_c_store_bit(arroyo_udf_c_sink_of(result), row, out);"
    elif result.format == "f":
        test += " && !isnan(out) && (!isinf((float)out) == !isinf(out))"
        write = "((float *)values)[row] = (float)out;"
    else:
        if result.kind is Kind.FLOAT:  # the sign of a NaN hangs on the order of operands, which compilers change
            test += " && !isnan(out)"
        if result.low is not None:
            test += f" && {result.low} <= out && out <= {result.high}"
        c_type = "double" if result.format == "g" else f"{result.read}_t"
        write = f"(({c_type} *)values)[row] = ({c_type})out;"
    lines = [f"if ({test}) {{", f"  {write}", "  continue;", "}"]
    if test != "outcome == NATIVE_VALUE":
        lines.append("if (outcome == NATIVE_VALUE) outcome = NATIVE_DEFERRED;")
    return lines
