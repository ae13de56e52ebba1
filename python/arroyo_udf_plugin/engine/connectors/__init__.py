"""Files, streams, object stores and tables as record batches: what `run` and pipelines read and write.

options.py   how inputs are read and outputs written, as the user chose
source.py    FileSource: one or more inputs as `Rows`
sink.py      FileSink: batches to one output
cells.py     text cells: their Arrow type, and how they are parsed

interface.py        what the engine asks of the sources and sinks of a pipeline
connector.py        what a kind of table is: its source, its sink, its lookups, its place in a catalogue
registry.py         the connectors that there are, those of installed packages, too
impulse.py, filesystem.py, single.py, table.py, standard_input.py, standard_output.py, blackhole.py
                    a connector each; table.py: of SQLite and PostgreSQL
kafka/, redis/      that of Kafka, and that of Redis; http/: those of HTTP
changes/            that of changes of a table of PostgreSQL, out of its log
message_rows.py     messages of JSON, of text and of bytes as rows
files.py            files as a source; parts.py: a folder to which a sink adds files
parts_sink.py       that sink; waiting_rows.py: one whose files take in the rows of several epochs
tail/               files that others append to; delta/: tables of Delta Lake
preview.py          a sink that shows rows in the output stream of a job
described.py        the base of what descriptions have; read.py, written.py: the keys that several have
table_options.py    the options of CREATE TABLE, as connectors read them
file_source.py      reads files
bad_records.py                                    what happens to rows that could not be read

inputs.py, formats.py, type_names.py   what names mean: files, endings, types
location.py                            where something is kept: on this machine, in an object store, in a database
object_store.py, folder.py             files that are elsewhere; scratch.py: on their way there
disk.py                                the steps by which what is written becomes durable
staged_rows.py, summed.py              rows of epochs in the checkpoints' store, for sinks; their checksum
unnamed.py                             files without a name, for data that is too large to stay in memory
interrupt.py, read_ahead.py, in_thread.py     waiting that does not hold up an event loop, and can be ended
database.py, table_types.py            what SQLite and PostgreSQL have in common; table_target.py: where rows go
table_changes.py                       rows that say what becomes of a table's rows
table_source.py, table_query.py, table_partition.py, table_position.py     a table as a source: by its key, in pages
adbc.py                                one of any database with a driver of ADBC
lookups.py                             a table in which rows look up others, in a database or in Redis
lookup_table.py, lookup_queries.py, lookup_cache.py, lookup_types.py     that in a database; queries and their cache
piece.py                               what every reader of a file yields
blocks.py                              bytes of text as whole records
delimited.py, json_lines.py            one format each, in and out; text_lines.py: lines as they are
typed.py                               Parquet and Arrow, in and out
json_rows.py                           objects of JSON as rows
json_blocks.py                         blocks of newline JSON in native code
json_arrays.py, json_types.py, json_writer.py     JSON, nested, too: as lines, as Arrow arrays, and written
json_values.py                         JSON in columns of texts
inferred.py                            the types of text columns, by their first rows
text_values.py, durations.py           texts as values
row_metadata.py                        columns of what is known about rows of files
schemas.py                             columns by name
place.py                               where an output's bytes go until it is complete

Guarantees (D1 to D5): only a few batches are in memory. A cell of a text file keeps its text until a function or
`types` asks for a value. An output file appears under its name only when it is complete. What a user can get wrong is
an InvalidArgument that names the file.
"""

from __future__ import annotations
