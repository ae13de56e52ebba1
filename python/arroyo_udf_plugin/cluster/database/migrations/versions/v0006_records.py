"""Rows of previews and numbers of jobs are in files of the data folder."""

from alembic import op

revision = "v0006"
down_revision = "v0005"


def upgrade() -> None:
    op.drop_table("job_numbers")
    op.drop_table("job_output")
