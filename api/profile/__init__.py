"""Counting a PyTorch model into a job: the child process that counts, and what its counts become."""
