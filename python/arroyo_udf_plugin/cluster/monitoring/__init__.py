"""What the programs of a cluster show of themselves, for Prometheus.

families.py     which metrics there are, and samples of them
measured.py     numbers of jobs as samples
stored.py       what the database knows of jobs
meters.py       what the controller counts
exposition.py   samples as the text that Prometheus reads
serving.py      the endpoint /metrics
pushing.py      the same text, sent to a Pushgateway

Each part tells what it knows to a `Families` that it is given (a `Source`). A program chooses its sources, and answers
at a port of its own (see `controller_port.py`, `worker_port.py`) or at the API's. prometheus_client writes the text; it
is imported with the first request, so that a start is not slower for it.
"""
