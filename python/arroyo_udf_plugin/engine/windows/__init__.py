"""Windows over event time: rows in groups of one time, answered when the watermark says that the time is over.

    SELECT carrier, tumble(interval '1 hour') AS window, count(*), avg(delay) FROM flights GROUP BY 1, 2

    windows = Windows(Grouping(...), schema)
    windows.late(rows)                      which rows are late: all their windows are over
    windows.add(rows)                       the others
    windows.watermark = time
    for step in windows.close(): ...        the results of the windows that end up to the watermark, step by step
    windows.kept(), windows.closed          what has not left, for a checkpoint, also between two steps
    windows.restore(kept, closed)

spans.py      which windows a time belongs to: tumble and hop, of fixed lengths or months; session
grouping.py   what is asked: keys and aggregates, as queries of DataFusion
partials.py   which aggregates can be put together from parts; local_parts.py: those that a slice sends to others
panes.py      the open windows of tumble and hop, and their results when they close; pane_rows.py: whose rows they are
tiers.py      parts of several panes put together, for windows of many
sessions.py   the open sessions; session_pieces.py: which of them are over; session_rows.py: their rows
numbering.py  which rows and pieces are one session
results.py    the columns of a result
first_rows.py the first row of each key within a time
look_back.py  window functions that look back at rows of their key
updated_keys.py  the latest results of keys, and how they change; updating_rows.py: what is asked of these and of rows
              that come and go; result_changes.py: changes
changing.py   what all have that take rows that come and go: recounted_keys.py: results of keys, computed anew;
              signed_partials.py: what can be taken off; updated_join.py: joins; followed_rows.py: tables, out of
              their changes; net_changes.py: tables, as changes
keyed_rows.py rows by their key; row_hashes.py: which are equal
timed_rows.py rows by their event time; runs.py: sorted by it
storage.py    what is kept, in memory or in files; kept.py: its parts, as checkpoints see them
joining.py    rows of two inputs with the same time, joined; interval_joining.py: with times near each other;
              join_query.py: what is asked of them
collecting.py rows of all inputs, kept for one query at their end
opened.py     panes or sessions, as the grouping needs
key_groups.py which slice has which rows; group_ranges.py: its key groups; portions.py: what it has, if slices were not
              equally far before a restart

A pane is the time from one window's start to the next one's. Each row belongs to one pane, each window is made of one
pane (tumble) or several (hop). What is kept of a pane is

    parts    if all aggregates can be merged (count, sum, min, max, avg, bits, plugins'): a row for each key. Rows
             wait until there are enough for a query; a pane's parts are merged when they have doubled.
    rows     otherwise, without the columns that nobody needs: any aggregate that DataFusion has.

Closing a window is one query over what its panes keep, or over tiers of many panes; windows that end together are
answered together. Of sessions, pieces are kept, each with its first and last time, also as parts or rows; those without
a gap between them are joined.

Results leave in steps of about as many rows as a query needs to pay. Between two of them, a checkpoint has exactly what
has not left. A step has at least the results of one moment, except for a window of one pane with parts of many keys.

What a row contributes is computed before, by the query in front, where a row that cannot be computed fails alone.

How it is part of a pipeline (operators/grouped.py, execution/exchange.py). Rows of one key are in one slice: each row
is of a key group (key_groups.py), and each slice has some groups. A slice sends rows of other groups to the slice that
has them; its windows take the lowest watermark of all slices; those that are idle or at their end hold nothing back.

A window closes once. With an allowed lateness, its operator takes each watermark as that much earlier, and tells those
that follow it the earlier one: the window stays open for rows that come late, and its results are not behind the
watermark.

Guarantees: a row counts in each window of its time, once, whatever is killed when. It is late if all its windows had
been closed by the watermark before its batch; late rows are counted, and dropped or dead letters. Without late rows,
results do not depend on batches, slices or kills, except for the last digits of sums of floats, and for what depends
on the order of rows (first_value, array_agg). Windows leave in the order of their ends, before the watermark that
closes them; those of several slices, side by side. At the end of the input all windows are closed.
Assumes: event times are usable (spans.py), and watermarks `bounded`; one thread at a time; what DataFusion needs for
one window fits into memory.
"""

from __future__ import annotations
