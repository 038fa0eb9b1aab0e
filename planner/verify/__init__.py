"""A plan held against its snapshot by code of its own, without the planner's arrays, models or solver.

Prices, requirements, bills, times, carbon, the bound, and which node counts there are, are worked out anew from the
catalogue's rows and the formulas as they are published; a standby is replayed run by run. Shared with the planner are the
catalogue, the classes that a job and settings are read into, and, through the one port `estimates`, what a job's work is and
what a machine does in an hour: that rests on trust, and every check says so. pyproject.toml forbids every other import.
"""
