"""HTTP.

connector.py     the connectors, with their forms
endpoint.py      an address that is asked: how descriptions name it, what its answers mean, when it is asked again
bodies.py        objects of JSON in a body
polling.py       an address that is asked again and again, as a source
events.py        server-sent events as a source; event_stream.py: their syntax
webhook_sink.py  rows that are sent to an address
webhook_source.py    rows that others send, as a source; receiver.py: takes them; journal.py: keeps them
"""

from __future__ import annotations
