"""The function of query.sql."""

from arroyo_udf_plugin import udf


@udf
def digits(phone: str | None) -> str | None:
    """Of a telephone number; rows that are deleted have none."""
    return None if phone is None else "".join(filter(str.isdigit, phone))
