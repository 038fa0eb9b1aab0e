"""Staying under a provider's published rate: a token bucket per kind of call, shared by all threads."""

from pyrate_limiter import Duration, Limiter, Rate, SingleBucketFactory, StateBucket, TokenBucket


class Pace:
    """Lets `burst` calls through at once and `per_second` after that; without a rate, all of them."""

    def __init__(self, per_second: int | None, *, burst: int | None = None) -> None:
        """None for `per_second` never waits; `burst` is `per_second` unless given."""
        self._limiter = None
        if per_second is not None:
            rate = Rate(per_second, Duration.SECOND, burst=burst or per_second)
            # A token bucket has nothing that leaks, and the library's leaking would cost a thread for each pace.
            self._limiter = Limiter(SingleBucketFactory(StateBucket([rate], TokenBucket()), schedule_leak=False))

    def wait(self) -> None:
        """Returns when the next call may go out."""
        if self._limiter is not None:
            self._limiter.try_acquire("call")
