"""Watched jobs: planned again on each new snapshot, and whoever asked is told of what changed."""
