"""Snapshots of operators as checkpoints have them, without checkpoints."""

from __future__ import annotations

import hashlib

from arroyo_udf_plugin.engine.connectors.unnamed import mapped
from arroyo_udf_plugin.engine.operators.state import OperatorSnapshot
from arroyo_udf_plugin.engine.operators.state_parts import StoredState


def stored(snapshot: OperatorSnapshot | None) -> StoredState:
    """With all parts in one file."""
    assert snapshot is not None, "the operator works in another slice"
    parts = snapshot.parts
    head = snapshot.head([(0, number) for number in range(len(parts))])
    if not parts:
        return StoredState(head)
    data = mapped(lambda file: snapshot.write_parts(file, parts), "parts")
    return StoredState(head, ((hashlib.sha256(data).hexdigest(), data),))
