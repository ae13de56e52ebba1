"""Tables of Delta Lake.

connector.py   what descriptions and SQL say of one, and its connector
sink.py        rows as files of a table, epoch by epoch
table.py       a table: its log, and what is committed to it
columns.py     rows as a table has them; partition.py: the values of partition columns
"""

from __future__ import annotations
