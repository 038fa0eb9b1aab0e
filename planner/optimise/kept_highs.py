"""HiGHS as PuLP drives it, for many small models: the solver objects are kept, and what is found is read from them."""

import math
import threading
from typing import Any, ClassVar, NamedTuple, override

import pulp

from catalog.allowed_time import go_on, seconds_left

#: Each row is divided by its right-hand side, so HiGHS' feasibility tolerance (1e-7 absolute) is relative.
FEASIBILITY_TOLERANCE = 1e-9


class NotProvenError(RuntimeError):
    """The solver did not prove an optimum; the message carries its status. A defect, never a user's fault."""


class Optimum(NamedTuple):
    """What HiGHS found: the objective, the bound on it, the value of each column, the multiplier of each row.

    Columns and rows are in the model's order; a model without integers is its own bound, and has multipliers.
    """

    objective: float
    bound: float
    values: list[float]
    prices: list[float]


class KeptHighs(pulp.HiGHS):
    """HiGHS with one solver object per thread for all models of a class: to make one takes as long as to solve a small one.

    Each class has its own `of_thread`, and always the same options.
    """

    of_thread: ClassVar[threading.local]

    def __init__(self, **options: Any) -> None:
        """With HiGHS' own options by their names, beside one thread and the tolerance of all models."""
        # One thread, set nowhere else: HiGHS keeps its thread count per OS thread.
        super().__init__(msg=False, threads=1, primal_feasibility_tolerance=FEASIBILITY_TOLERANCE, **options)

    @override
    def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:
        """The solver object of this thread without a model, its options as they were."""
        kept: Any = getattr(self.of_thread, "highs", None)
        if kept is None:
            super().createAndConfigureSolver(lp)
            self.of_thread.highs = kept = lp.solverModel
        kept.clearModel()
        seconds = seconds_left()
        # Its clock runs on from one solve to the next, and the limit is held against it.
        kept.setOptionValue("time_limit", math.inf if seconds is None else kept.getRunTime() + seconds)
        lp.solverModel = kept

    def optimum(self, problem: pulp.LpProblem) -> Optimum | None:
        """Solves the model as PuLP hands it over; None if nothing keeps its rows.

        Raises `OutOfTime`, or `NotProvenError` if HiGHS stops early otherwise. What is found is read from HiGHS: PuLP would
        write it into its model first, with much that nobody asks for.
        """
        self.createAndConfigureSolver(problem)
        self.buildSolverModel(problem)
        highs: Any = problem.solverModel
        highs.run()
        go_on()
        status = highs.modelStatusToString(highs.getModelStatus())
        if status == "Infeasible":
            return None
        if status != "Optimal":
            raise NotProvenError(f"HiGHS ended with status {status} on a model of {problem.numVariables()} columns")
        objective, solution = float(highs.getObjectiveValue()), highs.getSolution()
        bound = float(highs.getInfo().mip_dual_bound) if problem.isMIP() else objective
        return Optimum(objective, bound, list(solution.col_value), list(solution.row_dual))
