"""Runs the revisions on the connection that `catalog.migrate` hands over, inside its transaction."""

from alembic import context

from catalog.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
