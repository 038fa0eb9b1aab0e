"""Maps values to pixels and chooses round tick values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps `low..high` in the data's unit to `start..end` in pixels, linearly or logarithmically."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(
        cls, values: Sequence[float], *, start: float, end: float, log: bool = False, zero: bool = False, ticks: int = 5
    ) -> "Scale":
        """A scale that covers `values`, widened to round numbers; from 0 with `zero`, unless logarithmic.

        Raises `ValueError` without values, for a value that is not finite, or not above 0 on a logarithmic scale.
        """
        if not values or not all(map(math.isfinite, values)):
            raise ValueError("a scale needs at least one value, and only finite ones")
        low, high = min(values), max(values)
        if log:
            if low <= 0:
                raise ValueError("a logarithmic scale cannot show values of 0 or less")
            # Margins at both ends keep marks off the frame.
            room = (high / low) ** 0.05 if high > low else 2.0
            return cls(low=low / room, high=high * room, start=start, end=end, log=True)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
        step = _nice((high - low) / ticks)
        return cls(low=math.floor(low / step) * step, high=math.ceil(high / step) * step, start=start, end=end)

    def at(self, value: float) -> float:
        """The pixel of a value, rounded to a tenth."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> list[float]:
        """Round tick values: steps of 1, 2 or 5 times a power of ten; logarithmic scales use 1, 2, 5 of every decade."""
        if self.log:
            return self._log_ticks(most)
        step = _nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(multiple * step, 12) for multiple in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks: list[float] = []
        for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            denser = [
                digit * 10.0**power
                for power in decades
                for digit in digits
                if self.low <= digit * 10.0**power <= self.high
            ]
            if ticks and len(denser) > most:
                break
            ticks = denser
        if len(ticks) >= 2:
            while len(ticks) > most:
                ticks = ticks[::2]
            return ticks
        # Below one decade, use the steps of a linear axis.
        return Scale(low=self.low, high=self.high, start=self.start, end=self.end).ticks(most)


def _nice(step: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= step * (1 - 1e-9))


def apart(places: Sequence[float], least: float) -> bool:
    """Whether all positions are at least `least` pixels apart."""
    return all(abs(second - first) >= least for first, second in pairwise(sorted(places)))
