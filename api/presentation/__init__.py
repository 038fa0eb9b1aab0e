"""Turns typed answers into typed sections, which every interface renders in its own way."""
