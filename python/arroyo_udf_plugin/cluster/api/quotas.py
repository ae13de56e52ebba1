"""Limits of what the users of a cluster have together: `limits` of the configuration.

Guarantees: a request beyond a limit is refused by its name, with 409, or with 429 if it may pass later, and has changed
nothing. Each limit, what is used of it, and how often it has refused something are metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from sqlalchemy.orm import Session

from ..configuration import LimitSettings
from ..database import pipelines
from ..database.opened import Database
from ..database.totals import alone, ended_previews, totals
from ..functions.turns import Busy
from ..functions.workshop import Workshop
from ..monitoring.families import Families
from ..states import State
from .failures import Refusal
from .streams import Streams

_LATER = 1.0
"""Seconds after which a client may try again."""


class Quotas:
    def __init__(self, limits: LimitSettings, database: Database, workshop: Workshop, streams: Streams) -> None:
        self.limits = limits
        self._database, self._workshop, self._streams = database, workshop, streams
        self._refused: Counter[str] = Counter()

    def check_new(self, session: Session, parallelism: int, is_preview: bool) -> list[str]:
        """In the transaction that adds a pipeline. Returns the jobs of old previews that had to go. Raises Refusal."""
        alone(session)
        now, limits = totals(session), self.limits
        if is_preview and now.previews >= limits.previews:
            self._refuse("previews", 429, f"{now.previews} previews run: wait for one to end, or stop one")
        if not is_preview and now.pipelines >= limits.pipelines:
            self._refuse("pipelines", 409, f"there are {now.pipelines:,} pipelines: delete one")
        self._check_parallelism(now.parallelism, parallelism)
        if not is_preview or now.kept < limits.previews_kept:
            return []
        old = ended_previews(session, now.kept - limits.previews_kept + 1)
        for pipeline_id, _ in old:
            pipelines.delete(session, pipeline_id)
        return [job_id for _, job_id in old]

    def check_change(self, session: Session, whole: pipelines.Whole, changes: Mapping[str, Any]) -> None:
        """In the transaction that changes the wish of a job, or starts it. Raises Refusal if more would run by that."""
        _, job, status = whole
        is_asked = job.stop == "none" and (status.state == State.STOPPED or job.restart_nonce != status.restart_nonce)
        runs = is_asked or not State(status.state).is_terminal
        before = job.parallelism if runs else 0
        after = changes.get("parallelism", job.parallelism) if runs or changes.get("stop") == "none" else 0
        if after > before:
            alone(session)
            self._check_parallelism(totals(session, without_job=job.id).parallelism, after)

    def _check_parallelism(self, now: int, more: int) -> None:
        if now + more > self.limits.parallelism:
            told = f"jobs with a parallelism of {now:,} in all run, and this would add {more:,}"
            self._refuse("parallelism", 409, f"{told}: stop some, or ask for less")

    def check_stream(self) -> None:
        """Raises Refusal."""
        if self._streams.open >= self.limits.streams:
            self._refuse("streams", 429, f"{self._streams.open:,} streams are open: close one")

    def refusal_of(self, busy: Busy) -> Refusal:
        self._refused[busy.what] += 1
        return Refusal(429, f"{busy} (limits.queued)", retry_after=_LATER)

    def _refuse(self, what: str, status: int, text: str) -> NoReturn:
        self._refused[what] += 1
        told = f"{text} (limits.{what} = {getattr(self.limits, what):,})"
        raise Refusal(status, told, retry_after=_LATER if status == 429 else None)

    def tell(self, families: Families) -> None:
        """Metrics."""
        with self._database.read() as session:
            now = totals(session)
        builds, plans = self._workshop.turns
        for what, used in (
            ("pipelines", now.pipelines),
            ("parallelism", now.parallelism),
            ("previews", now.previews),
            ("previews_kept", now.kept - now.previews),
            ("streams", self._streams.open),
        ):
            families.add("arroyo_udf_limit", getattr(self.limits, what), what=what)
            families.add("arroyo_udf_used", used, what=what)
        for turns in (builds, plans):
            families.add("arroyo_udf_limit", 2 * getattr(self.limits, turns.what), what=turns.what)
            families.add("arroyo_udf_used", turns.running, what=turns.what)
            families.add("arroyo_udf_queued", turns.waiting, what=turns.what)
        for what in ("pipelines", "parallelism", "previews", "streams", builds.what, plans.what):
            families.add("arroyo_udf_refused_total", self._refused[what], what=what)
