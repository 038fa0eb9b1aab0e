"""Counts a PyTorch model in a child process and writes the counts to a job file."""
