"""Watched jobs: planned again on each new snapshot, with notifications of changes."""
