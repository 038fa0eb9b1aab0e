"""Offers and accelerators as tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from api.render.tables import aligned
from api.render.text import located, number, plain, usd_per_hour, when
from catalog.price_kinds import price_kinds

if TYPE_CHECKING:
    from api.app import OfferPage

_OFFER_TITLES = ("provider", "region", "instance type", "accelerators", "kind", "USD/h", "observed", "notes")
_ACCELERATOR_TITLES = ("name", "vendor", "year", "GB", "GB/s", "bf16", "fp16", "fp8", "link GB/s", "trains")


def render_offers(page: "OfferPage") -> Iterator[str]:
    """The offers as lines, with how many there are and the snapshot they stand in."""
    yield from aligned(_OFFER_TITLES, _offer_cells(page), right=(5,))
    yield f"\n{page.total:,} offers in snapshot {page.snapshot_id}"


def _offer_cells(page: "OfferPage") -> Iterator[tuple[object, ...]]:
    for row in page.rows:
        yield (
            row["provider"],
            located(row["region"], row["zone"]),
            row["instance_type"],
            f"{number(row['accelerator_count'])} x {row['accelerator']}",
            row["price_kind"],
            usd_per_hour(row["usd_per_hour"]),
            when(row["observed_at"])[:10],
            offer_notes(row),
        )


def offer_notes(row: dict[str, Any]) -> str:
    """What a buyer must know about an offer besides its price."""
    hosts = row["fixed_nodes"] or 1
    notes = [f"per host, {number(hosts)} of them together"] if hosts > 1 else []
    notes += [f"modelled: {plain(each)}" for each in row["modelled"]]
    notes += [f"without {plain(each)}" for each in row["partial"]]
    notes += [f"not confirmed since {when(row['stale_since'])[:10]}"] if row.get("stale_since") else []
    notes += ["electricity apart"] if price_kinds()[row["price_kind"]].owned else []
    notes += ["retired"] if row["retired"] else []
    notes += [row["sale_notice"]] if row["sale_notice"] else []
    notes += [] if row["available"] else ["availability unverified"]
    return ", ".join(notes)


def render_accelerators(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Every accelerator with its memory and dense TFLOP/s; unknown figures are blank."""
    cells = (
        (
            row["name"],
            row["vendor"],
            row["year"],
            number(row["memory_gb"]),
            number(row["memory_gbs"]),
            *("" if row[rate] is None else number(row[rate]) for rate in ("bf16_tflops", "fp16_tflops", "fp8_tflops")),
            "" if row["link_gbs"] is None else number(row["link_gbs"]),
            row["trains"],
        )
        for row in rows
    )
    return aligned(_ACCELERATOR_TITLES, cells, right=(2, 3, 4, 5, 6, 7, 8))
