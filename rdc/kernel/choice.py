"""Chooses the kernel variant: the fastest one this CPU can run, or the one that RDC_KERNEL demands."""

from __future__ import annotations

import os
from types import ModuleType

from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["VARIANTS", "bind", "chosen_module", "is_pure"]

VARIANTS = ("avx512", "avx2", "neon", "c", "pure")
"""Every variant, fastest first."""


def _extension() -> ModuleType | None:
    try:
        from rdc.kernel import _kernel
    except ImportError:  # a checkout without a compiler: correct, and a thousand times slower
        return None
    return _kernel


def chosen_module(demand: str | None = None) -> ModuleType:
    """Returns the module of the kernel with its variant chosen.

    `demand` names one variant; the default is RDC_KERNEL. A demand is never replaced by another variant,
    because a measurement would then measure the wrong one. UsageError says whether the variant is unknown,
    not built, or not for this CPU.
    """
    if demand is None:
        demand = os.environ.get("RDC_KERNEL", "")
    if demand and demand not in VARIANTS:
        raise UsageError(f"RDC_KERNEL={demand}: unknown kernel; known are {', '.join(VARIANTS)}")
    extension = _extension() if demand != "pure" else None
    if extension is None:
        if demand not in ("", "pure"):
            raise UsageError(
                f"RDC_KERNEL={demand}: not built; the C extension is missing, reinstall rdc with a C compiler"
            )
        from rdc.kernel import reference

        return reference
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


def is_pure() -> bool:
    """Returns whether the plain Python kernel runs. All extensions of the kernel follow this choice."""
    return bool(chosen_module().kernel_name() == "pure")


def bind(into: dict[str, object], module: ModuleType, names: Iterable[str]) -> None:
    """Sets these names of the namespace `into` to those of `module`."""
    for name in names:
        into[name] = getattr(module, name)
