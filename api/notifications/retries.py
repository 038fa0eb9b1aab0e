"""Retries of a message: how long, how often, and which failures may pass."""

from dataclasses import dataclass

from tenacity import RetryCallState, wait_exponential_jitter

#: HTTP statuses below 500 after which a retry may succeed.
MAY_PASS = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits of one message."""

    attempts: int = 4
    attempt_seconds: float = 15.0
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 30.0

    @property
    def message_seconds(self) -> float:
        """The longest time for which one message is being sent."""
        return self.attempts * (self.attempt_seconds + self.longest_wait_seconds)


class Again(Exception):
    """A retry may succeed in a moment, or in `wait_seconds` if the receiver gave a time."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        """`reason` contains no secret."""
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class Wait:
    """The delay that the receiver requests, else about twice the previous one."""

    def __init__(self, patience: Patience) -> None:
        """Between the waits of `patience`."""
        self._backing_off = wait_exponential_jitter(
            multiplier=patience.first_wait_seconds,
            max=patience.longest_wait_seconds,
            jitter=patience.first_wait_seconds / 2,
        )

    def __call__(self, state: RetryCallState) -> float:
        """Seconds until the next attempt."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_seconds if isinstance(error, Again) else None
        return float(self._backing_off(state)) if asked is None else asked
