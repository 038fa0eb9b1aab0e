"""The queue on PostgreSQL: long runs and refreshes as tasks of procrastinate, for any number of workers."""
