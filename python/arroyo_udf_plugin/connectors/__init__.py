"""Files and streams as record batches: what `run` reads and writes.

options.py   how inputs are read and outputs written, as the user chose
source.py    FileSource: one or more inputs as `Rows`
sink.py      FileSink: batches to one output
cells.py     text cells: their Arrow type, and how they are parsed

inputs.py, formats.py, type_names.py   what names mean: files, endings, types
blocks.py                              bytes of text as whole records
delimited.py, json_lines.py, typed.py  one format each, in and out
schemas.py                             columns by name
place.py                               where an output's bytes go until it is complete

Guarantees (D1 to D5): only a few batches are in memory. A cell of a text file keeps its text until a function or
`types` asks for a value. An output file appears under its name only when it is complete. What a user can get wrong is
an InvalidArgument that names the file.
"""
