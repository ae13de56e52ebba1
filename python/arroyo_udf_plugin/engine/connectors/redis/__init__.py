"""Redis.

connector.py the connector, its lookups in SQL, and its forms
server.py    how a description and SQL name a server; what its errors mean
source.py    streams as a source
sink.py      rows as strings, hashes, lists and streams; epochs.py: each of them once
lookup.py    objects of JSON that rows look up by key
"""

from __future__ import annotations
