"""A job has the scheduler that was chosen for it. Those that there are run on the controller's machine."""

import sqlalchemy as sa
from alembic import op

revision = "v0008"
down_revision = "v0007"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("scheduler", sa.String(length=16), nullable=False, server_default="local"))
    op.add_column("jobs", sa.Column("slices", sa.Integer(), nullable=True))
