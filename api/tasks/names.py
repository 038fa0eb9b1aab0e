"""Which queues and tasks there are, and what keeps two of them apart; names outlive releases, so none ever changes."""

#: Long questions; refreshes, a task per provider and region; what keeps the queue itself in order.
RUNS, REFRESHES, KEEPING = "runs", "refreshes", "keeping"
QUEUES = (RUNS, REFRESHES, KEEPING)

EXECUTE = "gpuplan.run"
BEGIN, LIST, FETCH, WRITE = (
    "gpuplan.refresh.begin",
    "gpuplan.refresh.list",
    "gpuplan.refresh.fetch",
    "gpuplan.refresh.write",
)
NIGHTLY = "gpuplan.refresh.nightly"
RESCUE, TIDY = "gpuplan.keep.rescue", "gpuplan.keep.tidy"


def lane(provider: str, number: int, parallel: int) -> str:
    """The lock of a provider's fetch: tasks of one lane take turns, so no more run at once than the provider has lanes."""
    return f"fetch {provider} {number % parallel}"


def writing_lock(refresh_id: str) -> str:
    """The lock under which a refresh is written."""
    return f"write {refresh_id}"
