"""NVML as nvidia-ml-py offers it, over cards that a test describes."""

# ruff: noqa: N802 (the names are the library's)

from types import SimpleNamespace
from typing import Any


class NvmlError(Exception):
    """What the library raises."""


class FakeNvml:
    """NVML as nvidia-ml-py offers it, over cards that a test describes."""

    NVMLError = NvmlError
    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0

    def __init__(self, *cards: dict[str, Any], broken: str = "") -> None:
        self.cards = [{"name": "NVIDIA GeForce RTX 3090", "mib": 24576, "linked": False, **card} for card in cards]
        self.broken = broken
        self.open = 0

    def nvmlInit(self) -> None:
        if self.broken == "nvmlInit":
            raise NvmlError("Driver/library version mismatch")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.86.15"

    def nvmlDeviceGetCount(self) -> int:
        if self.broken == "nvmlDeviceGetCount":
            raise NvmlError("GPU is lost")
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> Any:
        return self.cards[handle]["name"]

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=self.cards[handle]["mib"] << 20)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return int(self._asked(handle, "milliwatts"))

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: int) -> int:
        return int(self._asked(handle, "generation"))

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:
        return int(self._asked(handle, "width"))

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        return [int(self._asked(handle, "mig"))] * 2

    def nvmlDeviceGetP2PStatus(self, one: int, other: int, index: int) -> int:
        assert index == self.NVML_P2P_CAPS_INDEX_NVLINK
        return 0 if self.cards[one]["linked"] and self.cards[other]["linked"] else 5

    def _asked(self, handle: int, what: str) -> Any:
        if what not in self.cards[handle]:
            raise NvmlError("Not Supported")
        return self.cards[handle][what]


#: What a card in a slot of PCIe 4.0 adds to its name and memory.
RTX = {"milliwatts": 280_000, "generation": 4, "width": 16}
