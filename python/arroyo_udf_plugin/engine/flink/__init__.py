"""Pipelines on Apache Flink: the same descriptions, operators and formats, on TaskManagers.

    job's argument ──► program ──► cut into stages ──► graph ──► Flink

    ticks ──► reading stage ──messages──► keyed stage ──messages──► waiting stage ──messages──► parts ──► FileSink
              source, functions,          windows, joins,           async functions,
              queries                     unions                    lookups

A key of Flink is a slice. What a slice is in the embedded engine, it is here: it reads a share of each source and has
some key groups, and its state is Flink's keyed state. So a job may have any parallelism up to the number of its slices,
which stays the same.

Guarantees: the rows are those of the embedded engine. With checkpoints, each is in the sinks once, whatever is killed.

program.py         what a job is given; the pipeline, planned and cut
cut.py             where a stage ends
messages.py        batches, watermarks and ends, as bytes
reading_stage.py   a slice of a source, and what follows it
keyed_stage.py     a slice of windows, a join or a union, and what follows it
waiting_stage.py   async functions and lookups, and what follows them
moving.py          operators within a stage
outlets.py         what leaves a stage, to which slice
slice_state.py     the state of a slice
keys.py            keys that spread slices evenly
ticks.py           how often a source may read
whole_parts.py     parts of a sink, in memory
java_client.py     what a description says of Kafka, for Kafka's client in Java
kafka/             topics of Kafka, by Flink's connector

With PyFlink, in the environment of Flink:

runner.py          the program that is submitted
graph.py           stages as operators of Flink
functions.py       stages as functions of Flink
functions_sink.py  parts as a function of Flink
file_sink.py       Flink's sink of files
java_classes.py    *.java, compiled when a job is submitted: marks before checkpoints, and files as they are

Everything but these last ones is tested without Flink, by a scheduler of messages that fails at random
(tests/engine/sql/local_flink.py).
"""
