"""SQL as the description of a pipeline: statements, what their names mean, and operators for each query.

    query.sql ──statements──► CREATE TABLE, CREATE VIEW, INSERT ...
                                 │ compiler
                                 ▼
              source ──► sql ──► functions ──► sql ──► sink          pipeline.Pipeline
                            └──► sql ──► sink

script.py        a query file, from its text to the description
statements.py    what a statement says                   tables.py     options of tables as connectors
selects.py       what a SELECT consists of               column_types.py
compiler.py      names: tables, views, who shares what
rounds.py        a SELECT as operators: calls of UDFs are taken out of its expressions
grouped.py       a SELECT with GROUP BY: windows           ranked.py      one with OVER (PARTITION BY window)
over.py          what stands behind OVER               looking_back.py  how many rows before a row it needs
first_rows.py    a SELECT of the first rows of each key
updating.py      one with aggregates over rows that never end: its results are updated
updating_joins.py  tables joined for ever                 changing_tables.py  tables out of their changes
table_calls.py   rows that a table function gives for each row before it
intervals.py     how far event times are from each other
settings.py      SET
joins.py         tables joined on the same window      scope.py          what names mean then
unions.py        UNION ALL                               lookups.py        JOIN with a table in a database
expressions.py   an expression as a tree                parsing.py     tokens as such a tree
steps.py         what is computed and called for expressions, and in which order
early_conditions.py  WHERE before joins and lookups     clauses.py     where clauses begin
whole.py         a query that needs all rows, at the end of its tables
guarded.py       its text, in which calls are for the rows that reach them
flow.py          the operators so far                   event_times.py   WATERMARK FOR
functions.py     UDFs by name                          installed.py     those of installed packages
diagnostics.py   DataFusion's errors, with places in the user's text
text.py          statements and brackets; line and column

DataFusion parses, types and computes. This room only finds out where calls of UDFs stand, and cuts the text there: what
DataFusion sees is the user's own text. So its functions, operators and literals mean what they mean there.

Guarantees: an error names line and column, and what to write instead; one error tells what is wrong with all
statements. Nothing outside has changed by then. The description is one that a person could have written; checkpoints,
policies and metrics are those of pipelines.
Assumes: `pip install 'arroyo_udf_plugin[engine]'`.
"""

from __future__ import annotations
