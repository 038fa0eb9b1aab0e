"""Planning: pure functions of a job, snapshot columns and settings."""
