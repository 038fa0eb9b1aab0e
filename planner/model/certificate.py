"""The proof that a plan is optimal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverCertificate:
    """The proof by the solver: chosen column, objective and bound in USD, relative gap, wall milliseconds.

    Where time or carbon is the objective, `objective` and `bound` are in its unit and the gap is theirs; the figures in USD
    are the least cost at that optimum. With cost as the objective the two pairs are equal.
    `over` are sentences on the plans of several phases that the certificate covers, and how.
    """

    chosen: int
    objective_usd: float
    bound_usd: float
    gap: float
    solver: str
    columns: int
    milliseconds: float
    of: str = "cost"
    objective: float | None = None
    bound: float | None = None
    over: tuple[str, ...] = ()
