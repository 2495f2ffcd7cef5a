"""The rdc of each version of the protocol that is still spoken, from fixtures/versions, ready to run."""

from __future__ import annotations

import fcntl
import os
import tarfile
from pathlib import Path

import pytest

from tests.support.kernel.sanitized import build_module
from tests.support.project_paths import TOP

__all__ = ["KEPT", "kernel_of", "older_rdc"]

KEPT = TOP / "fixtures" / "versions"


def older_rdc(version: int, factory: pytest.TempPathFactory) -> Path:
    """Return the directory that Python finds the rdc of a version of the protocol in. Nothing else may be
    written there: all processes of a run of the tests share it, since its C parts take 8 s to build."""
    top = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent
    place = top / f"rdc-{version}"
    with (top / "versions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            unfinished = factory.mktemp("version")
            _unpack(version, unfinished)
            unfinished.rename(place)
    return place


def _unpack(version: int, place: Path) -> None:
    with tarfile.open(KEPT / f"rdc-{version}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    if (place / "rdc/kernel/module.c").exists():
        for package in ("kernel", "files"):
            build_module(place / "rdc" / package, ("-O0", "-w"))


def kernel_of(rdc: Path) -> str:
    """Return the value of RDC_KERNEL for an rdc. Those of before C was required are kept without their C
    parts, and run in plain Python, slowly and whole."""
    return "" if any((rdc / "rdc/kernel").glob("_kernel.*.so")) else "pure"
