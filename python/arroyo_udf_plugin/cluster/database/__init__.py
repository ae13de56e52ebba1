"""The database of a cluster: SQLite in a file, or PostgreSQL.

models.py       the tables
database.py     a database at its URL: migrated, or refused; transactions, who leads, wake-ups
migrations/     how an older database becomes a newer one, by Alembic
sealing.py      secrets in columns, sealed by the key file
pipelines.py    pipelines and their jobs, as users wish them; what all users have together
jobs.py         jobs as they are: what the controller reads and writes
history.py      checkpoints, log, numbers and output of jobs
udfs.py         functions
places.py       where states and libraries are stored, and who has libraries
connections.py  connection profiles and tables
paging.py       pages of lists
errors.py       what is wrong with a request

The other modules are functions over a `Session`; who opens it decides about the transaction:

    with database.begin() as session:
        job = pipelines.create(session, ...)

Guarantees: all constraints are in the database, the same in SQLite and PostgreSQL. Times are integers, microseconds
since 1970. Lists are newest first, by a serial number, so that rows of the same microsecond are neither skipped nor
repeated.
"""
