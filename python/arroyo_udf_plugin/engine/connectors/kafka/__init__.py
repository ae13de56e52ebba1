"""Topics of Kafka.

connector.py   the connector
topic.py       a topic: what descriptions and SQL say of it, and what its cluster does
source.py      its messages as a source; partition.py: one of its partitions; records.py: messages as rows
sink.py        rows to it; epochs.py: exactly once
messages.py    rows as messages; producer.py: messages on their way

values.py      values of messages as columns; value_writers.py: and columns as values
debezium.py    changes of tables in JSON; json_schema.py: the schema of rows in JSON
avro_values.py    values in Avro; avro_types.py: types of Avro
protobuf_values.py    messages of Protobuf; protobuf_writer.py: rows as such
schema_registry.py    schemas that others keep, and the framing of messages that have one
"""

from __future__ import annotations
