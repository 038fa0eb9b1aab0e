"""Measured runs and memory facts with their sources, and the constants fitted to them."""
