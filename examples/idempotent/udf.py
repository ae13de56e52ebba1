"""Books amounts in the SQLite file BOOKINGS_DB: each row once, even after several attempts (R10)."""

import os
import sqlite3
from contextlib import closing

from arroyo_udf_plugin import call_info, udf


@udf(blocking=True, idempotent=True, max_attempts=5, retry_on=("timeout", "error"))
def book(account: str, amount: int) -> int:
    """Books an amount, unless an earlier call for the row has booked it. Returns the number of calls."""
    row = (call_info().idempotency_key, account, amount)
    with closing(sqlite3.connect(os.environ["BOOKINGS_DB"])) as database, database:
        database.execute("INSERT INTO bookings (key, account, amount) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)
    return call_info().attempt
