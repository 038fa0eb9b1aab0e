"""What to run a job on: pure functions of (job, columns)."""
