"""How much of its dense peak a chip reaches on matrix products, measured where it has been measured.

The ceiling of a chip is the best matmul that a search over shapes finds ("maximum achievable matmul
FLOPS", MAMF). Chips are looked up by name, then by architecture, then by vendor, so that an unseen chip
takes the figure of its relatives. A training step reaches a further share of that ceiling (`STACK`).
"""

from catalog.accelerators import Accelerator

SIXTEEN, EIGHT, VECTOR = 0, 1, 2

#: (16-bit, 8-bit) MAMF over dense peak. Source: Stas Bekman, Machine Learning Engineering, accelerator
#: chapter, tables of maximum achievable matmul FLOPS (https://github.com/stas00/ml-engineering).
MAMF_BY_NAME: dict[str, tuple[float, float]] = {
    "A100-40GB-PCIe": (0.81, 0.81),
    "A100-80GB-PCIe": (0.81, 0.81),
    "GH200-96GB": (0.84, 0.78),
    "GH200-144GB": (0.84, 0.78),
    "GB200": (0.73, 0.72),
    "RTX-3090": (0.95, 0.95),
    "RTX-4090": (0.95, 0.95),
    "MI300X": (0.51, 0.51),
    "MI325X": (0.60, 0.60),
    "MI355X": (0.68, 0.68),
    "Gaudi2": (0.97, 0.96),
    "Gaudi3": (0.74, 0.77),
}
MAMF_BY_ARCHITECTURE: dict[str, tuple[float, float]] = {
    "Ampere": (0.87, 0.87),
    "Ada": (0.87, 0.80),
    "Hopper": (0.80, 0.71),
    "Blackwell": (0.78, 0.76),
    "Blackwell Ultra": (0.79, 0.75),
    "CDNA3": (0.55, 0.55),
    "CDNA4": (0.68, 0.68),
}
MAMF_BY_VENDOR: dict[str, tuple[float, float]] = {
    "NVIDIA": (0.80, 0.74),
    "AMD": (0.55, 0.55),
    "Google": (0.90, 0.85),
    "AWS": (0.75, 0.70),
    "Intel": (0.80, 0.80),
}
MAMF_UNKNOWN = (0.65, 0.60)

#: Plain fp32 units without a tensor path: cuBLAS reaches about nine tenths of the vector peak, and since memory
#: keeps up with so low a rate, training reaches most of that (BERT-large in fp32 on V100, NVIDIA's examples).
VECTOR_CEILING = 0.80

#: Share of the MAMF that the matmuls of a whole training step reach at large hidden size, fused stack.
#: Fitted with benchmarks/accuracy.py on 635 measured runs of ten sources (2026-11): Volta, Ampere, Hopper and the
#: Blackwells on two sources or more, TPUs on MaxText and its recipes. Turing and Ada are set between their
#: neighbours: no absolute runs of them were at hand.
STACK_BY_NAME: dict[str, float] = {
    "TPU-v5e": 0.90,
    "TPU-v5p": 0.82,
    "TPU-v6e": 0.62,
    "TPU-v7": 0.67,
}
STACK_BY_ARCHITECTURE: dict[str, float] = {
    "Volta": 0.70,
    "Turing": 0.65,
    "Ampere": 0.78,
    "Ada": 0.70,
    "Hopper": 0.80,
    "Blackwell": 0.69,
    "Blackwell Ultra": 0.85,
}
STACK_BY_VENDOR: dict[str, float] = {"NVIDIA": 0.72, "AMD": 0.75, "Google": 0.80, "AWS": 0.60, "Intel": 0.65}
STACK_UNKNOWN = 0.60


#: What cuBLAS reaches of the vector peak in one matmul, without the rest of a training step.
VECTOR_MATMUL = 0.90


def best_matmul(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that the best single matmul reaches (16-bit and tf32, 8-bit and below, vector fp32)."""
    by_vendor = MAMF_BY_VENDOR.get(chip.vendor, MAMF_UNKNOWN)
    sixteen, eight = MAMF_BY_NAME.get(chip.name) or MAMF_BY_ARCHITECTURE.get(chip.architecture) or by_vendor
    return sixteen, eight, VECTOR_MATMUL


def ceilings(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that training reaches in (16-bit and tf32, 8-bit and below, vector fp32) matmuls."""
    sixteen, eight, _ = best_matmul(chip)
    stack = STACK_BY_NAME.get(chip.name) or STACK_BY_ARCHITECTURE.get(chip.architecture)
    stack = stack or STACK_BY_VENDOR.get(chip.vendor, STACK_UNKNOWN)
    return sixteen * stack, eight * stack, VECTOR_CEILING


def generation_is_measured(chip: Accelerator) -> bool:
    """Whether the share rests on runs of this chip or its architecture, not only of its vendor."""
    return chip.name in STACK_BY_NAME or chip.architecture in STACK_BY_ARCHITECTURE
