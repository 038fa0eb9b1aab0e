"""Rate limiting below a provider's published rate: a token bucket per kind of call, shared by all threads."""

from pyrate_limiter import Duration, Limiter, Rate, SingleBucketFactory, StateBucket, TokenBucket


class RateLimit:
    """Allows `burst` calls at once and `per_second` after that; without a rate, unlimited."""

    def __init__(self, per_second: int | None, *, burst: int | None = None, seconds: int = 1) -> None:
        """None for `per_second` never waits; `burst` is `per_second` unless given. The rate may be per several `seconds`."""
        self._limiter = None
        if per_second is not None:
            rate = Rate(per_second, Duration.SECOND * seconds, burst=burst or per_second)
            # A token bucket needs no leaking, for which the library would start a thread per limiter.
            self._limiter = Limiter(SingleBucketFactory(StateBucket([rate], TokenBucket()), schedule_leak=False))

    def wait(self) -> None:
        """Return when the next call is allowed."""
        if self._limiter is not None:
            self._limiter.try_acquire("call")

    def within(self, seconds: float) -> bool:
        """Whether the next call is allowed within so many seconds; waits until then at most."""
        return self._limiter is None or bool(self._limiter.try_acquire("call", timeout=max(0.0, seconds)))
