"""The kernel uses what the CPU has: no less, whatever compiler it was built with, and no more."""

from __future__ import annotations

import platform
from pathlib import Path

from rdc.kernel import _kernel

NEEDS: dict[str, set[str]] = {
    "avx512": {"avx512f", "avx512bw", "pclmulqdq", "bmi1", "popcnt"},
    "avx2": {"avx2", "pclmulqdq", "bmi1", "popcnt"},
    "c": set(),
}
NAMING_NEEDS = {"avx512": {"avx512f", "avx512bw", "avx512vl"}, "avx2": {"avx2"}}


def test_the_variants_are_those_that_the_system_says_this_cpu_can_run() -> None:
    if platform.machine() == "aarch64":
        assert _kernel.usable() == ("neon", "c")
        return
    text = Path("/proc/cpuinfo").read_text()
    flags = set(text.partition("flags")[2].partition("\n")[0].split())
    assert _kernel.usable() == tuple(name for name, needs in NEEDS.items() if needs <= flags)
    assert _kernel.naming_variants() == tuple(name for name, needs in NAMING_NEEDS.items() if needs <= flags)
