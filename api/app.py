"""The composition root: one object that holds store, inventory and assumptions, and that every door calls.

The command line and HTTP parse, call a method here and render; neither knows where prices come from.
Whatever changes by the clock (when, how long it took, how old the prices are) sits under `meta`, apart
from the part of an answer that is the same for the same job, start, snapshot, settings and version.
"""

from importlib import import_module

from api.questions.access import AccessQuestions
from api.questions.catalogue import OfferPage
from api.questions.many_jobs import ManyJobs
from api.questions.opened import Document
from api.questions.runs import Runs
from api.questions.shares import Shares
from api.questions.spot import SpotQuestions
from api.questions.upkeep import Upkeep

__all__ = ["Document", "Gpuplan", "OfferPage"]


class Gpuplan(ManyJobs, SpotQuestions, Upkeep, Runs, AccessQuestions, Shares):
    """Everything gpuplan can be asked. Opens the store on first use; safe to share between threads.

    Methods take and give JSON objects. They raise `UnusableInput` for what the user can mend and
    `StoreFailure` where the database cannot be read or written.
    """

    def warm_up(self) -> None:
        """Read settings, inventory and store now, and load the planner.

        So a service refuses to start on a broken one, and its first request waits for nothing; nor do later ones for the
        prices of a refresh.
        """
        for module in ("api.documents.estimate_request", "planner.document", "planner.estimate.single", "planner.plan"):
            import_module(module)
        _ = self.owned
        self.prepare_current()
        self.end_dead_refreshes()
