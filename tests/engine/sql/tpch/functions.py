"""The functions of the queries here: row by row, vectorised and async ones."""

import datetime
from decimal import Decimal
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf

Money = Annotated[pa.Array, pa.decimal128(15, 2)]
Product = Annotated[pa.Array, pa.decimal128(38, 4)]
PRODUCT = pa.decimal128(38, 4)
ONE = pa.scalar(Decimal(1), pa.decimal128(3, 2))


@udf(vectorized=True)
def net(price: Money, discount: Money) -> Product:
    return pc.multiply(price, pc.subtract(ONE, discount)).cast(PRODUCT)


@udf(vectorized=True)
def charge(price: Money, discount: Money, tax: Money) -> Annotated[pa.Array, pa.decimal128(38, 6)]:
    share = pc.multiply(
        pc.subtract(ONE, discount).cast(pa.decimal128(5, 2)), pc.add(ONE, tax).cast(pa.decimal128(5, 2))
    )
    return pc.multiply(price, share).cast(pa.decimal128(38, 6))


@udf(vectorized=True)
def saved(price: Money, discount: Money) -> Product:
    return pc.multiply(price, discount).cast(PRODUCT)


@udf(vectorized=True)
def profit(price: Money, discount: Money, cost: Money, quantity: Money) -> Product:
    earned, paid = pc.multiply(price, pc.subtract(ONE, discount)), pc.multiply(cost, quantity)
    return pc.subtract(earned.cast(pa.decimal128(36, 4)), paid.cast(pa.decimal128(36, 4))).cast(PRODUCT)


@udf
def value_of(cost: Annotated[Decimal, pa.decimal128(15, 2)], many: int) -> Annotated[Decimal, pa.decimal128(25, 2)]:
    return cost * many


@udf
def fifth(quantity: Annotated[Decimal, pa.decimal128(19, 6)]) -> float:
    return 0.2 * float(quantity)


@udf
def is_large(quantity: Annotated[Decimal, pa.decimal128(25, 2)]) -> bool:
    return quantity > 300


@udf
def is_late(promised: datetime.date, received: datetime.date) -> bool:
    return promised < received


@udf
def year_of(day: datetime.date) -> int:
    return day.year


@udf
def is_brass(type: str) -> bool:
    return type.endswith("BRASS")


@udf
async def is_brazil(name: str) -> bool:
    return name == "BRAZIL"


@udf
def is_urgent(priority: str) -> bool:
    return priority in ("1-URGENT", "2-HIGH")


@udf
async def is_special(words: str) -> bool:
    return "requests" in words.partition("special")[2]


@udf
def is_promotion(type: str) -> bool:
    return type.startswith("PROMO")


@udf
async def is_complaint(words: str) -> bool:
    return "Complaints" in words.partition("Customer")[2]


@udf
def is_air(mode: str) -> bool:
    return mode in ("AIR", "AIR REG")


@udf
def is_forest(name: str) -> bool:
    return name.startswith("forest")


@udf
def country(phone: str) -> str:
    return phone[:2]
