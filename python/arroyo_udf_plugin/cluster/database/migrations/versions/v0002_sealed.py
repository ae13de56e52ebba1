"""Secrets are sealed: a sample shows whether a key file is the right one."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"


def upgrade() -> None:
    op.create_table(
        "key_sample",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sample", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_sample")),
    )
