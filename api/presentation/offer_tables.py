"""Offers, accelerators and known models as tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.api.presentation.text_formatting import located, number, plain, usd_per_hour, when
from gpuplan.api.presentation.text_tables import aligned
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.unavailable_machines import retired_on

if TYPE_CHECKING:
    from gpuplan.api.services.catalogue import OfferPage
    from gpuplan.planner.workload.presets import PresetRow

OFFER_TITLES = ("provider", "region", "instance type", "accelerators", "kind", "USD/h", "observed", "notes")
_ACCELERATOR_TITLES = ("name", "vendor", "year", "GB", "GB/s", "bf16", "fp16", "fp8", "link GB/s", "trains")
_PRESET_TITLES = ("name", "M parameters", "GFLOP forward", "task", "counts", "source")


def render_offers(page: "OfferPage") -> Iterator[str]:
    """The offers as lines, then their number and snapshot."""
    yield from aligned(OFFER_TITLES, offer_cells(page.rows), right=(5,))
    yield f"\n{page.total:,} offers in snapshot {page.snapshot_id}"


def offer_cells(rows: Iterable[OfferRow]) -> Iterator[tuple[object, ...]]:
    """The cells of each offer, as many as `OFFER_TITLES` has."""
    for row in rows:
        yield (
            row.provider,
            located(row.region, row.zone),
            row.instance_type,
            f"{number(row.accelerator_count)} x {row.accelerator}",
            row.price_kind,
            usd_per_hour(row.usd_per_hour),
            when(row.observed_at)[:10],
            offer_notes(row),
        )


def offer_notes(row: OfferRow) -> str:
    """Notes on an offer beside its price: slices, staleness, modelled figures."""
    hosts = row.fixed_nodes or 1
    notes = [f"per host, rented as {number(hosts)} together"] if hosts > 1 else []
    notes += [f"modelled: {plain(figure)}" for figure in row.modelled]
    notes += [f"without {plain(part)}" for part in row.partial]
    notes += [f"not confirmed since {when(row.stale_since)[:10]}"] if row.stale_since else []
    notes += ["electricity apart"] if price_kinds()[row.price_kind].owned else []
    notes += [f"retired {retired_on(row.provider, row.instance_type)}".strip()] if row.retired else []
    notes += [row.sale_notice] if row.sale_notice else []
    notes += [] if row.available else ["availability unverified"]
    return ", ".join(notes)


def render_accelerators(rows: Iterable[Accelerator]) -> Iterator[str]:
    """All accelerators with memory and dense TFLOP/s; unknown figures are blank."""
    cells = (
        (
            row.name,
            row.vendor,
            row.year,
            number(row.memory_gb),
            number(row.memory_gbs),
            *("" if rate is None else number(rate) for rate in (row.bf16_tflops, row.fp16_tflops, row.fp8_tflops)),
            "" if row.link_gbs is None else number(row.link_gbs),
            row.trains,
        )
        for row in rows
    )
    return aligned(_ACCELERATOR_TITLES, cells, right=(2, 3, 4, 5, 6, 7, 8))


def render_presets(rows: "Sequence[PresetRow]") -> Iterator[str]:
    """Known models: parameters in millions, and GFLOPs of a forward pass for models known only by totals."""
    cells = (
        (
            row.name,
            number(row.published_parameters / 1e6),
            "" if (flops := dict(row.details).get("gflops")) is None else number(float(flops)),
            row.task,
            row.unit,
            row.source,
        )
        for row in rows
    )
    yield from aligned(_PRESET_TITLES, cells, right=(1, 2))
    yield f"\n{len(rows):,} models; use one in a job: workload: {{kind: preset, model: {plain(rows[0].name)}, ...}}"
