"""The table of accelerators: `data/accelerators.csv`, one row per device.

A row is one device as a training framework sees it: K80, M60 and A16 per GPU chip, MI250X per die, TPU, Trainium and
Inferentia per chip. Rates are dense peaks with 32-bit accumulation where the chip distinguishes; blank means unknown, never
zero.
"""

import csv
import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.runtime.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device and form factor.

    `memory_gb` is the marketing number, `device_memory_mib` what the driver reports. Rates are dense TFLOP/s;
    `fp16_is_tensor` is False where fp16 runs on the vector units only. `link_gbs` is the vendor's total bandwidth to peers,
    both directions, in GB/s, among `link_domain` devices (2 for a bridge of two cards, 8 for an HGX board, 72 for a rack, a
    whole TPU pod; 1 means no link). `pcie_gbs` counts one direction. `trains` is yes, limited or no, with `trains_reason`.
    `talks_to_peers` is False for devices that cannot communicate. `usual_per_node` is the usual machine of that device.
    """

    name: str
    vendor: str
    architecture: str
    year: int
    form_factor: str
    memory_gb: float
    device_memory_mib: int
    memory_gbs: float
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    fp16_is_tensor: bool
    link: str
    link_gbs: float | None
    link_domain: int = 1
    pcie_gbs: float | None
    tdp_watts: float | None
    ecc: bool | None
    mig_slices: int | None
    trains: str
    trains_reason: str
    stack: str
    talks_to_peers: bool
    usual_per_node: int
    usual_internode_gbps: float
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject a row without a training verdict or without memory."""
        if self.trains not in {"yes", "limited", "no"}:
            raise ValueError(f"accelerator {self.name}: trains {self.trains!r} is not yes, limited or no")
        if self.memory_gb <= 0 or self.device_memory_mib <= 0 or self.memory_gbs <= 0:
            raise ValueError(f"accelerator {self.name}: memory and its bandwidth must be positive")


_TEXT = {"name", "vendor", "architecture", "form_factor", "link", "trains", "trains_reason", "stack", "source", "as_of"}
_WHOLE = {"year", "device_memory_mib", "mig_slices", "usual_per_node", "link_domain"}
_YES_NO = {"fp16_is_tensor", "ecc", "talks_to_peers"}


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator by name, in the order of the table."""
    with (files("gpuplan.catalog") / "data" / "accelerators.csv").open(encoding="utf-8") as file:
        return {row["name"]: _accelerator(row) for row in csv.DictReader(file)}


def _accelerator(row: dict[str, str]) -> Accelerator:
    values: dict[str, object] = {}
    for name, text in row.items():
        if name in _TEXT:
            values[name] = text
        elif not text:
            values[name] = None
        elif name in _YES_NO:
            values[name] = text == "yes"
        else:
            values[name] = int(text) if name in _WHOLE else float(text)
    return Accelerator(**values)  # type: ignore[arg-type]


@cache
def _aliases() -> dict[str, str]:
    """Folded spelling -> name, from the table's names and `data/accelerator_aliases.csv`."""
    known = {_fold(name): name for name in accelerators()}
    with (files("gpuplan.catalog") / "data" / "accelerator_aliases.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            known.setdefault(_fold(row["alias"]), row["name"])
    return known


def _fold(text: str) -> str:
    """Fold case, vendor prefix, spaces and punctuation: `NVIDIA A100 80GB` -> `a10080gb`."""
    folded = re.sub(r"[^a-z0-9]", "", text.lower())
    return re.sub(r"^(nvidia|amd|google|aws|intel|habana)(tesla|geforce|radeon(?!vii|pro)|instinct)?", "", folded)


@cache
def _ambiguous() -> dict[str, tuple[str, ...]]:
    """Folded spelling -> the accelerators that it may mean, from `data/ambiguous_accelerators.csv`."""
    meanings: dict[str, tuple[str, ...]] = {}
    for row in data_table("ambiguous_accelerators.csv"):
        folded = _fold(row["name"])
        meanings[folded] = tuple(dict.fromkeys((*meanings.get(folded, ()), row["accelerator"])))
    return meanings


def find_accelerator(text: str, *, path: tuple[str | int, ...] = ("accelerator",)) -> Accelerator:
    """The accelerator that `text` names, by its name or a common alias.

    Raises `UnusableInput` at `path`, with the nearest names, if there is none, and with all meanings of a name that is sold
    with different memory or chips, such as RTX 4060 Ti.
    """
    meanings = possible_accelerators(text, path=path)
    if len(meanings) > 1:
        several = ", ".join(row.name for row in meanings)
        raise UnusableInput.at(*path, message=f"{text[:80]!r} may mean {several}; write one of them")
    return meanings[0]


def possible_accelerators(text: str, *, path: tuple[str | int, ...] = ("accelerator",)) -> tuple[Accelerator, ...]:
    """The accelerators that a device with this name may be: one, or several if the name does not tell them apart.

    Raises `UnusableInput` at `path`, with the nearest names, if there is none.
    """
    name = _aliases().get(_fold(text))
    if name is not None:
        return (accelerators()[name],)
    if several := _ambiguous().get(_fold(text)):
        return tuple(accelerators()[meaning] for meaning in several)
    near = difflib.get_close_matches(_fold(text), list(_aliases()), n=4, cutoff=0.5)
    names = list(dict.fromkeys(_aliases()[spelling] for spelling in near)) or list(accelerators())[:6]
    raise UnusableInput.at(*path, message=f"unknown accelerator {text[:80]!r}; nearest: {', '.join(names)}")


#: Leading words that only name the vendor.
_MAKERS = frozenset(("nvidia", "amd", "google", "aws", "intel", "habana", "tesla", "geforce", "instinct"))


def accelerator_family(text: str, *, path: tuple[str | int, ...] = ("accelerator",)) -> tuple[str, ...]:
    """Names of all accelerators that `text` may mean where several are allowed, in table order.

    A full name means itself; `H100`, `A100 80GB` or `H100 PCIe` means every variant with all those words; otherwise the
    aliases of `find_accelerator` apply, and an ambiguous name means all its meanings. Raises `UnusableInput` at `path` if
    there is none.
    """
    folded = _fold(text)
    exact = next((name for name in accelerators() if _fold(name) == folded), None)
    if exact is not None:
        return (exact,)
    words = _words(text)
    family = tuple(
        name for name in accelerators() if words and _words(name)[0] == words[0] and set(words) <= set(_words(name))
    )
    return family or tuple(row.name for row in possible_accelerators(text, path=path))


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word and word not in _MAKERS]
