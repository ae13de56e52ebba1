"""Libraries are stored at places, and pipelines hold them."""

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"


def upgrade() -> None:
    op.add_column("artifacts", sa.Column("place", sa.Text(), nullable=True))
    op.create_table(
        "artifact_uses",
        sa.Column("artifact", sa.String(length=64), nullable=False),
        sa.Column("pipeline_id", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact"], ["artifacts.sha256"], name=op.f("fk_artifact_uses_artifact"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["pipeline_id"], ["pipelines.id"], name=op.f("fk_artifact_uses_pipeline_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("artifact", "pipeline_id", name=op.f("pk_artifact_uses")),
    )
    op.create_index(op.f("ix_artifact_uses_pipeline_id"), "artifact_uses", ["pipeline_id"], unique=False)
