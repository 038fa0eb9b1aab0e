"""From a job and a snapshot to every configuration that could run it, and a reason for every offer that cannot."""
