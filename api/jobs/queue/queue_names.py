"""Names of queues, tasks and locks. Stored tasks outlive releases, so these names never change."""

#: Long requests; refreshes, one task per provider and region; maintenance of the queue.
RUNS, REFRESHES, MAINTENANCE = "runs", "refreshes", "keeping"
QUEUES = (RUNS, REFRESHES, MAINTENANCE)

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
    """The lock of a provider's fetch. Tasks of one lane run one after the other, so a provider's lanes bound its
    concurrency.
    """
    return f"fetch {provider} {number % parallel}"


def writing_lock(refresh_id: str) -> str:
    """The lock under which a refresh is written."""
    return f"write {refresh_id}"
