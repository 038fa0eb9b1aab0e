"""Purchase prices of accelerators and machines: `data/purchase_prices.csv`, each with source and date.

Prices are list or reported prices in US dollars without taxes and may be old; the user's own quotation takes precedence. A
`card` needs a host, whose price is modelled here by the number of cards; a `node` is a whole machine.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.data_tables import data_table

#: USD of a host without its cards, by the most cards it takes: assumed (a desktop, a workstation, a server chassis with two
#: processors). No source states one; every answer that uses them says so.
HOST_USD = {1: 1_200.0, 2: 2_500.0, 4: 6_000.0, 8: 15_000.0}
FORMS = ("card", "node")


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchasePrice:
    """One thing to buy: `accelerators` of `accelerator`, as a bare card or a whole node.

    `power_watts` and `network_gbps` are None if no source states them; `modelled` names the assumed figures.
    """

    name: str
    accelerator: str
    accelerators: int
    form: str
    usd: float
    power_watts: float | None
    network_gbps: float | None
    modelled: tuple[str, ...]
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject implausible values."""
        if self.accelerator not in accelerators():
            raise ValueError(f"purchase price {self.name}: unknown accelerator {self.accelerator}")
        if self.form not in FORMS or self.usd <= 0 or self.accelerators < 1 or not self.source or not self.as_of:
            raise ValueError(f"purchase price {self.name}: form, price, count, source and date are needed")


@cache
def purchase_prices() -> dict[str, PurchasePrice]:
    """Every row by name, in the order of the table."""
    return {row["name"]: _price(row) for row in data_table("purchase_prices.csv")}


def _price(row: dict[str, str]) -> PurchasePrice:
    return PurchasePrice(
        name=row["name"],
        accelerator=row["accelerator"],
        accelerators=int(row["accelerators"]),
        form=row["form"],
        usd=float(row["usd"]),
        power_watts=float(row["power_watts"]) if row["power_watts"] else None,
        network_gbps=float(row["network_gbps"]) if row["network_gbps"] else None,
        modelled=tuple(row["modelled"].split()),
        source=row["source"],
        as_of=row["as_of"],
    )


def host_usd(cards: int) -> float:
    """The modelled price of the smallest host that takes that number of cards."""
    return next((usd for most, usd in HOST_USD.items() if cards <= most), max(HOST_USD.values()))
