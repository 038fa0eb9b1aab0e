"""The inventory file: owned machines as users write them."""

import re
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, model_validator

from gpuplan.catalog.model.availability_windows import MINUTES_PER_DAY, FreeSpan, FreeWindow, WeeklyWindow
from gpuplan.catalog.model.offer import MAX_ACCELERATORS_PER_NODE
from gpuplan.catalog.model.owned_machine import MAX_MACHINES, MAX_POWER_WATTS
from gpuplan.catalog.parsing.accelerator_names import card_or_slice_text
from gpuplan.catalog.parsing.document_fields import (
    Document,
    Label,
    Reads,
    choice,
    choose,
    listed,
    quantity,
    whole_number,
)
from gpuplan.catalog.parsing.quantities import count, gb, gib, moment, shown, usd

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAMES = {
    name: day
    for day, full in zip(
        DAYS, ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"), strict=True
    )
    for name in (day, full)
}
#: An order of magnitude above any listed accelerator server.
MAX_MACHINE_USD = 20e6
MAX_YEARS = 30.0
#: Enough for a university's whole inventory; a document of 1 MiB holds not many more.
MAX_KINDS_OF_MACHINE = 5_000
#: `nvlink` means the link of the accelerator of any vendor.
LINKS = ("pcie", "nvlink")
_LINK_ALIASES = {"nvlink_bridge": "nvlink", "bridge": "nvlink", "infinity_fabric": "nvlink", "none": "pcie"}


def _minute_of_day(value: object) -> int:
    match = re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", value.strip()) if isinstance(value, str) else None
    minute = int(match[1]) * 60 + int(match[2]) if match else -1
    if not match or int(match[2]) > 59 or minute > MINUTES_PER_DAY:
        raise ValueError(f"{shown(value)} is not a time of day; write 00:00 to 24:00, such as 18:00")
    return minute


def _days(value: object) -> tuple[int, ...]:
    given = listed(value)
    if not isinstance(given, list) or not given:
        raise ValueError(f"{shown(value)} is not accepted; write a list of days such as [mon, tue, wed, thu, fri]")
    days = [DAYS.index(choose(day, DAYS, _DAY_NAMES)) for day in given]
    if len(set(days)) != len(days):
        raise ValueError(f"{shown(value)} names a day twice; name each once")
    return tuple(days)


def _timezone(value: object) -> str:
    accepted = "write an IANA time zone such as Europe/Berlin or UTC"
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_+/-]{1,64}", value):
        raise ValueError(f"{shown(value)} is not a time zone; {accepted}")
    try:
        return ZoneInfo(value).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{shown(value)} is not a time zone; {accepted}") from None


def _window_bound(value: object) -> object:
    """A time of day or a point in time; the window as a whole decides which."""
    return _minute_of_day(value) if isinstance(value, str) and len(value.strip()) <= 5 else moment(value)


_WindowBound = Annotated[
    object, Reads(_window_bound, {"type": "string", "description": "18:00, or 2026-12-01T09:00Z without days"})
]
_Days = Reads(_days, {"type": "array", "items": {"enum": list(DAYS)}})


class WindowDocument(Document):
    """Free once (from and to as times with a zone) or weekly (days, from and to as times of day, timezone)."""

    days: Annotated[tuple[int, ...], _Days] | None = None
    from_: _WindowBound = Field(alias="from")
    to: _WindowBound
    timezone: Annotated[str, Reads(_timezone, {"type": "string"})] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        self.window()
        return self

    def window(self) -> FreeWindow:
        """The window; raises `ValueError` if it is neither kind or ends before it starts."""
        start, end = self.from_, self.to
        if self.days is None:
            if isinstance(start, int) or isinstance(end, int) or self.timezone is not None:
                raise ValueError(
                    "a weekly window needs days beside from and to (days: [mon, fri]); a single one needs from and to "
                    "as times with a zone (2026-12-01T18:00Z) and no timezone"
                )
            return FreeSpan(start=start, end=end)  # type: ignore[arg-type]
        if not isinstance(start, int) or not isinstance(end, int) or self.timezone is None:
            raise ValueError("a weekly window needs from and to as times of day (18:00) and a timezone (Europe/Berlin)")
        return WeeklyWindow(days=self.days, from_minute=start, until_minute=end, timezone=self.timezone)


_Usd = Annotated[float, quantity(lambda value: usd(value, top=MAX_MACHINE_USD), "US dollars", 3200)]
_UsdOrNone = Annotated[float, quantity(lambda value: usd(value, top=MAX_MACHINE_USD, zero=True), "US dollars", 0)]
_Rate = Annotated[float, quantity(lambda value: usd(value, top=5000, zero=True), "US dollars per hour", 1.2)]
_PerKwh = Annotated[float, quantity(lambda value: usd(value, top=10), "US dollars per kWh", 0.32)]
_Grams = Annotated[float, quantity(lambda value: count(value, top=3000, zero=True), "grams of CO2 per kWh", 380)]
_Watts = Annotated[
    float, quantity(lambda value: count(value, top=MAX_POWER_WATTS), "watts of one machine at work", 850)
]
_Years = Annotated[float, quantity(lambda value: count(value, top=MAX_YEARS), "years", 4)]
_Gib = Annotated[float, quantity(gib, "GiB, or 64 GB", 128)]
_Gb = Annotated[float, quantity(gb, "GB, or 2 TB", 2000)]
_Gbps = Annotated[float, quantity(lambda value: count(value, top=200_000), "Gbit/s of one machine", 10)]


def _pue(value: object) -> float:
    ratio = count(value, top=5)
    if ratio < 1:
        raise ValueError(f"{shown(value)} is below 1; write total over computing power, 1.0 (no cooling) to 5")
    return ratio


_Pue = Annotated[float, quantity(_pue, "total power over computing power, 1 or more", 1.1)]
Windows = Annotated[tuple[WindowDocument, ...], BeforeValidator(listed)]


class SiteDocument(Document):
    """Fields that may be given once for the whole inventory, or per machine."""

    site: Annotated[str, Label] | None = None
    pue: _Pue | None = None
    electricity_usd_per_kwh: _PerKwh | None = None
    grams_co2_per_kwh: _Grams | None = None


class MachineDocument(SiteDocument):
    """Equal machines: hardware, costs, availability."""

    name: Annotated[str, Label]
    accelerator: Annotated[
        str, Reads(card_or_slice_text, {"type": "string", "examples": ["RTX 3090", "A100-80GB-SXM:3g.40gb"]})
    ]
    count: Annotated[int, whole_number(1, MAX_ACCELERATORS_PER_NODE, "accelerators per machine")] = 1
    machines: Annotated[int, whole_number(1, MAX_MACHINES, "how many such machines")] = 1
    host: Annotated[str, Label] | None = None
    link: Annotated[str, choice(LINKS, _LINK_ALIASES)] | None = None
    purchase_usd: _Usd | None = None
    life_years: _Years | None = None
    residual_usd: _UsdOrNone | None = None
    usd_per_hour: _Rate | None = None
    power_watts: _Watts | None = None
    vcpus: Annotated[int, whole_number(1, 4096)] | None = None
    ram_gib: _Gib | None = None
    local_disk_gb: _Gb | None = None
    network_gbps: _Gbps | None = None
    free_windows: Windows = ()

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        priced_configurations = [
            name for name in ("purchase_usd", "life_years", "residual_usd") if getattr(self, name) is not None
        ]
        if self.usd_per_hour is not None and priced_configurations:
            raise ValueError(
                f"usd_per_hour is given beside {', '.join(priced_configurations)}; give a rate or a purchase, not both"
            )
        if self.usd_per_hour is None and (self.purchase_usd is None or self.life_years is None):
            raise ValueError(
                "its cost is missing; give purchase_usd and life_years (and residual_usd), or usd_per_hour "
                "(0 for a machine that is written off)"
            )
        if self.residual_usd is not None and self.purchase_usd is not None and self.residual_usd >= self.purchase_usd:
            raise ValueError(f"residual_usd {self.residual_usd:g} is not below purchase_usd {self.purchase_usd:g}")
        return self


class InventoryDocument(SiteDocument):
    """The user's machines, and their common fields."""

    machines: Annotated[
        tuple[MachineDocument, ...], BeforeValidator(lambda value: listed(value, most=MAX_KINDS_OF_MACHINE))
    ]
