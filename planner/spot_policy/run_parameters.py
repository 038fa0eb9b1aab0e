"""The parameters of a run on interruptible machines: work, deadline, places, and cost of moves."""

import math
from dataclasses import dataclass

from gpuplan.catalog.runtime.errors import UnusableInput

#: The on-demand place, where a run starts that has no machine and no data yet.
ON_DEMAND = "on-demand"
MOST_ZONES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A zone and kind of interruptible machine; the price is for all nodes together.

    `speed` is hours of work (on the on-demand machines) done in an hour, checkpoints included.
    """

    name: str
    usd_per_hour: float
    speed: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """One run: `work_hours` on on-demand machines, due `deadline_hours` from now.

    Each start of machines takes `changeover_hours`, billed and without progress: boot, image, reading the checkpoint, and
    writing one before a chosen move. `move_hours[i][j]` and `move_usd[i][j]` are added when the data goes from place i to
    place j; index `len(places)` is on-demand. `checkpoint_every_hours` is the running time between checkpoints (0: nothing is
    lost); a preemption loses the work since the last one.
    """

    work_hours: float
    deadline_hours: float
    step_hours: float
    changeover_hours: float
    on_demand_usd_per_hour: float
    places: tuple[Place, ...]
    move_hours: tuple[tuple[float, ...], ...] = ()
    move_usd: tuple[tuple[float, ...], ...] = ()
    checkpoint_every_hours: float = 0.0

    @property
    def moves_free(self) -> bool:
        """Whether the place of the data makes no difference."""
        return not any(value for table in (self.move_hours, self.move_usd) for row in table for value in row)

    def moving_hours(self, origin: int, to: int) -> float:
        """Changeover into place `to` with the data at `origin`."""
        return self.changeover_hours + (self.move_hours[origin][to] if self.move_hours else 0.0)

    def moving_usd(self, origin: int, to: int) -> float:
        """Cost of the move itself."""
        return self.move_usd[origin][to] if self.move_usd else 0.0

    def rescue_hours(self, origin: int) -> float:
        """Changeover into on-demand machines with the data at `origin`."""
        return self.moving_hours(origin, len(self.places))

    def checked(self) -> "SpotTerms":
        """These terms, if some policy always meets the deadline; else raises `UnusableInput` with the field to change."""
        for name in ("work_hours", "deadline_hours", "step_hours", "on_demand_usd_per_hour"):
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise UnusableInput.at(name, message=f"{value:g} is not accepted; write a number above 0")
        for name in ("changeover_hours", "checkpoint_every_hours"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise UnusableInput.at(name, message=f"{value:g} is not accepted; write a number of at least 0")
        self._check_places()
        least = self.work_hours + self.rescue_hours(len(self.places))
        if self.deadline_hours < least - 1e-9:
            message = (
                f"{self.deadline_hours:.4g} h is too short even on-demand: {self.work_hours:.4g} h of work and "
                f"{least - self.work_hours:.4g} h of changeover; give at least {least:.4g} h"
            )
            raise UnusableInput.at("deadline_hours", message=message)
        return self

    def _check_places(self) -> None:
        if not 1 <= len(self.places) <= MOST_ZONES:
            message = f"{len(self.places)} places; give 1 to {MOST_ZONES}, the states grow as their product"
            raise UnusableInput.at("places", message=message)
        names = [place.name for place in self.places]
        for i, place in enumerate(self.places):
            if names.index(place.name) < i or place.name == ON_DEMAND:
                raise UnusableInput.at(
                    "places", i, "name", message=f"{place.name!r} occurs twice; name each place once"
                )
            for name in ("usd_per_hour", "speed"):
                if not (math.isfinite(value := getattr(place, name)) and value > 0):
                    raise UnusableInput.at(
                        "places", i, name, message=f"{value:g} is not accepted; write a number above 0"
                    )
        size = len(self.places) + 1
        for table in ("move_hours", "move_usd"):
            rows = getattr(self, table)
            whole = not rows or (len(rows) == size and all(len(row) == size for row in rows))
            if not whole or any(not (math.isfinite(value) and value >= 0) for row in rows for value in row):
                message = f"give {size} rows of {size} numbers of at least 0: the places in order, then on-demand"
                raise UnusableInput.at(table, message=message)
