"""Run the revisions on the connection from `gpuplan.catalog.store.schema_upgrade`, inside its transaction."""

from alembic import context

from gpuplan.catalog.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
