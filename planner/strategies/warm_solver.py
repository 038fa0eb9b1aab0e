"""HiGHS through PuLP for many small models: solver objects are reused, and results are read from HiGHS directly."""

import math
import threading
from typing import Any, ClassVar, NamedTuple, override

import pulp

from gpuplan.catalog.runtime.time_limit import go_on, seconds_left

#: Each row is divided by its right-hand side, so HiGHS' feasibility tolerance (1e-7 absolute) is relative.
FEASIBILITY_TOLERANCE = 1e-9


class NotProvenError(RuntimeError):
    """The solver did not prove an optimum; the message carries its status. A defect, never a user's fault."""


class Optimum(NamedTuple):
    """The result of HiGHS: the objective, its bound, the value of each column, the dual of each row.

    Columns and rows are in the model's order. A model without integers is its own bound, and has duals.
    """

    objective: float
    bound: float
    values: list[float]
    prices: list[float]


class WarmSolver(pulp.HiGHS):
    """HiGHS with one solver object per thread for all models of a class: creating one takes as long as solving a small model.

    Each class has its own `of_thread`, and always the same options.
    """

    of_thread: ClassVar[threading.local]

    def __init__(self, **options: Any) -> None:
        """Options by HiGHS' own names, plus one thread and the feasibility tolerance of all models."""
        # One thread, set nowhere else: HiGHS keeps its thread count per OS thread.
        super().__init__(msg=False, threads=1, primal_feasibility_tolerance=FEASIBILITY_TOLERANCE, **options)

    @override
    def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:
        """Reuse this thread's solver object, without a model and with its options unchanged."""
        highs: Any = getattr(self.of_thread, "highs", None)
        if highs is None:
            super().createAndConfigureSolver(lp)
            self.of_thread.highs = highs = lp.solverModel
        highs.clearModel()
        seconds = seconds_left()
        # The run time of a HiGHS object adds up over its solves, and the limit applies to the sum.
        highs.setOptionValue("time_limit", math.inf if seconds is None else highs.getRunTime() + seconds)
        lp.solverModel = highs

    def optimum(self, problem: pulp.LpProblem) -> Optimum | None:
        """Solve the model; None if it is infeasible.

        Raises `OutOfTime`, or `NotProvenError` if HiGHS stops early for another reason. The result is read from HiGHS, since
        PuLP would first copy all of it into its model.
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
