"""Measurements of a machine as text, beside the data sheet's figures."""

from collections.abc import Iterator

from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.presentation.text_tables import aligned
from gpuplan.catalog.model.accelerators import Accelerator, find_accelerator
from gpuplan.catalog.parsing.json_object import JsonObject


def render_entry(entry: JsonObject) -> Iterator[str]:
    """One entry of a calibration file as lines."""
    chip = find_accelerator(entry["accelerator"])
    yield f"{chip.name} on host {plain(entry['host'])}, driver {plain(entry['driver'])}, torch {plain(entry['torch'])}"
    yield ""
    yield from aligned(("measured", "value", "data sheet", "share"), _figures(entry, chip), right=(1, 2, 3))
    for note in entry.get("notes", ()):
        yield f"note: {plain(note)}"


def _figures(entry: JsonObject, chip: Accelerator) -> Iterator[tuple[str, str, str, str]]:
    for precision, sizes in entry["matmul_tflops"].items():
        for size, tflops in sizes.items():
            yield _figure(f"matmul {precision} {size}", tflops, getattr(chip, f"{precision}_tflops"), "TFLOP/s")
    nominal = {"memory_gbs": chip.memory_gbs, "host_gbs": chip.pcie_gbs, "peer_gbs": _peer_gbs(chip)}
    for name, title in (("memory_gbs", "memory"), ("host_gbs", "host to device"), ("peer_gbs", "device to device")):
        if name in entry:
            yield _figure(title, entry[name], nominal[name], "GB/s")
    for name in ("transformer", "convolution"):
        if name in entry:
            step = entry[name]
            yield (f"{name} step, batch {step['batch']}", f"{step['seconds'] * 1e3:.4g} ms", "", "")


def _peer_gbs(chip: Accelerator) -> float | None:
    """Bandwidth of one direction of the peer link, or of PCIe without one, in GB/s."""
    return chip.link_gbs / 2 if chip.link_gbs else chip.pcie_gbs


def _figure(title: str, value: float, nominal: float | None, unit: str) -> tuple[str, str, str, str]:
    beside = (f"{nominal:g} {unit}", f"{value / nominal:.0%}") if nominal else ("", "")
    return (title, f"{value:.4g} {unit}", *beside)
