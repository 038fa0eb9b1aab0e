"""Interruptible machines under a deadline: when a run ends, what to do now, and how a policy would have fared."""
