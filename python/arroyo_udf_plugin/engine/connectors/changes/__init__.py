"""Changes of a table of PostgreSQL, out of its log: a snapshot of the table, then each change, in the order of commits.

postgresql_cdc.py    what descriptions and SQL say of it, and the source
publisher.py         the server: what the table is, its publication and its slot, and what is refused
wire.py              connections that a thread waits for, and another can end
pgoutput.py          the messages of the log
positions.py         how far a reader has come
changes_partition.py what the engine reads, a little behind the thread
server_snapshot.py   the wait until what a snapshot has is also there to be read
follower.py          the thread that reads: the snapshot, then the log; it tells the server what may go
change_rows.py       changes as rows;   change_texts.py: PostgreSQL's texts as values
"""

from __future__ import annotations
