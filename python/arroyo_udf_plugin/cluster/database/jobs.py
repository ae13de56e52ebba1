"""Jobs as they are: what the controller reads and writes.

Guarantees: only the leader writes: each of its transactions begins with `fence`. Each write of a fact names the state
and the generation that it starts from, so that a worker of an older generation changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from ..states import SETTLED, State
from .database import now
from .errors import Deposed
from .models import TERMINAL, JobRow, JobStatus, Leader, Leftover, PipelineRow

ALIVE = 20_000_000
"""Microseconds after which a leader that has said nothing is taken for dead: some beats."""
_UNDER_WAY = tuple(state for state in State if state not in SETTLED)

_ROW = 1  # the id of the leader's row


class Lead(NamedTuple):
    """deaths: how many leaders in a row have ended without a word before this one."""

    term: int
    deaths: int


def lead(session: Session, controller: str) -> Lead:
    """Makes this controller the leader, which holds the lock (see `LeaderLock`)."""
    leader = session.get(Leader, _ROW, with_for_update=True)
    if leader is None:
        session.add(Leader(id=_ROW, controller=controller, term=1, seen_at=now(), deaths=0))
        return Lead(1, 0)
    if leader.controller != controller:  # it may have lost the lock only
        leader.deaths = leader.deaths + 1 if leader.seen_at is not None else 0
    leader.controller, leader.term, leader.seen_at = controller, leader.term + 1, now()
    return Lead(leader.term, leader.deaths)


def beat(session: Session, is_healthy: bool) -> None:
    """The leader lives. is_healthy: long enough that deaths before it count no more."""
    session.execute(update(Leader).values({"seen_at": now()} | ({"deaths": 0} if is_healthy else {})))


def give_up(session: Session) -> None:
    """The leader ends as it should."""
    session.execute(update(Leader).values(seen_at=None, deaths=0))


def is_led(session: Session) -> bool:
    """Whether a controller has said lately that it leads."""
    seen = session.scalar(select(Leader.seen_at))
    return seen is not None and abs(now() - seen) < ALIVE


def fence(session: Session, controller: str, term: int) -> None:
    """Nobody else becomes the leader before this transaction has ended. Raises Deposed if somebody has."""
    row = select(Leader.id).where(Leader.id == _ROW, Leader.controller == controller, Leader.term == term)
    if session.scalar(row.with_for_update(read=True)) is None:
        raise Deposed("another controller leads")


def open_jobs(session: Session) -> Sequence[str]:
    """Ids of jobs that are not at their end, or not as they are wished."""
    is_open = or_(JobStatus.state.not_in(TERMINAL), JobRow.revision != JobRow.fulfilled)
    return session.scalars(select(JobRow.id).join(JobStatus, JobStatus.job_id == JobRow.id).where(is_open)).all()


def unfulfilled(session: Session) -> Sequence[str]:
    """Ids of jobs that are not as they are wished, since the wish was changed."""
    return session.scalars(select(JobRow.id).where(JobRow.revision != JobRow.fulfilled)).all()


def in_states(session: Session, states: Iterable[State]) -> Sequence[str]:
    """Ids of jobs."""
    return session.scalars(select(JobStatus.job_id).where(JobStatus.state.in_(list(map(str, states))))).all()


def under_way(session: Session) -> Sequence[str]:
    """Ids of jobs in states that they are to leave."""
    return in_states(session, _UNDER_WAY)


def open_generations(session: Session) -> dict[str, int]:
    """Of the jobs that are not at their end."""
    query = select(JobStatus.job_id, JobStatus.generation).where(JobStatus.state.not_in(TERMINAL))
    return {row.job_id: row.generation for row in session.execute(query)}


def running(session: Session, job_ids: Sequence[str]) -> set[str]:
    """Those of the jobs that are not at their end."""
    query = select(JobStatus.job_id).where(JobStatus.job_id.in_(job_ids), JobStatus.state.not_in(TERMINAL))
    return set(session.scalars(query))


def generations(session: Session, job_ids: Sequence[str]) -> dict[str, int]:
    """Of those jobs that there are."""
    query = select(JobStatus.job_id, JobStatus.generation).where(JobStatus.job_id.in_(job_ids))
    return {row.job_id: row.generation for row in session.execute(query)}


def histories(session: Session, job_ids: Sequence[str]) -> dict[str, int]:
    """Those whose checkpoints the running, or last, generations of these jobs have."""
    query = select(JobStatus.job_id, JobStatus.history).where(JobStatus.job_id.in_(job_ids))
    return {row.job_id: row.history for row in session.execute(query)}


def came_to(session: Session, job_id: str, epoch: int) -> None:
    """Somebody has told this epoch: no later generation may go on from an earlier one."""
    later = JobStatus.job_id == job_id, JobStatus.epoch < epoch
    session.execute(update(JobStatus).where(*later).values(epoch=epoch))


def by_state(session: Session) -> dict[str, int]:
    """How many jobs are in each state, without previews. UserFailed: failed by an error of the user."""
    domain = JobStatus.failure_domain
    query = (
        select(JobStatus.state, domain, func.count())
        .join(JobRow, JobRow.id == JobStatus.job_id)
        .join(PipelineRow, PipelineRow.id == JobRow.pipeline_id)
        .where(PipelineRow.is_preview.is_(False))
        .group_by(JobStatus.state, domain)
    )
    counts: Counter[str] = Counter()
    for state, failed_by, count in session.execute(query):
        is_users = state == State.FAILED and failed_by == "user"
        counts["UserFailed" if is_users else state] += count
    return counts


def fulfil(session: Session, job_id: str, revision: int) -> None:
    """The fact is as this revision of the wish has it."""
    session.execute(update(JobRow).where(JobRow.id == job_id, JobRow.revision == revision).values(fulfilled=revision))


def write(session: Session, job_id: str, *, state: str, generation: int, facts: dict[str, Any]) -> bool:
    """Writes facts of a job that is in this state and generation. False: it is not."""
    if facts.get("state", state) != state:
        facts = facts | {"state_since": now()}
    done = session.execute(
        update(JobStatus)
        .where(
            JobStatus.job_id == job_id,
            JobStatus.state == state,
            JobStatus.generation == generation,
        )
        .values(facts)
        .execution_options(synchronize_session="evaluate")
    )
    return bool(getattr(done, "rowcount", 0))


def leftovers(session: Session) -> Sequence[str]:
    """Places to be removed."""
    return session.scalars(select(Leftover.place)).all()


def removed(session: Session, place: str) -> None:
    session.execute(delete(Leftover).where(Leftover.place == place))


def old_previews(session: Session, before: int) -> Sequence[str]:
    """Ids of previews that were made before that time and have ended."""
    return session.scalars(
        select(PipelineRow.id)
        .join(JobRow, JobRow.pipeline_id == PipelineRow.id)
        .join(JobStatus, JobStatus.job_id == JobRow.id)
        .where(PipelineRow.is_preview, JobStatus.state.in_(TERMINAL), PipelineRow.created_at < before)
    ).all()
