# ruff: noqa: F403 - a checker takes the names from __init__.pyi
"""The kernel: cut points, block search, traits, digest inputs and packed columns, as fast as this CPU can.

tests/reference defines every name. Importing this chooses the variant that computes them. KERNEL.md has the
map.
"""

from __future__ import annotations

import os

from rdc.errors import UsageError
from rdc.kernel import _kernel
from rdc.kernel._kernel import *

VARIANTS = ("avx512", "avx2", "neon", "c")
"""Every variant, fastest first."""


def choose_variant(demand: str | None = None) -> None:
    """Choose the variant of the kernel.

    `demand` names one variant; the default is RDC_KERNEL. A demand is never replaced by another variant,
    because a measurement would then measure the wrong one. UsageError says whether the variant is unknown,
    not built, or not for this CPU.
    """
    if demand is None:
        demand = os.environ.get("RDC_KERNEL", "")
    if demand and demand not in VARIANTS:
        raise UsageError(f"RDC_KERNEL={demand}: unknown kernel; known are {', '.join(VARIANTS)}")
    if demand and demand not in _kernel.built():
        raise UsageError(
            f"RDC_KERNEL={demand}: not built; this installation has {', '.join(_kernel.built())}"
        )
    if demand and demand not in _kernel.usable():
        raise UsageError(f"RDC_KERNEL={demand}: not on this CPU; it can run {', '.join(_kernel.usable())}")
    _kernel.choose(demand or _kernel.usable()[0])


choose_variant()
