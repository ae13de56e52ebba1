"""What the programs of a cluster show of themselves, for Prometheus.

metrics.py      which metrics there are, and samples of them: of jobs, and of the controller
stored.py       what the database knows of jobs
exposition.py   samples as the text that Prometheus reads, or sent to a Pushgateway
tracing.py      spans for OpenTelemetry

Each part tells what it knows to a `Families` that it is given (a `Source`). A program chooses its sources, and answers
at a port of its own (see `program.py`, `worker.py`) or at the API's (`api/health.py`). prometheus_client writes the
text; it is imported with the first request, so that a start is not slower for it.
"""
