"""A plan held against its snapshot by code of its own: scalar, straight-line, and without the planner's arrays or solver.

Prices, requirements, bills, times, carbon and the bound are worked out anew from the catalogue's rows and the formulas
as they are published; nothing of `planner.cost`, `planner.candidates` or `planner.optimise` is used. What a machine can
do in an hour is the estimator's, and taken from it; every check says which of the two it rests on.
"""
