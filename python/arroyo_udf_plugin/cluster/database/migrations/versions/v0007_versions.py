"""Functions keep the definitions that they have had. Those that there are begin with the one that they have."""

import sqlalchemy as sa
from alembic import op

revision = "v0007"
down_revision = "v0006"


def upgrade() -> None:
    op.create_table(
        "udf_versions",
        sa.Column("udf_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["udf_id"], ["udfs.id"], name=op.f("fk_udf_versions_udf_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("udf_id", "number", name=op.f("pk_udf_versions")),
    )
    op.execute(
        "INSERT INTO udf_versions (udf_id, number, language, definition, created_at) "
        "SELECT id, 1, language, definition, updated_at FROM udfs"
    )
