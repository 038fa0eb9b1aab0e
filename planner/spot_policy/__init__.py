"""Interruptible machines under a deadline: finish times, what to do now, and how a policy would have performed."""
