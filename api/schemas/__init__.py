"""Schemas of everything that interfaces read and write."""
