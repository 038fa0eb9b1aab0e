"""Explanations of a plan: its alternatives, what would change it, its assumptions, and why there may be none."""
