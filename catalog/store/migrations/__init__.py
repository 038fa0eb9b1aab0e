"""The alembic script directory: the revisions of the schema."""
