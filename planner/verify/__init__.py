"""Verification of a plan against its snapshot, independent of the planner's arrays, models and solver.

Prices, requirements, cost, hours, carbon, node counts and the bound are recomputed from the catalogue's rows and the
published formulas; a standby is replayed run by run. Shared with the planner are the catalogue, the classes that a
job and its settings are read into, and, through `estimator_port` alone, the estimator with the work of a job.
Estimates are taken on trust, and every check says whether it rests on them. pyproject.toml forbids every other
import.
"""
