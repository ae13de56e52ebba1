"""What requests and answers of the REST API look like: Arroyo's names and types, field by field.

base.py          what all have in common: times, ids, pages, errors
pipelines.py     pipelines, their graphs, what is wrong with a query
jobs.py          jobs, their errors, checkpoints, metrics and rows
connections.py   connectors, profiles, tables and their schemas
udfs.py          functions

Guarantees: a time is a whole number of microseconds since 1970; names are in snake_case, but for `hasMore`; a request
with a key that is not known here is refused by its name.
"""
