"""What Alembic runs for each command. The connection comes from `database.py`, or from a test."""

from alembic import context

from arroyo_udf_plugin.cluster.database.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
