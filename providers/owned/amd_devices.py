"""AMD devices through the vendor's tools: amd-smi, or rocm-smi with an older ROCm."""

import json
import shutil
import subprocess
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.owned.detected_devices import Device

#: Tools with the arguments that describe every device as JSON, the current tool first.
TOOLS = (
    ("amd-smi", "static --asic --bus --driver --vram --limit --json"),
    ("rocm-smi", "--showproductname --showuniqueid --showdriverversion --showmaxpower --showmeminfo vram --json"),
)
#: A working tool answers within some seconds.
SECONDS = 60
#: Decimal or binary, by a tool's unit; both tools write MB for 2^20 bytes.
_MIB = {"KB": 1 / 1024, "MB": 1.0, "GB": 1024.0, "B": 1 / (1 << 20)}


def amd_devices() -> list[Device]:
    """Every AMD device of this machine; none if neither tool is installed.

    Raises `ProviderFailure` if an installed tool fails or its output cannot be read.
    """
    for tool, arguments in TOOLS:
        path = shutil.which(tool)
        if path is not None:
            return _parsed(tool, _answer(tool, path, arguments.split()))
    return []


def _answer(tool: str, path: str, arguments: list[str]) -> str:
    try:
        done = subprocess.run((path, *arguments), capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderFailure(f"{tool} cannot be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()[-1][:200]
        raise ProviderFailure(f"{tool} failed with exit code {done.returncode}: {last}")
    return done.stdout


def _parsed(tool: str, text: str) -> list[Device]:
    try:
        document = json.loads(text[min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0) :])
        return from_amd_smi(document) if tool == "amd-smi" else from_rocm_smi(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{tool} describes its devices in a way that cannot be read ({type(error).__name__}: {error})"
        raise ProviderFailure(message) from error


def from_amd_smi(document: Any) -> list[Device]:
    """Devices of `amd-smi static --json`: a list, under `gpu_data` from ROCm 7 on. Raises `KeyError` and the like."""
    rows = document["gpu_data"] if isinstance(document, dict) else document
    return [
        Device(
            vendor="AMD",
            name=row["asic"]["market_name"],
            uuid=str(row["asic"].get("asic_serial") or row["bus"]["bdf"]),
            memory_mib=round(row["vram"]["size"]["value"] * _MIB[row["vram"]["size"]["unit"]]),
            driver=str(row.get("driver", {}).get("version", "")),
            power_limit_watts=_number(row.get("limit", {}).get("max_power")),
            pcie_generation=_generation(_number(row["bus"].get("max_pcie_speed"))),
            pcie_width=_whole(row["bus"].get("max_pcie_width")),
        )
        for row in rows
    ]


def from_rocm_smi(document: dict[str, dict[str, str]]) -> list[Device]:
    """Devices of `rocm-smi --json`: one mapping per card, beside one for the system. Raises `KeyError` and the like."""
    system = document.get("system", {})
    return [_from_card(name, _folded(card), system) for name, card in document.items() if name.startswith("card")]


def _from_card(name: str, card: dict[str, str], system: dict[str, str]) -> Device:
    unique = card.get("unique id", "N/A")
    watts = card.get("max graphics package power (w)", "")
    return Device(
        vendor="AMD",
        # Releases swap the fields for the product's name and number.
        name=next(text for text in (card["card series"], card["card model"]) if not text.startswith("0x")),
        uuid=name if unique == "N/A" else unique,
        memory_mib=round(int(card["vram total memory (b)"]) / (1 << 20)),
        driver=system.get("Driver version", ""),
        power_limit_watts=float(watts) if watts.replace(".", "", 1).isdigit() else None,
    )


def _folded(card: dict[str, str]) -> dict[str, str]:
    """Keys in lower case, since releases spell them `Card series` and `Card Series`."""
    return {key.lower(): value for key, value in card.items()}


def _number(value: Any) -> float | None:
    """A figure, bare or beside its unit; None for N/A."""
    inner = value.get("value") if isinstance(value, dict) else value
    return float(inner) if isinstance(inner, int | float) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _generation(giga_transfers: float | None) -> int | None:
    """PCIe generation by GT/s of a lane: 8 is 3.0, and each generation doubles it (PCI-SIG)."""
    return {8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}.get(giga_transfers or 0.0)
