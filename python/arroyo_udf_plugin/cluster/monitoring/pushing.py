"""The metrics of a process, sent to a Pushgateway: for machines that Prometheus cannot reach.

Guarantees: a gateway that fails disturbs nothing. The group of a process is deleted when it ends; of a worker that was
killed, by its controller. That of a controller that was killed stays: its `push_time_seconds` shows how old it is.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .exposition import Exposition

if TYPE_CHECKING:
    from ..configuration import Settings

CONTROLLER = "arroyo_udf_controller"
WORKER = "arroyo_udf_worker"
_TIMEOUT = 5.0
_log = logging.getLogger(__name__)


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
