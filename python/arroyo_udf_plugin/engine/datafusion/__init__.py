"""SQL over record batches: the items and the condition of one SELECT, planned once, by DataFusion.

    SELECT items FROM input WHERE condition          batch in, batch out, as often as wanted

query.py         a SELECT over batches of one schema
feed.py          a query that never ends: batches are handed to it one by one
whole.py         a query over all rows of some tables, when they have ended
native_calls.py  calls that DataFusion does not know, and operators for JSON, as functions with their path
columns.py       these functions, over columns
aggregates.py    aggregates of plugins, as functions over lists; accumulators.py: as DataFusion's aggregates
tokens.py        what a text of SQL consists of, with positions

Guarantees: a row's result depends on this row and the functions of the time only, so that batches may be cut anywhere;
`whole` sees all rows. What DataFusion sees of a user's text is the user's text, never one that was generated anew; only
calls of native functions have other names and no paths, and those of plugins conditions, or lists for their arguments.
Assumes: `pip install 'arroyo_udf_plugin[engine]'`; it is imported when the first query is planned.
"""

from __future__ import annotations
