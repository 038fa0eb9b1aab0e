"""Observability of the service: logs, metrics, traces, health."""
