"""Jobs say which wish they have come up to, and the leader that it lives."""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"


def upgrade() -> None:
    op.drop_index("ix_jobs_pending", "jobs")
    op.add_column("jobs", sa.Column("fulfilled", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE jobs SET fulfilled = revision WHERE NOT pending")
    unfulfilled = sa.text("revision != fulfilled")
    op.drop_column("jobs", "pending")
    op.create_index("ix_jobs_unfulfilled", "jobs", ["id"], sqlite_where=unfulfilled, postgresql_where=unfulfilled)
    op.add_column("leader", sa.Column("seen_at", sa.BigInteger(), nullable=True))
    op.add_column("leader", sa.Column("deaths", sa.Integer(), nullable=False, server_default="0"))
