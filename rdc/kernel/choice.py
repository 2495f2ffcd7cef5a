"""Which form of the kernel runs: the fastest this CPU can, or the one RDC_KERNEL demands."""

from __future__ import annotations

import os
from types import ModuleType

from rdc.errors import UsageError

__all__ = ["FORMS", "chosen_module"]

FORMS = ("avx512", "avx2", "ssse3", "neon", "c", "pure")
"""Every form there is, fastest first."""


def _extension() -> ModuleType | None:
    try:
        from rdc.kernel import _kernel
    except ImportError:  # a checkout without a compiler: correct, and a thousand times slower
        return None
    return _kernel


def chosen_module(demand: str | None = None) -> ModuleType:
    """The module with the kernel to use, its form chosen.

    `demand`, by default RDC_KERNEL, names one form. It is never quietly replaced: a measurement would measure
    something else. UsageError says whether the form is unknown, not built, or not for this CPU.
    """
    if demand is None:
        demand = os.environ.get("RDC_KERNEL", "")
    if demand and demand not in FORMS:
        raise UsageError(f"RDC_KERNEL={demand}: unknown kernel; known are {', '.join(FORMS)}")
    extension = _extension() if demand != "pure" else None
    if extension is None:
        if demand not in ("", "pure"):
            raise UsageError(
                f"RDC_KERNEL={demand}: not built; the C extension is missing, reinstall rdc with a C compiler"
            )
        from rdc.kernel import pure

        return pure
    if demand and demand not in extension.built():
        raise UsageError(
            f"RDC_KERNEL={demand}: not built; this installation has {', '.join(extension.built())}, pure"
        )
    if demand and demand not in extension.usable():
        raise UsageError(
            f"RDC_KERNEL={demand}: not on this CPU; it can run {', '.join(extension.usable())}, pure"
        )
    extension.choose(demand or extension.usable()[0])
    return extension
