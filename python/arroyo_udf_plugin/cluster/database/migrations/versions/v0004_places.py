"""Where a job's state lies, and how far it has come, are facts; checkpoints can be gone back to."""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"

_KNOWN = """
UPDATE job_statuses SET
    history = (SELECT jobs.history FROM jobs WHERE jobs.id = job_statuses.job_id),
    restored = restart_nonce,
    epoch = COALESCE((
        SELECT MAX(checkpoints.epoch) FROM checkpoints JOIN jobs ON jobs.id = checkpoints.job_id
        WHERE checkpoints.job_id = job_statuses.job_id AND checkpoints.state = 'ready'
            AND (jobs.history = 0 OR (
                checkpoints.generation = job_statuses.generation AND jobs.restart_nonce = job_statuses.restart_nonce))
    ), 0)
"""
"""Checkpoints may be of a history that a restart without state has ended; those of the first history are not."""


def upgrade() -> None:
    op.add_column("jobs", sa.Column("place", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("restore", sa.JSON(none_as_null=True), nullable=True))
    for table, names in (("job_statuses", ("restored", "history", "epoch")), ("checkpoints", ("history",))):
        for name in names:
            op.add_column(table, sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("checkpoints", sa.Column("retained", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(_KNOWN)
