"""Check whether measured rates are possible for the stated accelerator."""

from collections.abc import Iterator

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.measured_rates import MeasuredRates
from gpuplan.catalog.runtime.errors import Fault

#: The largest ratio of a measured rate to the data sheet: cards boost above the data sheet's clock by up to a tenth (RTX
#: 4090: 2.75 GHz for 2.52). Beyond that it is another device, or the clock of the measurement is wrong.
MOST_OF_DATA_SHEET = 1.2
#: Below this share of the data sheet, another process used the device, or the device was not used at all.
LEAST_OF_DATA_SHEET = 0.02
#: PCIe 6.0 x16, one direction (PCI-SIG): the maximum where the table lacks a card's bandwidth.
PCIE_GBS_MOST = 121.0


def rate_faults(rates: MeasuredRates, chip: Accelerator) -> list[Fault]:
    """Every rate that is impossible for `chip`."""
    link = max((chip.link_gbs or 0.0) / 2, chip.pcie_gbs or PCIE_GBS_MOST)
    checks = [*_matmuls(rates, chip)]
    checks.append((("memory_gbs",), rates.memory_gbs, chip.memory_gbs, LEAST_OF_DATA_SHEET, "GB/s"))
    if rates.host_gbs is not None:
        checks.append((("host_gbs",), rates.host_gbs, chip.pcie_gbs or PCIE_GBS_MOST, 0.0, "GB/s"))
    if rates.peer_gbs is not None:
        checks.append((("peer_gbs",), rates.peer_gbs, link, 0.0, "GB/s"))
    faults = [
        Fault(path, _why(value, nominal, unit, chip))
        for path, value, nominal, least, unit in checks
        if not least * nominal <= value <= MOST_OF_DATA_SHEET * nominal
    ]
    return faults + _step_faults(rates, chip)


Check = tuple[tuple[str, ...], float, float, float, str]


def _matmuls(rates: MeasuredRates, chip: Accelerator) -> Iterator[Check]:
    """Only the best size must approach the data sheet; small ones never do."""
    for matmul in rates.matmuls:
        peak: float = getattr(chip, f"{matmul.precision}_tflops") or 0.0
        best = matmul.tflops == rates.best_tflops(matmul.precision)
        path = ("matmul_tflops", matmul.precision, str(matmul.size))
        yield path, matmul.tflops, peak, LEAST_OF_DATA_SHEET if best else 0.0, "TFLOP/s"


def _step_faults(rates: MeasuredRates, chip: Accelerator) -> list[Fault]:
    """A transformer step faster than its matrix products alone at the device's peak."""
    step = rates.transformer
    peak = getattr(chip, f"{step.precision}_tflops") if step is not None else None
    if step is None or not peak:
        return []
    weights = step.layers * (4 * step.hidden_size**2 + 2 * step.hidden_size * step.ffn_size)
    tokens = step.batch * step.sequence_length
    least = 6.0 * weights * tokens / (peak * 1e12 * MOST_OF_DATA_SHEET)
    if step.seconds >= least:
        return []
    message = f"{step.seconds:g} s is less than the {least:.3g} s that its products take {chip.name} at its very best"
    return [Fault(("transformer", "seconds"), message)]


def _why(value: float, nominal: float, unit: str, chip: Accelerator) -> str:
    if nominal <= 0:
        return f"{value:g} {unit} cannot be: {chip.name} has no such precision"
    accepted = f"accepted: {LEAST_OF_DATA_SHEET:.0%} to {MOST_OF_DATA_SHEET:.0%} of its data sheet's {nominal:g}"
    return f"{value:g} {unit} is not plausible for {chip.name}; {accepted}"
