"""Processes of a service that plan, each with a limit of memory and time for a question."""
