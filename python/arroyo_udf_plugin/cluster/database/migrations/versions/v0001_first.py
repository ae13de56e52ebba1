"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None

_STATES = (
    "state IN ('Created', 'Compiling', 'Scheduling', 'Running', 'Rescaling', 'Restarting', 'Recovering', "
    "'CheckpointStopping', 'Stopping', 'Stopped', 'Finishing', 'Finished', 'Failing', 'Failed')"
)


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "connection_profiles",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("connector", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_connection_profiles")),
        sa.UniqueConstraint("id", name=op.f("uq_connection_profiles_id")),
        sa.UniqueConstraint("name", name=op.f("uq_connection_profiles_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "leader",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("controller", sa.Text(), nullable=False),
        sa.Column("term", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leader")),
    )
    op.create_table(
        "leftovers",
        sa.Column("place", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_leftovers")),
    )
    op.create_table(
        "pipelines",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("udfs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("graph", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("program", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state_url", sa.Text(), nullable=True),
        sa.Column("is_preview", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_pipelines")),
        sa.UniqueConstraint("id", name=op.f("uq_pipelines_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_pipelines_is_preview"), "pipelines", ["is_preview"], unique=False)
    op.create_table(
        "connection_tables",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("table_type", sa.String(length=8), nullable=False),
        sa.Column("connector", sa.Text(), nullable=False),
        sa.Column("profile_id", sa.String(length=200), nullable=True),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("schema", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("table_type IN ('source', 'sink', 'lookup')", name=op.f("ck_connection_tables_table_type")),
        sa.ForeignKeyConstraint(
            ["profile_id"],
            ["connection_profiles.id"],
            name=op.f("fk_connection_tables_profile_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_connection_tables")),
        sa.UniqueConstraint("id", name=op.f("uq_connection_tables_id")),
        sa.UniqueConstraint("key", name=op.f("uq_connection_tables_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_connection_tables_profile_id"), "connection_tables", ["profile_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("pipeline_id", sa.String(length=200), nullable=False),
        sa.Column("stop", sa.String(length=16), nullable=False),
        sa.Column("parallelism", sa.Integer(), nullable=False),
        sa.Column("checkpoint_interval_micros", sa.BigInteger(), nullable=False),
        sa.Column("ttl_micros", sa.BigInteger(), nullable=True),
        sa.Column("restart_nonce", sa.Integer(), nullable=False),
        sa.Column("restart_mode", sa.String(length=8), nullable=False),
        sa.Column("history", sa.Integer(), nullable=False),
        sa.Column("env_vars", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("scheduler_config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("restart_mode IN ('safe', 'force')", name=op.f("ck_jobs_restart_mode")),
        sa.CheckConstraint(
            "stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')", name=op.f("ck_jobs_stop")
        ),
        sa.CheckConstraint("parallelism BETWEEN 1 AND 1024", name=op.f("ck_jobs_parallelism")),
        sa.ForeignKeyConstraint(
            ["pipeline_id"], ["pipelines.id"], name=op.f("fk_jobs_pipeline_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sa.UniqueConstraint("pipeline_id", name=op.f("uq_jobs_pipeline_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_pending", "jobs", ["pending"], unique=False)
    op.create_table(
        "udfs",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("artifact", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("language IN ('python', 'rust', 'c')", name=op.f("ck_udfs_language")),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.sha256"], name=op.f("fk_udfs_artifact"), ondelete="RESTRICT"),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_udfs")),
        sa.UniqueConstraint("id", name=op.f("uq_udfs_id")),
        sa.UniqueConstraint("key", name=op.f("uq_udfs_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_udfs_artifact"), "udfs", ["artifact"], unique=False)
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("checkpoint_type", sa.String(length=16), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("finish_time", sa.BigInteger(), nullable=True),
        sa.Column("events", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("operators", sa.JSON(none_as_null=True), nullable=False),
        sa.CheckConstraint("checkpoint_type IN ('scheduled', 'stopping')", name=op.f("ck_checkpoints_checkpoint_type")),
        sa.CheckConstraint("state IN ('inprogress', 'ready', 'failed')", name=op.f("ck_checkpoints_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_checkpoints_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "epoch", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "connection_table_uses",
        sa.Column("table_id", sa.String(length=200), nullable=False),
        sa.Column("pipeline_id", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["pipeline_id"], ["pipelines.id"], name=op.f("fk_connection_table_uses_pipeline_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["table_id"], ["connection_tables.id"], name=op.f("fk_connection_table_uses_table_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("table_id", "pipeline_id", name=op.f("pk_connection_table_uses")),
    )
    op.create_index(
        op.f("ix_connection_table_uses_pipeline_id"), "connection_table_uses", ["pipeline_id"], unique=False
    )
    op.create_table(
        "job_log",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("operator_id", sa.Text(), nullable=True),
        sa.Column("task_index", sa.Integer(), nullable=True),
        sa.Column("error_domain", sa.String(length=16), nullable=True),
        sa.CheckConstraint("error_domain IN ('user', 'external', 'internal')", name=op.f("ck_job_log_error_domain")),
        sa.CheckConstraint("level IN ('info', 'warn', 'error')", name=op.f("ck_job_log_level")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_log_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_job_log")),
        sa.UniqueConstraint("id", name=op.f("uq_job_log_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_job_log_job_id"), "job_log", ["job_id"], unique=False)
    op.create_table(
        "job_numbers",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("numbers", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_numbers_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "at", name=op.f("pk_job_numbers")),
    )
    op.create_table(
        "job_output",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("operator_id", sa.Text(), nullable=False),
        sa.Column("subtask_idx", sa.Integer(), nullable=False),
        sa.Column("start_id", sa.BigInteger(), nullable=False),
        sa.Column("timestamps", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("batch", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_output_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_job_output")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_job_output_job_id"), "job_output", ["job_id"], unique=False)
    op.create_table(
        "job_statuses",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("state_since", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("controller", sa.Text(), nullable=True),
        sa.Column("start_time", sa.BigInteger(), nullable=True),
        sa.Column("finish_time", sa.BigInteger(), nullable=True),
        sa.Column("tasks", sa.Integer(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column("failure_domain", sa.String(length=16), nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("restart_nonce", sa.Integer(), nullable=False),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("worker", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint(
            "failure_domain IN ('user', 'external', 'internal')", name=op.f("ck_job_statuses_failure_domain")
        ),
        sa.CheckConstraint(
            _STATES,
            name=op.f("ck_job_statuses_state"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_statuses_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job_statuses")),
    )
    op.create_index("ix_job_statuses_state", "job_statuses", ["state"], unique=False)
