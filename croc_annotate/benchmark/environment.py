"""What a run ran on: software and hardware, without importing what is not loaded (no Django)."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import croc_annotate

_PACKAGES = ("numpy", "torch", "transformers", "onnxruntime", "pillow")


def describe_environment() -> dict[str, Any]:
    """Versions, processor and, where torch is loaded, the device's name."""
    return {
        "software": f"croc-annotate {croc_annotate.__version__}",
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "gpu": gpu_name(),
    }


def gpu_name() -> str:
    """The CUDA device's name; "" without one, or before torch is loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_name())


def peak_memory_mb() -> dict[str, float]:
    """Peak memory of this process and of the device, in MB."""
    import resource

    # Kilobytes on Linux, bytes on macOS.
    scale = 1024.0 if sys.platform != "darwin" else 1024.0**2
    peaks = {"host": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        peaks["device"] = torch.cuda.max_memory_allocated() / 1024.0**2
    return peaks


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as info:
            names = [line.split(":", 1)[1].strip() for line in info if "model name" in line]
    except OSError:
        return platform.processor()
    return names[0] if names else platform.processor()
