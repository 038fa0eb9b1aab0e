"""Readers of other tools' formats: one module each, found by its name `READER`."""
