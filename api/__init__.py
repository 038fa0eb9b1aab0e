"""Doors only: parse, call, render."""
