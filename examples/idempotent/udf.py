"""Books amounts in a SQLite file, BOOKINGS_DB: each row once, however often it is tried (R10)."""

import os
import sqlite3
from contextlib import closing

from arroyo_udf_plugin import call_info, udf


@udf(blocking=True, idempotent=True, max_attempts=5, retry_on=("timeout", "error"))
def book(account: str, amount: int) -> int:
    """Books an amount, unless an earlier call for the row has. Answers how many calls it took."""
    row = (call_info().idempotency_key, account, amount)
    with closing(sqlite3.connect(os.environ["BOOKINGS_DB"])) as database, database:
        database.execute("INSERT INTO bookings (key, account, amount) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)
    return call_info().attempt
