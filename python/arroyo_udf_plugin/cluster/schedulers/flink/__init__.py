"""Jobs on an Apache Flink cluster, over its REST API.

scheduler.py    what the controller asks of it; one thread, which watches the cluster
watching.py     what Flink's jobs do now, for all
following.py    one generation, from its submit to its end
submission.py   a generation as a Flink job: its id, its arguments, its configuration
snapshots.py    the checkpoints and savepoints of Flink jobs, and which of them a generation goes on from
failures.py     why a Flink job has failed, from the text of its exceptions
rest.py         the calls
"""
