"""The engine: pipelines in one process, without any server.

    TOML, JSON, Python ──► pipeline/ ──► execution/ ──► connectors/
    SQL ──► planner/ ─────────┘  │          │
                                 │          └──► operators/ ──► windows/, datafusion/
                                 └─► flink/

file_run/       `run` and `replay`: a pipeline of one operator over files
flink/          pipelines on Apache Flink
execution/      runs pipelines: slices, the coordinator, checkpoints, stops
planner/        SQL as the description of a pipeline
pipeline/       the description of a pipeline, its checks, its plan
operators/      functions over a stream: order, watermarks, snapshots
windows/        rows grouped or joined by event time
datafusion/     one SELECT over batches
connectors/     sources and sinks: files, object stores, streams, databases
dead_letters.py rows that failed
attribute_docs.py models that describe their fields with the text below each

Each room uses only those below it; `make lint` checks that. The house below this one, the toolkit, knows nothing of it.
"""
