"""What the user's past runs correct in an estimate, by accelerator."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The logarithm of a correction factor and the number of runs behind it.

    `elsewhere` marks that all of these runs were on other accelerators.
    """

    log: float = 0.0
    runs: int = 0
    elsewhere: bool = False

    @property
    def factor(self) -> float:
        """The factor by which a prediction is multiplied."""
        return math.exp(self.log)

    def phrase(self, what: str, task: str, accelerator: str) -> str:
        """The clause shown with an estimate on this accelerator."""
        runs = "1 of your runs" if self.runs == 1 else f"{self.runs} of your runs"
        where = "other accelerators" if self.elsewhere else accelerator
        return f"{what} scaled by {self.factor:.2f} from {runs} of {task} work on {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorCorrection:
    """The corrections of one accelerator (`accelerator` empty: of all accelerators without runs).

    `variance_removed` is subtracted from `log_sigma` squared of the hours.
    """

    accelerator: str
    hours: Shift = Shift()
    memory: Shift = Shift()
    variance_removed: float = 0.0


NO_CORRECTION = AcceleratorCorrection(accelerator="")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCorrections:
    """The corrections of one class of work: one per accelerator with runs, and one for all others."""

    task: str = ""
    corrections: tuple[AcceleratorCorrection, ...] = ()
    others: AcceleratorCorrection = NO_CORRECTION

    def __bool__(self) -> bool:
        """Whether there is any correction."""
        return bool(self.corrections)

    def of(self, accelerator: str) -> AcceleratorCorrection:
        """The correction of this accelerator."""
        return next(
            (correction for correction in self.corrections if correction.accelerator == accelerator), self.others
        )

    def sentences(self, accelerator: str) -> tuple[str, ...]:
        """Sentences shown with an estimate on this accelerator; empty without corrections."""
        correction = self.of(accelerator)
        shifts = (("hours", correction.hours), ("peak memory", correction.memory))
        return tuple(
            f"{shift.phrase(what, self.task, accelerator)}; forget them with gpuplan actuals --forget, "
            "or leave them out with the setting learning: off"
            for what, shift in shifts
            if shift.runs
        )


NOTHING = LearnedCorrections()
