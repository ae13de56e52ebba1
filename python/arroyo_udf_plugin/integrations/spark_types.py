"""Spark's types for the Arrow types of a function. pyspark's own tables are private, and differ between its versions.

    arrow = nearest(pa.uint32())       pa.int64(): the Arrow type in which Spark passes such values
    spark_type(arrow)                  LongType()

Guarantees: values of a nearest type hold those of the type, or those that do not fit are refused when they are cast.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types

_is = pa.types

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.large_utf8(): pa.utf8(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_SAME = {
    pa.null(): types.NullType(),
    pa.bool_(): types.BooleanType(),
    pa.int8(): types.ByteType(),
    pa.int16(): types.ShortType(),
    pa.int32(): types.IntegerType(),
    pa.int64(): types.LongType(),
    pa.float32(): types.FloatType(),
    pa.float64(): types.DoubleType(),
    pa.utf8(): types.StringType(),
    pa.binary(): types.BinaryType(),
    pa.date32(): types.DateType(),
    pa.time64("ns"): types.TimeType(),
    pa.timestamp("us"): types.TimestampNTZType(),
    pa.timestamp("us", "UTC"): types.TimestampType(),
    pa.duration("us"): types.DayTimeIntervalType(),
}


def nearest(type_: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark passes values of a type; a type that it has not is its own."""
    if _is.is_timestamp(type_):
        return pa.timestamp("us", type_.tz and "UTC")
    if _is.is_time(type_):
        return pa.time64("ns")
    if _is.is_duration(type_):
        return pa.duration("us")
    if _is.is_fixed_size_binary(type_):
        return pa.binary()
    if _is.is_list(type_) or _is.is_large_list(type_):
        return pa.list_(type_.value_field.with_type(nearest(type_.value_type)))
    if _is.is_struct(type_):
        return pa.struct([field.with_type(nearest(field.type)) for field in type_])
    return _WIDER.get(type_, type_)


def spark_type(arrow: pa.DataType) -> types.DataType | None:
    """Spark's type for a nearest type. None: it has none."""
    if _is.is_decimal(arrow):
        return types.DecimalType(arrow.precision, arrow.scale) if 0 <= arrow.scale <= arrow.precision else None
    if _is.is_list(arrow):
        item = spark_type(arrow.value_type)
        return item and types.ArrayType(item, arrow.value_field.nullable)
    if _is.is_struct(arrow):
        fields = [(field, spark_type(field.type)) for field in arrow]
        if any(type_ is None for _, type_ in fields):
            return None
        return types.StructType([types.StructField(field.name, type_, field.nullable) for field, type_ in fields])
    return _SAME.get(arrow)
