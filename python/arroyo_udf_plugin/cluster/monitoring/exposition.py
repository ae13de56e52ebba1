"""Samples as the text that Prometheus reads.

Guarantees: a source that fails, such as a database, hides no other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .families import Families, Source

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

_log = logging.getLogger(__name__)


class Exposition:
    """Of one process, with its memory and processor time."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """accept: the header of a request. Returns the text and its content type."""
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    @cached_property
    def registry(self) -> CollectorRegistry:
        from prometheus_client import CollectorRegistry, ProcessCollector

        made = CollectorRegistry()
        made.register(self)
        ProcessCollector(registry=made)
        return made

    def collect(self) -> Iterator[Metric]:
        families = Families()
        for source in self._sources:
            try:
                source(families)
            except Exception as error:
                _log.warning("some metrics are missing: %s", error)
        yield from families.collect()
