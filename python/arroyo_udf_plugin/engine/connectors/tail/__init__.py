"""Files that others append to, such as logs.

connector.py   what descriptions and SQL say of them, and their connector
source.py      which files there are, and where a rotated one is now
partition.py   a file and those that follow it under its name, read in order
mark.py        how far a file was read, and how it is known again after a rename
records.py     whole records of text as rows
"""

from __future__ import annotations
