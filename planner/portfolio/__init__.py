"""Portfolios: configuration and start of each of several jobs that share machines, quotas and one budget."""
