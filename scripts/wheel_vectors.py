"""Checks the kernel of a processor that may not be this one: its known cuts and traits, by static binaries.

They are built by the compiler of the wheels with musl, and run here, under qemu-user for another processor.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.kernel.kernel_vectors import VECTORS
from tests.support.project_paths import TOP

__all__ = ["check_vectors"]

NATIVE = TOP / "tests" / "kernel" / "native"
FIXTURES = TOP / "fixtures" / "kernel"
STREAMS = 50
"""Random streams on which all variants are compared."""


def check_vectors(compiler: list[str], architecture: str, scratch: Path) -> str | None:
    """Build and run. Return what was run, None without an emulator. Exit where a result is wrong.

    compiler: its command, which makes static binaries for `architecture`.
    """
    runner = _runner(architecture)
    if runner is None:
        return None
    programs = {name: _built(name, compiler, scratch) for name in ("vectors", "compare")}
    variants: set[str] = set()
    for vector in VECTORS:
        place = scratch / "vector"
        place.write_bytes(vector.data())
        for line in _output([*runner, programs["vectors"], str(vector.min), str(vector.max), str(place)]):
            variant, traits, *cuts = line.split(" ")
            variants.add(variant)
            if (traits.replace("-", ""), list(map(int, cuts))) != (vector.traits, vector.cuts):
                sys.exit(f"{architecture}, {variant}: other cuts or traits of {vector.input} {vector.length}")
    if variants == {"c"}:
        sys.exit(f"{architecture}: no vector variant of the kernel can be used")
    _output([*runner, programs["compare"], "1", str(STREAMS), *map(str, sorted(FIXTURES.glob("*.bin")))])
    return f"{len(VECTORS)} vectors and {STREAMS} streams by {', '.join(sorted(variants))}, {architecture}"


def _runner(architecture: str) -> list[str] | None:
    """Return the words before a program of that processor."""
    if architecture == platform.machine():
        return []
    found = shutil.which(f"qemu-{architecture}") or shutil.which(f"qemu-{architecture}-static")
    return None if found is None else [found]


def _built(name: str, compiler: list[str], scratch: Path) -> str:
    kernel = TOP / "rdc" / "kernel"
    sources = sorted(
        str(path)
        for path in kernel.rglob("*.c")
        if not path.name.endswith("binding.c") and path.name != "module.c"
    )
    made = str(scratch / name)
    flags = ["-static", "-O3", "-std=c11", f"-I{kernel}"]
    subprocess.run([*compiler, *flags, str(NATIVE / f"{name}.c"), *sources, "-o", made], check=True)
    return made


def _output(words: list[str]) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()
