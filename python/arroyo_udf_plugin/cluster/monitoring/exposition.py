"""Samples as the text that Prometheus reads, and sent to a Pushgateway, for machines that Prometheus cannot reach.

Guarantees: a source that fails, such as a database, hides no other. A gateway that fails disturbs nothing. The group of
a process is deleted when it ends; of a worker that was killed, by its controller. That of a controller that was killed
stays: its `push_time_seconds` shows how old it is.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from .metrics import Families, Source

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

if TYPE_CHECKING:
    from ..configuration import Settings

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


CONTROLLER = "arroyo_udf_controller"
WORKER = "arroyo_udf_worker"
_TIMEOUT = 5.0


@dataclass(frozen=True)
class Gateway:
    """interval: seconds from one time to the next."""

    url: str
    interval: float

    @classmethod
    def configured(cls, settings: Settings) -> Gateway | None:
        own = settings.metrics
        return None if own.pushgateway is None else cls(own.pushgateway, own.push_interval)

    @contextlib.contextmanager
    def pushing(self, exposition: Exposition, job: str, instance: str) -> Iterator[None]:
        """While the block runs. job, instance: the labels of the group."""
        ended = threading.Event()
        args = (exposition, job, instance, ended)
        thread = threading.Thread(target=self._push, args=args, name="arroyo-udf-pushing", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.delete(job, instance)

    def delete(self, job: str, instance: str) -> None:
        from prometheus_client import delete_from_gateway

        group = {"instance": instance}
        self._tried(partial(delete_from_gateway, self.url, job, grouping_key=group, timeout=_TIMEOUT))

    def _push(self, exposition: Exposition, job: str, instance: str, ended: threading.Event) -> None:
        from prometheus_client import push_to_gateway

        group = {"instance": instance}
        push = partial(push_to_gateway, self.url, job, exposition.registry, grouping_key=group, timeout=_TIMEOUT)
        works = True
        while not ended.is_set():
            works = self._tried(push, tell=works)
            ended.wait(self.interval)

    def _tried(self, act: Callable[[], None], tell: bool = True) -> bool:
        """Whether it worked. tell: if it did not, in the log."""
        try:
            act()
        except Exception as error:
            if tell:
                _log.warning("metrics.pushgateway %s fails: %s", self.url, error)
            return False
        return True
