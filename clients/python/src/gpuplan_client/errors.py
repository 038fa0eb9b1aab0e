"""What a client may raise; everything is a `GpuplanError`."""

from gpuplan_client.answers.problem import FieldProblem, Problem
from gpuplan_client.answers.run import Run


class GpuplanError(Exception):
    """Something that is not the answer that was asked for."""


class Unreachable(GpuplanError):
    """Nobody answered, or it was not a gpuplan service that did."""


class Refused(GpuplanError):
    """The service refused: `status`, what is wrong in `detail`, and the fields at fault in `errors`."""

    def __init__(self, problem: Problem, *, retry_after_seconds: float | None = None) -> None:
        """With what the service said."""
        self.problem = problem
        self.status = problem["status"]
        self.detail = problem["detail"]
        self.errors: list[FieldProblem] = problem.get("errors", [])
        self.request_id = problem.get("request_id", "")
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.status} {problem['title']}: {self.detail}")


class Unauthorized(Refused):
    """401: no key, or none that counts."""


class Forbidden(Refused):
    """403: the key's scope is too small."""


class NotFound(Refused):
    """404: there is no such plan, run, snapshot or path."""


class Conflict(Refused):
    """409: not as things are now: another refresh is running, or a run that is to be cancelled cannot be."""


class Unusable(Refused):
    """400, 413, 415 or 422: what was asked cannot be read; `errors` names the fields and what would be accepted."""


class TooMany(Refused):
    """429: a rate limit or a quota; `retry_after_seconds` says when to ask again."""


class Unavailable(Refused):
    """503: the service cannot answer now; `retry_after_seconds` says when to ask again."""


class RunFailed(GpuplanError):
    """A run ended without an answer: it failed, or was cancelled before there was one."""

    def __init__(self, run: Run) -> None:
        """With the run as it ended."""
        self.run = run
        error = run["error"]
        super().__init__(f"{run['kind']} {run['id']} {run['status']}: {error['detail'] if error else 'no answer'}")


class NotDone(GpuplanError):
    """A run was still going on when the patience was at its end; it goes on."""

    def __init__(self, run: Run) -> None:
        """With the run as it was last seen."""
        self.run = run
        super().__init__(f"{run['kind']} {run['id']} is still {run['status']}")


_BY_STATUS: dict[int, type[Refused]] = {
    400: Unusable,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Unusable,
    415: Unusable,
    422: Unusable,
    429: TooMany,
    503: Unavailable,
}


def refused(problem: Problem, *, retry_after_seconds: float | None) -> Refused:
    """The error for a problem, by its status."""
    return _BY_STATUS.get(problem["status"], Refused)(problem, retry_after_seconds=retry_after_seconds)
