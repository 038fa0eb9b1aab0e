"""NVIDIA devices through NVML, the library of the driver (Python: nvidia-ml-py, the extra `nvidia`)."""

import ctypes.util
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.owned.detected_devices import Device

#: Exists while the kernel module is loaded, even without NVIDIA's programs.
DRIVER = Path("/proc/driver/nvidia/version")


#: The untyped module `pynvml` of nvidia-ml-py. Handles are opaque; calls raise its `NVMLError`.
Nvml = Any


def nvidia_devices() -> list[Device]:
    """Every NVIDIA device of this machine; none if no driver is installed.

    Raises `ProviderFailure` if a driver does not answer.
    """
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        if DRIVER.exists() or ctypes.util.find_library("nvidia-ml"):
            message = (
                "this machine has an NVIDIA driver, which is asked through nvidia-ml-py: pip install 'gpuplan[nvidia]'"
            )
            raise ProviderFailure(message) from None
        return []
    return devices_of(library)


def devices_of(library: Nvml) -> list[Device]:
    """Every device that `library` lists. Raises `ProviderFailure` if it fails although a driver is loaded."""
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        if DRIVER.exists():
            raise ProviderFailure(f"the NVIDIA driver does not answer: {error}; does nvidia-smi run?") from error
        return []
    try:
        handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
        driver = _text(library.nvmlSystemGetDriverVersion())
        return [_device(library, handle, handles, driver) for handle in handles]
    except library.NVMLError as error:
        raise ProviderFailure(f"the NVIDIA driver does not answer: {error}; does nvidia-smi run?") from error
    finally:
        library.nvmlShutdown()


def _device(library: Nvml, handle: Any, handles: list[Any], driver: str) -> Device:
    milliwatts = _supported(library, library.nvmlDeviceGetEnforcedPowerLimit, handle)
    mig = _supported(library, library.nvmlDeviceGetMigMode, handle)
    return Device(
        vendor="NVIDIA",
        name=_text(library.nvmlDeviceGetName(handle)),
        uuid=_text(library.nvmlDeviceGetUUID(handle)),
        memory_mib=round(library.nvmlDeviceGetMemoryInfo(handle).total / (1 << 20)),
        driver=driver,
        power_limit_watts=None if milliwatts is None else milliwatts / 1000,
        pcie_generation=_supported(library, library.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        pcie_width=_supported(library, library.nvmlDeviceGetMaxPcieLinkWidth, handle),
        link_peers=_link_peers(library, handle, handles),
        split=mig is not None and mig[0] == 1,
    )


def _link_peers(library: Nvml, handle: Any, handles: list[Any]) -> int | None:
    """How many other devices this one reaches over NVLink, through switches or directly."""
    wanted, fine = library.NVML_P2P_CAPS_INDEX_NVLINK, library.NVML_P2P_STATUS_OK
    others = [other for other in handles if other is not handle]
    status = [_supported(library, library.nvmlDeviceGetP2PStatus, handle, other, wanted) for other in others]
    return None if None in status else sum(link_status == fine for link_status in status)


def _supported(library: Nvml, call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call, None if this device or driver does not support it."""
    try:
        return call(*arguments)
    except library.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    """Text in every release of the library: older ones answer with bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
