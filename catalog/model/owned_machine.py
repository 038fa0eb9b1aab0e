"""Owned machines: hardware, cost per hour, and availability windows."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.catalog.model.availability_windows import FreeWindow, elapsed_hours
from gpuplan.catalog.model.measured_rates import MeasuredRates
from gpuplan.catalog.model.offer import Implausible, InstanceType

#: Maximum number of equal machines in an inventory; the largest clusters have some thousand nodes.
MAX_MACHINES = 4096
#: Maximum watts per machine: a node of 72 accelerators of 1.4 kW and its hosts stays below 150 kW.
MAX_POWER_WATTS = 200_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedMachine:
    """`machines` equal machines at one site (`region`).

    `usd_per_hour_full` is amortisation, or the hourly rate that the user states, without electricity; it is 0 only if the
    user states that the machine is written off. Both cost bases add electricity while the machine works: `power_watts` of
    one machine x `pue` x `usd_per_kwh`. Empty `windows` means always free. `grams_co2_per_kwh` of None is unknown. `host`
    identifies the machine among others of its kind (empty: unknown). `measured` holds its measured rates. `assumptions` are
    sentences for the user.
    """

    instance_type: InstanceType
    region: str
    machines: int
    usd_per_hour_full: float
    power_watts: float
    pue: float
    usd_per_kwh: float
    windows: tuple[FreeWindow, ...] = ()
    grams_co2_per_kwh: float | None = None
    host: str = ""
    measured: MeasuredRates | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject implausible values."""
        name = f"owned machine {self.instance_type.name}"
        bounds = {
            "machines": (1, MAX_MACHINES),
            "usd_per_hour_full": (0, 5_000),
            "power_watts": (1, MAX_POWER_WATTS),
            "pue": (1, 5),
            "usd_per_kwh": (1e-6, 100),
        }
        for field, (low, high) in bounds.items():
            if not low <= getattr(self, field) <= high:
                raise Implausible(f"{name}: {field} {getattr(self, field)} is outside {low:g}..{high:g}")

    @property
    def usd_per_hour_power(self) -> float:
        """Electricity of one machine for one hour of work, dollars: W / 1000 x PUE x USD/kWh."""
        return self.power_watts / 1000 * self.pue * self.usd_per_kwh

    def elapsed_hours(
        self, start: datetime, busy_hours: float, *, restart_hours: float = 0.0, after_hours: float = 0.0
    ) -> float:
        """Elapsed hours from `after_hours` after `start` until `busy_hours` of free time are used; inf if they never are.

        Each later window loses `restart_hours` before work continues.
        """
        return elapsed_hours(self.windows, start, busy_hours, restart_hours=restart_hours, after_hours=after_hours)
